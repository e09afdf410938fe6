use super::*;
use crate::api::Api;
use crate::request::PathFacts;
use crate::splice::Splices;

fn read(body: &str) -> Result<Request<'_>, RequestFault> {
    Request::parse(Api::Responses, PathFacts::default(), body.as_bytes())
}

fn fault(body: &str) -> RequestFault {
    read(body).unwrap_err()
}

/// Members as in OpenAI's API reference, "Create a model response".
const WHOLE: &str = r#"{
    "model": "gpt-5", "stream": true, "max_output_tokens": 500, "store": false,
    "instructions": "be brief",
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
    "metadata": {"team": "a", "n": 1}, "safety_identifier": "u-1",
    "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": true}],
    "input": [
        {"role": "user", "content": "hé"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "abc"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
        ]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "AAAA"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [
            {"type": "input_text", "text": "ok"},
            {"type": "input_file", "file_id": "file-1"}
        ]},
        {"type": "function_call_output", "call_id": "c", "output": "done"}
    ]
}"#;

#[test]
fn all_that_decides_is_read() {
    let request = read(WHOLE).unwrap();
    assert_eq!(request.model, "gpt-5");
    assert!(request.stream && request.asks_usage);
    assert_eq!(request.max_output_tokens, Some(500));
    assert_eq!(request.choices, 1);
    assert_eq!(request.reasoning_effort.as_deref(), Some("high"));
    assert_eq!(request.metadata, [("team".into(), "a".into())]);
    assert_eq!(request.user.as_deref(), Some("u-1"));
    assert_eq!(
        request.needs,
        Needs {
            tools: true,
            image_input: true,
            audio_input: false,
            file_input: true,
            json_schema: true,
        }
    );
    let instructions = "be brief".len();
    let input = "hé".len() + "abc".len() + "hm".len() + "f{}".len() + "ok".len() + "done".len();
    let tools = "functionf".len();
    assert_eq!(request.text_bytes, (instructions + input + tools) as u64);
    assert_eq!(request.body_bytes, WHOLE.len() as u64);
}

#[test]
fn the_least_request_is_read() {
    let request = read(r#"{"model":"m","input":"caf\u00e9"}"#).unwrap();
    assert!(!request.stream);
    assert_eq!(request.max_output_tokens, None);
    assert_eq!(request.reasoning_effort, None);
    assert_eq!(request.needs, Needs::default());
    assert_eq!(request.text_bytes, 5);
    let nulls = r#"{"model":"m","input":"a","reasoning":null,"text":null,"background":null}"#;
    assert!(read(nulls).is_ok());
}

#[test]
fn faults_name_the_member() {
    assert_eq!(fault(r#"{"input":"a"}"#).param, Some("model"));
    let twice = fault(r#"{"model":"m","model":"n","input":"a"}"#);
    assert_eq!(twice.code, Some("duplicate_parameter"));
    let effort = fault(r#"{"model":"m","reasoning":{"effort":1}}"#);
    assert_eq!(effort.param, Some("reasoning"));
    assert_eq!(effort.message, "`reasoning.effort` must be a string");
    let format = fault(r#"{"model":"m","text":{"format":7}}"#);
    assert_eq!(format.message, "`text.format` must be an object");
    let most = fault(r#"{"model":"m","max_output_tokens":-1}"#);
    assert_eq!(most.param, Some("max_output_tokens"));
}

#[test]
fn what_is_made_in_the_background_is_refused() {
    let refused = fault(r#"{"model":"m","input":"a","background":true}"#);
    assert_eq!(refused.param, Some("background"));
    assert!(read(r#"{"model":"m","input":"a","background":false}"#).is_ok());
}

#[test]
fn model_and_bound_are_edited_in_place() {
    let edited = |body: &str| {
        let request = read(body).unwrap();
        assert_eq!(request.edits.include_usage(), None);
        let rename = request.edits.rename_model(&request.model, "up");
        let splices: Splices = request.edits.limit_output(64).chain(rename).collect();
        String::from_utf8(splices.apply(body.as_bytes())).unwrap()
    };
    assert_eq!(
        edited(r#"{ "model": "m", "max_output_tokens": 900, "input": "a"}"#),
        r#"{ "model": "up", "max_output_tokens": 64, "input": "a"}"#
    );
    assert_eq!(
        edited(r#"{"model":"m","input":"a"}"#),
        r#"{"max_output_tokens":64,"model":"up","input":"a"}"#
    );
}
