//! Prints a whole answer for a client of Anthropic's Messages.

use super::block::{Block, input};
use super::message::{MessageShown, signed_id, stop_reason};
use crate::conversation::{Answer, Finish, Part, Thinking};
use crate::translate::AnswerTerms;

/// Prints an answer.
pub(crate) fn print_answer(answer: &Answer<'_>, terms: &AnswerTerms<'_>) -> Vec<u8> {
    let finish = answer.finish.unwrap_or(Finish::Stop);
    let usage = answer.usage.unwrap_or_default();
    let message = MessageShown {
        content: answer.parts.iter().filter_map(block).collect(),
        stop_reason: Some(stop_reason(finish, answer.stop_sequence.is_some())),
        stop_sequence: answer.stop_sequence.as_deref(),
        ..MessageShown::new(&answer.id, terms.request_id, terms.model, &usage)
    };
    serde_json::to_vec(&message).unwrap_or_default()
}

/// A part as a block. Empty text is none: a client that sent it back would be refused.
fn block<'r>(part: &'r Part<'_>) -> Option<Block<'r>> {
    Some(match part {
        Part::Text { text, .. } | Part::Refusal(text) if text.is_empty() => return None,
        Part::Text { text, .. } | Part::Refusal(text) => Block::Text {
            text,
            cache_control: None,
        },
        Part::Thinking(Thinking::Shown { text, signature }) => Block::Thinking {
            thinking: text,
            signature: signature.as_deref().unwrap_or_default(),
        },
        Part::Thinking(Thinking::Redacted { data }) => Block::RedactedThinking { data },
        Part::ToolCall(call) => Block::ToolUse {
            id: signed_id(&call.id, call.signature.as_deref()),
            name: &call.name,
            input: input(&call.arguments),
            cache_control: None,
        },
        Part::Image(_) | Part::Audio(_) | Part::File(_) | Part::ToolResult(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::conversation::ToolCall;

    fn printed(answer: &Answer<'_>) -> Value {
        let terms = AnswerTerms {
            request_id: "id-1",
            model: "alias",
            created_at_s: 0,
            shows_usage: true,
        };
        serde_json::from_slice(&print_answer(answer, &terms)).unwrap()
    }

    fn call(arguments: &'static str) -> Part<'static> {
        Part::ToolCall(ToolCall {
            id: "c1".into(),
            name: "f".into(),
            arguments: arguments.into(),
            signature: None,
            cache: None,
        })
    }

    /// The form is of Anthropic's API reference, "Create a Message".
    #[test]
    fn an_answer_is_a_message_and_empty_text_is_left_away() {
        let empty = Part::Text {
            text: "".into(),
            cache: None,
        };
        let answer = Answer {
            model: "gpt".into(),
            parts: vec![empty, Part::Refusal("No.".into()), call(r#"{"a": 1}"#)],
            finish: Some(Finish::ToolCalls),
            ..Answer::default()
        };
        let expected = json!({"id": "msg_id-1", "type": "message", "role": "assistant",
            "model": "alias", "stop_reason": "tool_use", "stop_sequence": null,
            "content": [{"type": "text", "text": "No."},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}],
            "usage": {"input_tokens": 0, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0, "output_tokens": 0}});
        assert_eq!(printed(&answer), expected);
    }

    #[test]
    fn arguments_that_are_no_object_are_kept_inside_one() {
        for (arguments, input) in [
            ("", json!({})),
            (" {\"a\":[]} ", json!({"a": []})),
            ("[1]", json!({"arguments": "[1]"})),
            ("{\"a\":", json!({"arguments": "{\"a\":"})),
        ] {
            let answer = Answer {
                parts: vec![call(arguments)],
                ..Answer::default()
            };
            assert_eq!(printed(&answer)["content"][0]["input"], input);
        }
    }
}
