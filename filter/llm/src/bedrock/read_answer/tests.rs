use super::*;
use crate::conversation::Finish;

#[test]
fn every_kind_of_block_is_read_and_what_others_cannot_say_is_passed_over() {
    let document =
        br#"{"metrics":{"latencyMs":1},"output":{"message":{"role":"assistant","content":[
        {"reasoningContent":{"redactedContent":"cmVk"}},
        {"citationsContent":{"content":[{"text":"cited"}],"citations":[]}},
        {"searchResult":{"source":"s","title":"t","content":[]}},
        {"text":""},
        {"toolUse":{"toolUseId":"t-1","name":"f","input":{"a": 1}}}]}},
        "stopReason":"stop_sequence","additionalModelResponseFields":{"stop_sequence":"END"},
        "usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7}}"#;
    let answer = read_answer(document).unwrap();
    let expected = [
        Part::Thinking(Thinking::Redacted {
            data: "cmVk".into(),
        }),
        Part::Text {
            text: "cited".into(),
            cache: None,
        },
        Part::ToolCall(ToolCall {
            id: "t-1".into(),
            name: "f".into(),
            arguments: r#"{"a": 1}"#.into(),
            signature: None,
            cache: None,
        }),
    ];
    assert_eq!(answer.parts, expected);
    assert_eq!(answer.stop_sequence.as_deref(), Some("END"));
    assert_eq!(answer.finish, Some(Finish::Stop));
}

#[test]
fn each_stop_reason_has_its_finish() {
    for (word, expected) in [
        ("end_turn", Finish::Stop),
        ("stop_sequence", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("model_context_window_exceeded", Finish::Length),
        ("tool_use", Finish::ToolCalls),
        ("guardrail_intervened", Finish::ContentFilter),
        ("content_filtered", Finish::ContentFilter),
        ("malformed_model_output", Finish::Error),
        ("malformed_tool_use", Finish::Error),
    ] {
        let document =
            format!(r#"{{"output":{{"message":{{"content":[]}}}},"stopReason":"{word}"}}"#);
        let answer = read_answer(document.as_bytes()).unwrap();
        assert_eq!(answer.finish, Some(expected), "{word}");
    }
}

#[test]
fn what_is_no_answer_is_none() {
    for document in [
        &br#"{"message":"denied"}"#[..],
        b"[]",
        b"",
        br#"{"output":{}}"#,
    ] {
        assert!(read_answer(document).is_none());
    }
}
