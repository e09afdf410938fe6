//! Requests that one provider refuses and another answers.

use proto::config::v1::{Model, Rule, RuleSet};

use super::shell::{Play, Seen, Shell};
use crate::config::Resources;
use crate::fixture::*;

const ASK: &str = r#"{"model":"chat-default","messages":[{"role":"user","content":"x"}]}"#;
const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"content":"done"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9001,"completion_tokens":1,"total_tokens":9002}}"#;
const CODED: &str = r#"{"error":{"message":"Too many tokens for this model.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
const WORDED: &str = r#"{"object":"error","message":"prompt of 9001 tokens exceeds the model window of 8192","code":400}"#;
const REFUSED: &str = r#"{"error":{"message":"not this","type":"invalid_request_error","param":null,"code":"content_filter"}}"#;

fn sized(id: &str, context_window: u64) -> Model {
    Model {
        context_window,
        ..model(id, vec![target("a", &format!("up-{id}"))])
    }
}

fn with(rule: Rule) -> Shell {
    let mut resources: Resources = resources();
    for one in [
        sized("chat-default", 0),
        sized("short", 8192),
        sized("tiny", 4096),
        sized("long", 131_072),
    ] {
        resources.models.insert(one.id.clone(), one);
    }
    let rule = Rule {
        name: "by-length".into(),
        match_model: "chat-default".into(),
        ..rule
    };
    resources.rule_set = Some(RuleSet { rules: vec![rule] });
    Shell::with(&resources)
}

fn names(models: &[&str]) -> Vec<String> {
    models.iter().map(|&name| name.to_owned()).collect()
}

fn in_one_plan() -> Rule {
    Rule {
        models: names(&["short", "tiny", "long"]),
        ..Rule::default()
    }
}

/// Upstream models, in the order they were asked.
fn asked(seen: &Seen) -> Vec<String> {
    let bodies = seen.providers.iter().map(|(.., body)| body);
    bodies
        .map(|body| {
            let body: serde_json::Value = serde_json::from_slice(body).unwrap();
            body["model"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn case_08_a_prompt_that_is_too_long_goes_to_a_larger_window_and_not_to_a_smaller() {
    let patterned = Rule {
        context_length_patterns: names(&["Exceeds the model window"]),
        ..in_one_plan()
    };
    for (rule, words) in [(in_one_plan(), CODED), (patterned, WORDED)] {
        let shell = with(rule);
        let seen = shell.chat(ASK, &[Play::json(400, words), Play::json(200, ANSWER)]);
        assert_eq!((seen.status, seen.text()), (200, ANSWER));
        assert_eq!(asked(&seen), ["up-short", "up-long"]);
        let record = seen.record();
        let usage = record.attempts[1].usage.as_ref().unwrap();
        assert_eq!((usage.input, usage.output), (9001, 1));
        assert_eq!(seen.headers["x-turnpike-attempts"], "2");
    }
}

#[test]
fn case_08_words_that_nobody_configured_and_other_faults_go_to_the_client() {
    let schema = r#"{"error":{"message":"bad tool schema","type":"invalid_request_error","param":null,"code":null}}"#;
    for words in [WORDED, schema] {
        let seen = with(in_one_plan()).chat(ASK, &[Play::json(400, words)]);
        assert_eq!((seen.status, asked(&seen).len()), (400, 1));
    }
}

#[test]
fn a_prompt_that_no_window_takes_is_told_as_the_provider_told_it() {
    let plays = [Play::json(400, CODED), Play::json(400, CODED)];
    let seen = with(in_one_plan()).chat(ASK, &plays);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (400, "context_length_exceeded")
    );
    assert_eq!(asked(&seen), ["up-short", "up-long"]);
}

#[test]
fn chains_are_tried_for_their_class_alone() {
    let chained = || Rule {
        models: names(&["short"]),
        context_length_models: names(&["tiny", "long"]),
        content_policy_models: names(&["tiny"]),
        ..Rule::default()
    };
    let answer = || Play::json(200, ANSWER);
    let seen = with(chained()).chat(ASK, &[Play::json(400, CODED), answer()]);
    assert_eq!(asked(&seen), ["up-short", "up-long"]);
    let seen = with(chained()).chat(ASK, &[Play::json(400, REFUSED), answer()]);
    assert_eq!(asked(&seen), ["up-short", "up-tiny"]);
    let seen = with(chained()).chat(ASK, &[Play::json(503, "{}")]);
    assert_eq!((seen.status, asked(&seen).len()), (503, 1));
}

#[test]
fn a_policys_refusal_without_a_chain_goes_to_the_client() {
    let seen = with(in_one_plan()).chat(ASK, &[Play::json(400, REFUSED)]);
    assert_eq!((seen.status, seen.code().as_str()), (400, "content_filter"));
    assert_eq!(asked(&seen), ["up-short"]);
}

#[test]
fn a_client_whose_request_the_router_does_not_send_again_gets_the_providers_status() {
    let mut shell = with(in_one_plan());
    shell.router_retries = false;
    let seen = shell.chat(ASK, &[Play::json(400, CODED)]);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (400, "context_length_exceeded")
    );
}
