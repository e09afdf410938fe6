use serde_json::{Value, json};

use super::*;
use crate::conversation::{Media, MediaSource, Message, Part as Said, Role, Thinking, ToolCall};
use crate::translate::Quirks;

fn printed(request: &Request<'_>, quirks: &Quirks) -> (Value, Vec<String>) {
    let terms = Terms {
        upstream_model: "gemini",
        max_output_tokens: Some(50),
        default_max_output_tokens: 4096,
        quirks,
    };
    let printed = print_request(request, &terms).unwrap();
    (
        serde_json::from_slice(&printed.body).unwrap(),
        printed.left_out,
    )
}

fn message(role: Role, parts: Vec<Said<'static>>) -> Message<'static> {
    Message { role, parts }
}

fn text(text: &'static str) -> Said<'static> {
    Said::Text {
        text: text.into(),
        cache: None,
    }
}

#[test]
fn neighbours_of_one_role_become_one_turn_and_empty_text_is_left_away() {
    let request = Request {
        messages: vec![
            message(Role::User, vec![text("a"), text("")]),
            message(Role::User, vec![text("b")]),
            message(Role::Assistant, vec![text("")]),
            message(Role::Assistant, vec![text("c")]),
        ],
        ..Request::default()
    };
    let (json, _) = printed(&request, &Quirks::default());
    let expected = json!([
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "model", "parts": [{"text": "c"}]},
    ]);
    assert_eq!(json["contents"], expected);
    assert_eq!(json["generationConfig"], json!({"maxOutputTokens": 50}));
}

#[test]
fn a_signature_without_words_goes_to_what_follows_it_and_vertex_gets_no_ids() {
    let call = ToolCall {
        id: "c-1".into(),
        name: "f".into(),
        arguments: "not json".into(),
        signature: None,
        cache: None,
    };
    let bare = Said::Thinking(Thinking::Shown {
        text: "".into(),
        signature: Some("c2ln".into()),
    });
    let request = Request {
        messages: vec![message(Role::Assistant, vec![bare, Said::ToolCall(call)])],
        ..Request::default()
    };
    let quirks = Quirks {
        is_vertex: true,
        ..Quirks::default()
    };
    let (json, _) = printed(&request, &quirks);
    let expected = json!([{"thoughtSignature": "c2ln",
        "functionCall": {"name": "f", "args": {"arguments": "not json"}}}]);
    assert_eq!(json["contents"][0]["parts"], expected);
}

#[test]
fn a_link_that_nobody_fetches_is_a_fault() {
    let media = Media {
        source: MediaSource::Url("https://example.com/a.png".into()),
        name: None,
        detail: None,
        cache: None,
    };
    let request = Request {
        messages: vec![message(Role::User, vec![Said::Image(media)])],
        ..Request::default()
    };
    let (json, _) = printed(&request, &Quirks::default());
    let file = &json["contents"][0]["parts"][0]["fileData"];
    assert_eq!(
        *file,
        json!({"mimeType": "image/png", "fileUri": "https://example.com/a.png"})
    );
    let quirks = Quirks {
        no_links: true,
        ..Quirks::default()
    };
    let terms = Terms {
        upstream_model: "gemini",
        max_output_tokens: None,
        default_max_output_tokens: 4096,
        quirks: &quirks,
    };
    assert!(print_request(&request, &terms).is_err());
}

#[test]
fn what_gemini_can_not_be_told_is_named() {
    let request = Request {
        temperature: Some(2.5),
        parallel_tool_calls: Some(false),
        left_out: vec!["logit_bias".into()],
        ..Request::default()
    };
    let (_, left_out) = printed(&request, &Quirks::default());
    assert_eq!(
        left_out,
        ["logit_bias", "parallel_tool_calls", "temperature (clamped)"]
    );
}
