use serde_json::{Value, json};

use super::*;
use crate::conversation::{Effort, Message, Part, Reasoning, Role, Thinking, ToolCall, ToolResult};
use crate::translate::Quirks;

fn printed(request: &Request<'_>, quirks: &Quirks) -> (Value, Vec<String>) {
    let terms = Terms {
        upstream_model: "claude",
        max_output_tokens: None,
        default_max_output_tokens: 4096,
        quirks,
    };
    let printed = print_request(request, &terms).unwrap();
    (
        serde_json::from_slice(&printed.body).unwrap(),
        printed.left_out,
    )
}

fn text(text: &'static str) -> Part<'static> {
    Part::Text {
        text: text.into(),
        cache: None,
    }
}

fn call(id: &'static str) -> Part<'static> {
    Part::ToolCall(ToolCall {
        id: id.into(),
        name: "f".into(),
        arguments: "{}".into(),
        signature: None,
        cache: None,
    })
}

fn result(id: &'static str) -> Part<'static> {
    Part::ToolResult(ToolResult {
        id: id.into(),
        name: "f".into(),
        parts: vec![text("done"), text(" ")],
        is_error: false,
        cache: None,
    })
}

fn of(messages: Vec<(Role, Vec<Part<'static>>)>) -> Request<'static> {
    Request {
        messages: messages
            .into_iter()
            .map(|(role, parts)| Message { role, parts })
            .collect(),
        ..Request::default()
    }
}

#[test]
fn results_come_first_turns_are_merged_and_blanks_are_left_away() {
    let request = of(vec![
        (Role::Assistant, vec![text(" "), call("call|1"), call("c2")]),
        (Role::User, vec![text("and?")]),
        (Role::User, vec![result("call|1"), result("c2")]),
        (Role::Assistant, vec![text("So ")]),
    ]);
    let (json, left_out) = printed(&request, &Quirks::default());
    let result = |id| {
        json!({"type": "tool_result", "tool_use_id": id,
            "content": [{"type": "text", "text": "done"}]})
    };
    let call = |id| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "Begin."}]},
        {"role": "assistant", "content": [call("call_1"), call("c2")]},
        {"role": "user", "content": [result("call_1"), result("c2"),
            {"type": "text", "text": "and?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "So"}]},
    ]);
    assert_eq!(json["messages"], expected);
    assert_eq!(json["max_tokens"], 4096);
    assert_eq!(left_out, ["messages (a first one of the user was put in)"]);
}

#[test]
fn thinking_has_a_budget_that_fits_and_takes_sampling_away() {
    let mut request = of(vec![(Role::User, vec![text("go")])]);
    request.tools = vec![Tool {
        name: "f".into(),
        description: None,
        parameters: None,
        strict: None,
        cache: None,
    }];
    request.reasoning = Some(Reasoning {
        effort: Some(Effort::High),
        ..Reasoning::default()
    });
    request.max_output_tokens = Some(3000);
    request.temperature = Some(0.2);
    request.top_p = Some(0.5);
    request.top_k = Some(3);
    request.tool_choice = Some(ToolChoice::Required);
    let (json, left_out) = printed(&request, &Quirks::default());
    assert_eq!(
        json["thinking"],
        json!({"type": "enabled", "budget_tokens": 2999})
    );
    assert_eq!(json["tool_choice"], json!({"type": "auto"}));
    for name in ["temperature", "top_p", "top_k", "tool_choice"] {
        assert!(
            left_out.contains(&format!("{name} (while thinking)")),
            "{left_out:?}"
        );
    }
    request.max_output_tokens = Some(500);
    let (json, left_out) = printed(&request, &Quirks::default());
    assert_eq!(json.get("thinking"), None);
    assert!(left_out.contains(&"reasoning (too few tokens of output for it)".to_owned()));
}

#[test]
fn thinking_stays_off_after_calls_that_were_made_without() {
    let mut request = of(vec![
        (Role::User, vec![text("go")]),
        (Role::Assistant, vec![call("c1")]),
        (Role::User, vec![result("c1")]),
    ]);
    request.reasoning = Some(Reasoning {
        budget_tokens: Some(2000),
        ..Reasoning::default()
    });
    let (json, left_out) = printed(&request, &Quirks::default());
    assert_eq!(json.get("thinking"), None);
    assert_eq!(left_out, ["reasoning (the last calls were made without)"]);
    request.messages[1].parts.insert(
        0,
        Part::Thinking(Thinking::Shown {
            text: "hm".into(),
            signature: Some("s".into()),
        }),
    );
    let (json, left_out) = printed(&request, &Quirks::default());
    assert_eq!(json["thinking"]["budget_tokens"], 2000);
    assert_eq!(left_out, [] as [&str; 0]);
}

#[test]
fn vertex_has_the_model_in_the_path_and_the_version_in_the_body() {
    let quirks = Quirks {
        is_vertex: true,
        ..Quirks::default()
    };
    let (json, _) = printed(&of(vec![(Role::User, vec![text("go")])]), &quirks);
    assert_eq!(json.get("model"), None);
    assert_eq!(json["anthropic_version"], "vertex-2023-10-16");
}

#[test]
fn a_result_without_its_call_and_audio_are_faults() {
    let terms = Terms {
        upstream_model: "claude",
        max_output_tokens: None,
        default_max_output_tokens: 4096,
        quirks: &Quirks::default(),
    };
    let request = of(vec![(Role::User, vec![result("c1")])]);
    let fault = print_request(&request, &terms).unwrap_err();
    assert!(fault.message.contains("without its call"), "{fault}");
}
