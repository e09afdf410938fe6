use super::*;
use crate::splice::Splices;

#[test]
fn what_decides_is_read() {
    let body = r#"{"model":"claude","max_tokens":300,"stream":true,
        "system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],
        "messages":[{"role":"user","content":"héllo"},
            {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":"bc"}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[
                {"type":"text","text":"xyz"},
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}],
        "tools":[{"name":"f","input_schema":{}}],
        "metadata":{"user_id":"u-1","action_id":"a-7"},
        "thinking":{"type":"enabled","budget_tokens":4096},
        "output_config":{"format":{"type":"json_schema","schema":{}}}}"#;
    let request = parse(body.as_bytes()).unwrap();
    assert_eq!(request.model, "claude");
    assert!(request.stream && request.asks_usage);
    assert_eq!((request.max_output_tokens, request.choices), (Some(300), 1));
    assert_eq!(request.reasoning_effort.as_deref(), Some("high"));
    assert_eq!(request.user.as_deref(), Some("u-1"));
    assert_eq!(request.action_id(), Some("a-7"));
    assert_eq!(request.metadata.len(), 1);
    assert!(request.needs.tools && request.needs.image_input && request.needs.json_schema);
    // `be brief`, `héllo`, `f` and `bc` of the call, `xyz`, and the tool's `f`.
    assert_eq!(request.text_bytes, 8 + 6 + 3 + 3 + 1);
    let splices: Splices = request
        .edits
        .rename_model(&request.model, "claude-4")
        .into_iter()
        .chain(request.edits.limit_output(200))
        .collect();
    let edited = String::from_utf8(splices.apply(body.as_bytes())).unwrap();
    assert!(
        edited.starts_with(r#"{"model":"claude-4","max_tokens":200,"#),
        "{edited}"
    );
}

#[test]
fn a_member_twice_or_of_the_wrong_kind_is_named() {
    for (body, named) in [
        (r#"{"model":"m","model":"n"}"#, "model"),
        (r#"{"messages":[]}"#, "model"),
        (r#"{"model":"m","max_tokens":"x"}"#, "max_tokens"),
        (r#"{"model":"m","stream":1}"#, "stream"),
        (r#"{"model":"m","metadata":[]}"#, "metadata"),
        (r#"{"model":"m","output_config":1}"#, "output_config"),
    ] {
        let fault = parse(body.as_bytes()).unwrap_err();
        assert!(fault.message.contains(named), "{body}: {fault}");
    }
}

#[test]
fn vertex_is_told_the_version_in_the_place_of_the_model() {
    for (body, edited) in [
        (
            r#"{"model":"claude","max_tokens":9,"messages":[]}"#,
            r#"{"anthropic_version":"vertex-2023-10-16","max_tokens":9,"messages":[]}"#,
        ),
        (
            r#"{"messages":[], "mod\u0065l" : "claude" }"#,
            r#"{"max_tokens":50,"messages":[], "anthropic_version":"vertex-2023-10-16" }"#,
        ),
    ] {
        let request = parse(body.as_bytes()).unwrap();
        let edits = request
            .edits
            .rename_model_for_vertex(&request.model, "claude@1");
        let limit = request
            .edits
            .limit_output(50)
            .filter(|_| request.max_output_tokens.is_none());
        let edits: Splices = edits.into_iter().flatten().chain(limit).collect();
        assert_eq!(
            String::from_utf8(edits.apply(body.as_bytes())).unwrap(),
            edited
        );
    }
}
