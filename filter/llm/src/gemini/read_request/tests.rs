//! Requests as Google's API reference writes them, and there and back.

use super::super::print_request;
use super::*;
use crate::conversation::{MediaSource, Role, Thinking};
use crate::translate::{Quirks, Terms};

const PATH: PathFacts<'static> = PathFacts {
    model: Some("m"),
    stream: false,
};
const TERMS: Terms<'static> = Terms {
    upstream_model: "gemini",
    max_output_tokens: None,
    default_max_output_tokens: 4096,
    quirks: &Quirks {
        max_tokens_member: false,
        no_stream_options: false,
        no_json_schema: false,
        no_reasoning: false,
        no_parallel_tool_calls: false,
        tool_choice_any: false,
        no_links: false,
        is_vertex: false,
        no_responses: false,
        wants_reasoning_back: false,
    },
};

const TOOLS: &str = r#"{
  "systemInstruction": {"parts": [{"text": "Be brief."}]},
  "contents": [
    {"role": "user", "parts": [{"text": "What is the weather?"},
      {"inlineData": {"mimeType": "image/png", "data": "iVBORw0="}}]},
    {"role": "model", "parts": [
      {"text": "I look it up.", "thought": true, "thoughtSignature": "c2lnMQ=="},
      {"functionCall": {"id": "c-1", "name": "weather", "args": {"city": "Bern"}},
       "thoughtSignature": "c2lnMg=="}]},
    {"role": "user", "parts": [
      {"functionResponse": {"id": "c-1", "name": "weather", "response": {"result": "rain"}}}]}
  ],
  "tools": [{"functionDeclarations": [
    {"name": "weather", "description": "Tells it.",
     "parametersJsonSchema": {"type": "object"}}]}],
  "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
  "generationConfig": {"maxOutputTokens": 100, "temperature": 0.5, "topP": 0.9, "topK": 40,
    "presencePenalty": 0.1, "frequencyPenalty": 0.2, "seed": 7, "stopSequences": ["END"],
    "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"},
    "thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": true}}
}"#;

fn read(body: &str) -> Request<'_> {
    read_request(PATH, body.as_bytes()).unwrap()
}

#[test]
fn everything_that_has_a_form_between_is_read() {
    let request = read(TOOLS);
    assert_eq!(request.system[0].text, "Be brief.");
    assert_eq!(request.messages.len(), 3);
    let [_, Part::Image(image)] = request.messages[0].parts.as_slice() else {
        panic!("{:?}", request.messages[0]);
    };
    assert!(matches!(image.source, MediaSource::Base64 { .. }));
    let [
        Part::Thinking(Thinking::Shown { signature, .. }),
        Part::ToolCall(call),
    ] = request.messages[1].parts.as_slice()
    else {
        panic!("{:?}", request.messages[1]);
    };
    assert_eq!(signature.as_deref(), Some("c2lnMQ=="));
    assert_eq!(
        (call.id.as_ref(), call.signature.as_deref()),
        ("c-1", Some("c2lnMg=="))
    );
    assert_eq!(call.arguments, r#"{"city": "Bern"}"#);
    let [Part::ToolResult(result)] = request.messages[2].parts.as_slice() else {
        panic!("{:?}", request.messages[2]);
    };
    assert_eq!(
        (result.id.as_ref(), result.name.as_ref()),
        ("c-1", "weather")
    );
    assert_eq!(
        request.tool_choice,
        Some(ToolChoice::Named("weather".into()))
    );
    assert_eq!(request.reasoning.unwrap().budget(), Some(2048));
    assert_eq!(request.left_out, [] as [&str; 0]);
}

#[test]
fn what_is_printed_is_what_was_read() {
    let printed = print_request(&read(TOOLS), &TERMS).unwrap();
    let sent: serde_json::Value = serde_json::from_str(TOOLS).unwrap();
    let again: serde_json::Value = serde_json::from_slice(&printed.body).unwrap();
    assert_eq!(again, sent);
    assert_eq!(printed.left_out, [] as [&str; 0]);
}

#[test]
fn calls_without_ids_are_answered_in_their_order() {
    let request = read(
        r#"{"contents":[
        {"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f","args":{"n":2}}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1}}},
            {"functionResponse":{"name":"f","response":{"error":"no"}}}]}]}"#,
    );
    let ids: Vec<&str> = request.messages[1]
        .parts
        .iter()
        .map(|part| match part {
            Part::ToolResult(result) => result.id.as_ref(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, ["call_0", "call_1"]);
    let Part::ToolResult(failed) = &request.messages[1].parts[1] else {
        panic!("a result");
    };
    assert!(failed.is_error);
    assert_eq!(request.messages[0].role, Role::Assistant);
}

#[test]
fn what_only_google_has_is_named() {
    let request = read(
        r#"{"contents":[],"safetySettings":[],"cachedContent":"c","labels":{"a":"b"},
        "tools":[{"googleSearch":{}}],"generationConfig":{"responseLogprobs":true}}"#,
    );
    let mut left_out = request.left_out;
    left_out.sort();
    assert_eq!(
        left_out,
        [
            "cachedContent",
            "generationConfig.responseLogprobs",
            "safetySettings",
            "tools[0].googleSearch"
        ]
    );
}

#[test]
fn a_response_to_no_call_is_a_fault_that_names_its_place() {
    let body = r#"{"contents":[{"parts":[{"functionResponse":{"name":"f","response":{}}}]}]}"#;
    let fault = read_request(PATH, body.as_bytes()).unwrap_err();
    assert!(fault.message.contains("contents[0].parts[0]"), "{fault}");
}
