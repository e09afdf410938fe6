use super::*;
use crate::api::Api;

const PATH: PathFacts<'static> = PathFacts {
    model: Some("gemini-2.5-pro"),
    stream: true,
};

fn request(body: &str) -> Request<'_> {
    Request::parse(Api::GenerateContent, PATH, body.as_bytes()).unwrap()
}

#[test]
fn what_decides_is_read_in_both_cases_of_letters() {
    let camel = r#"{"contents":[{"role":"user","parts":[{"text":"héllo"},
        {"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}],
        "systemInstruction":{"parts":[{"text":"be brief"}]},
        "tools":[{"functionDeclarations":[{"name":"f","description":"d"}]}],
        "labels":{"action_id":"a-7"},
        "generationConfig":{"maxOutputTokens":300,"candidateCount":2,
            "responseJsonSchema":{"type":"object"},"thinkingConfig":{"thinkingBudget":2000}}}"#;
    let snake = camel
        .replace("inlineData", "inline_data")
        .replace("mimeType", "mime_type")
        .replace("systemInstruction", "system_instruction")
        .replace("generationConfig", "generation_config")
        .replace("maxOutputTokens", "max_output_tokens")
        .replace("candidateCount", "candidate_count")
        .replace("responseJsonSchema", "response_json_schema")
        .replace("thinkingConfig", "thinking_config")
        .replace("thinkingBudget", "thinking_budget");
    for body in [camel, &snake] {
        let request = request(body);
        assert_eq!(request.model, "gemini-2.5-pro");
        assert!(request.stream && request.asks_usage);
        assert_eq!((request.max_output_tokens, request.choices), (Some(300), 2));
        assert_eq!(request.reasoning_effort.as_deref(), Some("medium"));
        assert_eq!(request.action_id(), Some("a-7"));
        assert!(request.needs.tools && request.needs.image_input && request.needs.json_schema);
        assert!(!request.needs.audio_input && !request.needs.file_input);
        // `héllo`, `be brief`, `f` and `d`.
        assert_eq!(request.text_bytes, 6 + 8 + 2);
    }
}

#[test]
fn the_output_is_bounded_wherever_a_request_says_it() {
    for (body, bounded) in [
        (
            r#"{"contents":[],"generationConfig":{"maxOutputTokens": 900,"topK":1}}"#,
            r#"{"contents":[],"generationConfig":{"maxOutputTokens": 300,"topK":1}}"#,
        ),
        (
            r#"{"contents":[],"generationConfig":{"topK":1}}"#,
            r#"{"contents":[],"generationConfig":{"maxOutputTokens":300,"topK":1}}"#,
        ),
        (
            r#"{"contents":[],"generationConfig":{ }}"#,
            r#"{"contents":[],"generationConfig":{"maxOutputTokens":300 }}"#,
        ),
        (
            r#" {"contents":[]}"#,
            r#" {"generationConfig":{"maxOutputTokens":300},"contents":[]}"#,
        ),
    ] {
        let splices: crate::splice::Splices = request(body).edits.limit_output(300).collect();
        let edited = splices.apply(body.as_bytes());
        assert_eq!(String::from_utf8(edited.clone()).unwrap(), bounded);
        let again = Request::parse(Api::GenerateContent, PATH, &edited).unwrap();
        assert_eq!(again.max_output_tokens, Some(300));
    }
}

#[test]
fn a_member_twice_or_of_the_wrong_kind_is_named() {
    for (body, named) in [
        (r#"{"contents":[],"contents":[]}"#, "contents"),
        (r#"{"generationConfig":[]}"#, "generationConfig"),
        (
            r#"{"generationConfig":{"maxOutputTokens":"x"}}"#,
            "maxOutputTokens",
        ),
        ("[]", "object"),
    ] {
        let fault = Request::parse(Api::GenerateContent, PATH, body.as_bytes()).unwrap_err();
        assert!(fault.message.contains(named), "{body}: {fault}");
    }
}
