use super::*;
use crate::api::Api;

fn error(message: &str, kind: &str, code: &str) -> ProviderError {
    ProviderError {
        message: message.to_owned(),
        kind: kind.to_owned(),
        code: code.to_owned(),
    }
}

#[test]
fn an_error_is_written_in_openais_shape_with_every_character_escaped() {
    let body = ErrorBody {
        status: 400,
        request_id: "",
        message: "no \"model\"\nnamed \u{8336}\u{1}\\",
        kind: "invalid_request_error",
        param: Some("model"),
        code: None,
    };
    let json: serde_json::Value =
        serde_json::from_slice(&body.to_body(Api::ChatCompletions)).unwrap();
    let expected = serde_json::json!({"error": {
        "message": body.message, "type": "invalid_request_error", "param": "model", "code": null,
    }});
    assert_eq!(json, expected);
    assert_eq!(
        parse(&body.to_body(Api::ChatCompletions)),
        Some(error(body.message, body.kind, ""))
    );
}

#[test]
fn an_error_event_is_one_event() {
    let body = ErrorBody {
        status: 400,
        request_id: "",
        message: "gone\r\n\r\ndata: x",
        kind: "server_error",
        param: None,
        code: Some("provider_cut"),
    };
    let event = body.to_event(Api::ChatCompletions);
    assert_eq!(
        String::from_utf8(event).unwrap(),
        "data: {\"error\":{\"message\":\"gone\\r\\n\\r\\ndata: x\",\"type\":\"server_error\",\
         \"param\":null,\"code\":\"provider_cut\"}}\n\n"
    );
}

#[test]
fn every_form_of_a_providers_error_is_read() {
    let table: [(&str, ProviderError); 10] = [
        (
            r#"{"error":{"message":"slow down","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
            error("slow down", "tokens", "rate_limit_exceeded"),
        ),
        (
            r#"{"error":{"message":"over","code":429},"user_id":"u"}"#,
            error("over", "", "429"),
        ),
        (
            r#"{"error":"no such model"}"#,
            error("no such model", "", ""),
        ),
        (
            r#"{"code":"invalid_argument","error":"bad"}"#,
            error("bad", "", "invalid_argument"),
        ),
        (
            r#"{"object":"error","message":"m","type":"invalid","code":"3210"}"#,
            error("m", "invalid", "3210"),
        ),
        (
            r#"{"message":"invalid token"}"#,
            error("invalid token", "", ""),
        ),
        (
            r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
            error("field required", "", ""),
        ),
        (r#"{"detail":"Not Found"}"#, error("Not Found", "", "")),
        (
            r#"[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]"#,
            error("API key not valid", "", "400"),
        ),
        (r#"{"error":{"message":"cut of"#, error("", "", "")),
    ];
    for (body, expected) in table {
        assert_eq!(parse(body.as_bytes()), Some(expected), "{body}");
    }
}

#[test]
fn what_is_no_error_is_none() {
    for body in [
        "",
        "<html>502</html>",
        r#"{"id":"x","choices":[{"message":{"content":"hi"}}]}"#,
        r#"{"error":null}"#,
        "[]",
    ] {
        assert_eq!(parse(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn a_long_message_is_cut() {
    let body = format!(r#"{{"error":{{"message":"{}"}}}}"#, "é".repeat(4000));
    let message = parse(body.as_bytes()).unwrap().message;
    assert_eq!(message.len(), MESSAGE_BYTES);
}

#[test]
fn the_kinds_of_error_that_matter_are_told_apart() {
    let of = |body: &str| parse(body.as_bytes()).unwrap();
    let context = of(r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#);
    assert!(context.is_context_length() && !context.is_quota());
    let vllm = of(r#"{"object":"error","message":"This model's maximum context length is 8"}"#);
    assert!(vllm.is_context_length());
    assert!(of(r#"{"error":{"message":"x","type":"insufficient_quota"}}"#).is_quota());
    assert!(of(r#"{"error":{"message":"x","code":"content_filter"}}"#).is_content_policy());
    let unknown = of(r#"{"error":{"message":"x","code":"model_not_found"}}"#);
    assert!(unknown.is_unknown_model() && !unknown.is_content_policy());
}
