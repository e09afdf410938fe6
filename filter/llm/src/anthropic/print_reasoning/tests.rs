use serde_json::{Value, json};

use super::*;
use crate::translate::Quirks;

fn asked(reasoning: Reasoning) -> Request<'static> {
    Request {
        reasoning: Some(reasoning),
        ..Request::default()
    }
}

fn effort(effort: Effort) -> Reasoning {
    Reasoning {
        effort: Some(effort),
        ..Reasoning::default()
    }
}

fn terms<'a>(model: &'a str, quirks: &'a Quirks) -> Terms<'a> {
    Terms {
        upstream_model: model,
        max_output_tokens: None,
        default_max_output_tokens: 4096,
        quirks,
    }
}

/// `thinking` and `output_config.effort`, and what was left out.
fn told(model: &str, reasoning: Reasoning) -> (Value, Option<&'static str>, Vec<String>) {
    let quirks = Quirks::default();
    let mut left_out = Vec::new();
    let request = asked(reasoning);
    let thinking = Thinking::of(
        &request,
        20_000,
        true,
        &terms(model, &quirks),
        &mut left_out,
    );
    let shown = serde_json::to_value(thinking.shown).unwrap();
    (shown, thinking.effort, left_out)
}

/// Which model takes what is of Anthropic's pages "Extended thinking", "Adaptive thinking" and
/// "Effort".
#[test]
fn each_generation_is_told_to_think_in_its_own_way() {
    let budget = |budget_tokens| json!({"type": "enabled", "budget_tokens": budget_tokens});
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    for (word, tokens, told_effort) in [
        (Effort::Minimal, 1024, "low"),
        (Effort::Low, 1024, "low"),
        (Effort::Medium, 2048, "medium"),
        (Effort::High, 4096, "high"),
        (Effort::ExtraHigh, 8192, "xhigh"),
        (Effort::Max, 16_384, "max"),
    ] {
        let old = told("claude-sonnet-4-5-20250929", effort(word));
        assert_eq!(old, (budget(tokens), None, vec![]));
        let new = told("claude-opus-4-8", effort(word));
        assert_eq!(new, (adaptive.clone(), Some(told_effort), vec![]));
    }
    let by_budget = Reasoning {
        budget_tokens: Some(5000),
        is_shown: Some(false),
        ..Reasoning::default()
    };
    let hidden = json!({"type": "adaptive", "display": "omitted"});
    assert_eq!(
        told("claude-sonnet-5", by_budget),
        (hidden, Some("xhigh"), vec![])
    );
    // As the model likes: nothing is said of how much.
    assert_eq!(
        told("claude-opus-5", Reasoning::default()),
        (adaptive, None, vec![])
    );
}

#[test]
fn thinking_is_turned_off_where_it_can_be() {
    let off = json!({"type": "disabled"});
    for model in ["claude-sonnet-4-5", "claude-opus-4-8", "claude-sonnet-5"] {
        assert_eq!(
            told(model, effort(Effort::None)),
            (off.clone(), None, vec![]),
            "{model}"
        );
    }
    let (thinking, said, left_out) = told("claude-fable-5", effort(Effort::None));
    assert_eq!((thinking, said), (Value::Null, None));
    assert_eq!(left_out, ["reasoning (the model always thinks)"]);
}

#[test]
fn a_provider_without_thinking_is_not_asked_for_it() {
    let quirks = Quirks {
        no_reasoning: true,
        ..Quirks::default()
    };
    for (asked_for, noted) in [(Effort::High, 1), (Effort::None, 0)] {
        let mut left_out = Vec::new();
        let request = asked(effort(asked_for));
        let terms = terms("claude-opus-4-8", &quirks);
        let thinking = Thinking::of(&request, 20_000, true, &terms, &mut left_out);
        assert!(thinking.shown.is_none() && thinking.effort.is_none());
        assert_eq!(left_out.len(), noted);
    }
}

#[test]
fn sampling_is_told_as_far_as_the_model_takes_it() {
    let request = Request {
        temperature: Some(1.5),
        top_p: Some(0.5),
        top_k: Some(3),
        ..Request::default()
    };
    let quirks = Quirks::default();
    let sampling = |model, is_thinking| {
        let mut left_out = Vec::new();
        let sampling = Sampling::of(&request, is_thinking, &terms(model, &quirks), &mut left_out);
        (sampling, left_out)
    };
    let (told, left_out) = sampling("claude-sonnet-4-5", false);
    let expected = Sampling {
        temperature: Some(1.0),
        top_p: None,
        top_k: Some(3),
    };
    assert_eq!(told, expected);
    assert_eq!(
        left_out,
        ["top_p (beside temperature)", "temperature (clamped)"]
    );
    let (told, left_out) = sampling("claude-sonnet-5", false);
    assert_eq!(told, Sampling::default());
    assert_eq!(
        left_out,
        [
            "temperature (this model takes none)",
            "top_p (this model takes none)",
            "top_k (this model takes none)"
        ]
    );
    let (_, left_out) = sampling("claude-sonnet-4-5", true);
    assert_eq!(
        left_out,
        [
            "top_p (while thinking)",
            "top_k (while thinking)",
            "temperature (clamped)"
        ]
    );
}
