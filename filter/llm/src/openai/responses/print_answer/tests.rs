use super::*;
use crate::conversation::{Finish, ToolCall};
use crate::usage::Usage;

fn print(answer: &Answer<'_>) -> String {
    let terms = AnswerTerms {
        request_id: "req-1",
        model: "alias",
        created_at_s: 7,
        shows_usage: true,
    };
    String::from_utf8(print_answer(answer, &terms)).unwrap()
}

fn text(text: &'static str) -> Part<'static> {
    Part::Text {
        text: text.into(),
        cache: None,
    }
}

/// Members as in `Response` of openai-python 3.57.
#[test]
fn all_of_an_answer_is_printed() {
    let answer = Answer {
        id: "msg_01".into(),
        model: "m-1".into(),
        parts: vec![
            Part::Thinking(Thinking::Shown {
                text: "hm".into(),
                signature: Some("c2ln".into()),
            }),
            Part::Thinking(Thinking::Redacted { data: "ZA".into() }),
            text("so"),
            Part::ToolCall(ToolCall {
                id: "a".into(),
                name: "f".into(),
                arguments: r#"{"x":1}"#.into(),
                signature: Some("Z2Vt".into()),
                cache: None,
            }),
        ],
        finish: Some(Finish::ToolCalls),
        stop_sequence: None,
        usage: Some(Usage {
            input: 10,
            cached_input: 2,
            cache_write: 5,
            output: 4,
            reasoning: 1,
            ..Usage::default()
        }),
    };
    let expected = concat!(
        r#"{"id":"msg_01","object":"response","created_at":7,"status":"completed","background":false,"error":null,"#,
        r#""incomplete_details":null,"instructions":null,"max_output_tokens":null,"model":"m-1","output":["#,
        r#"{"type":"reasoning","id":"rs_msg01_0","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"turnpike.signature.c2ln"},"#,
        r#"{"type":"reasoning","id":"rs_msg01_1","summary":[],"encrypted_content":"turnpike.redacted.ZA"},"#,
        r#"{"type":"message","id":"msg_msg01_2","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"so"}]},"#,
        r#"{"type":"function_call","id":"fc_msg01_3","status":"completed","call_id":"a__thought__Z2Vt","name":"f","arguments":"{\"x\":1}"}],"#,
        r#""parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":false,"temperature":null,"#,
        r#""text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":null,"truncation":"disabled","#,
        r#""usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":5},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":14},"#,
        r#""user":null,"metadata":{}}"#,
    );
    assert_eq!(print(&answer), expected);
}

#[test]
fn how_an_answer_ended_is_said_by_status_and_details() {
    let cases = [
        (None, "completed", "null"),
        (Some(Finish::Stop), "completed", "null"),
        (Some(Finish::ToolCalls), "completed", "null"),
        (
            Some(Finish::Length),
            "incomplete",
            r#"{"reason":"max_output_tokens"}"#,
        ),
        (
            Some(Finish::ContentFilter),
            "incomplete",
            r#"{"reason":"content_filter"}"#,
        ),
        (
            Some(Finish::Refusal),
            "incomplete",
            r#"{"reason":"content_filter"}"#,
        ),
        (Some(Finish::Error), "failed", "null"),
    ];
    for (finish, status, details) in cases {
        let answer = Answer {
            parts: vec![text("a")],
            finish,
            ..Answer::default()
        };
        let printed: serde_json::Value = serde_json::from_str(&print(&answer)).unwrap();
        assert_eq!(printed["status"], status);
        assert_eq!(printed["incomplete_details"].to_string(), details);
        assert_eq!(printed["error"].is_null(), status != "failed");
        let is_whole = printed["output"][0]["status"] == "completed";
        assert_eq!(is_whole, status == "completed");
    }
}

#[test]
fn a_refusal_in_words_is_a_part_of_the_message() {
    let answer = Answer {
        parts: vec![text("well"), Part::Refusal("no".into())],
        finish: Some(Finish::Refusal),
        ..Answer::default()
    };
    let printed: serde_json::Value = serde_json::from_str(&print(&answer)).unwrap();
    assert_eq!(printed["status"], "completed");
    assert_eq!(printed["output"].as_array().unwrap().len(), 1);
    let refusal = serde_json::json!({"type": "refusal", "refusal": "no"});
    assert_eq!(printed["output"][0]["content"][1], refusal);
}

#[test]
fn an_answer_without_names_has_those_of_the_request() {
    let printed: serde_json::Value = serde_json::from_str(&print(&Answer::default())).unwrap();
    assert_eq!(printed["id"], "req-1");
    assert_eq!(printed["model"], "alias");
    assert_eq!(printed["output"], serde_json::json!([]));
    assert!(printed["usage"].is_null());
}

/// OpenAI takes no id of more than 64 characters back.
#[test]
fn items_have_short_ids_however_long_the_answers_is() {
    let answer = Answer {
        id: "x-".repeat(100).into(),
        parts: vec![text("a")],
        ..Answer::default()
    };
    let printed: serde_json::Value = serde_json::from_str(&print(&answer)).unwrap();
    let id = format!("msg_{}_0", "x".repeat(40));
    assert_eq!(printed["output"][0]["id"], id);
}
