//! Reads a provider's whole answer.

use std::borrow::Cow;

use super::document::{Call, Content, Document, Said, made_call_id};
use super::read_tools::arguments;
use super::thought::thinking;
use crate::conversation::{Answer, Part, Thinking, ToolCall};

/// Reads an answer; `None`: it is none.
pub(crate) fn read_answer(document: &[u8]) -> Option<Answer<'_>> {
    let document = Document::parse(document)?;
    let choice = document.first_choice()?;
    let id = document.id();
    let parts = choice.said().map(|said| parts(said, &id));
    let parts = parts.unwrap_or_default();
    let has_calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let has_refusal = parts.iter().any(|part| matches!(part, Part::Refusal(_)));
    Some(Answer {
        model: document.model(),
        finish: choice.finish(has_refusal, has_calls),
        stop_sequence: choice.stop_sequence(),
        usage: document.usage(),
        parts,
        id,
    })
}

fn parts<'a>(said: &Said<'a>, answer_id: &str) -> Vec<Part<'a>> {
    let mut parts = thinking(said.thinking_blocks, said.reasoning());
    said.each_content(&mut |content| {
        parts.push(match content {
            Content::Text(text) => Part::Text { text, cache: None },
            Content::Thinking(text) => Part::Thinking(Thinking::Shown {
                text,
                signature: None,
            }),
        });
    });
    parts.extend(said.refusal().map(Part::Refusal));
    let calls = said.tool_calls.iter().flatten().enumerate();
    parts.extend(calls.map(|(at, call)| Part::ToolCall(tool_call(call, answer_id, at))));
    parts
}

fn tool_call<'a>(call: &Call<'a>, answer_id: &str, at: usize) -> ToolCall<'a> {
    let made_id = || Cow::Owned(made_call_id(answer_id, at));
    ToolCall {
        id: call.id().unwrap_or_else(made_id),
        name: call.name().unwrap_or_default(),
        arguments: arguments(call.arguments()),
        signature: None,
        cache: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Finish;
    use crate::usage::Usage;

    fn call(id: &str, arguments: &str) -> Part<'static> {
        Part::ToolCall(ToolCall {
            id: id.to_owned().into(),
            name: "f".into(),
            arguments: arguments.to_owned().into(),
            signature: None,
            cache: None,
        })
    }

    fn text(text: &'static str) -> Part<'static> {
        Part::Text {
            text: text.into(),
            cache: None,
        }
    }

    fn shown(text: &'static str) -> Part<'static> {
        Part::Thinking(Thinking::Shown {
            text: text.into(),
            signature: None,
        })
    }

    fn parts_of(message: &str) -> Vec<Part<'static>> {
        let document = format!(r#"{{"id":"c-1","choices":[{{"message":{message}}}]}}"#);
        let document: &'static str = Box::leak(document.into_boxed_str());
        read_answer(document.as_bytes()).unwrap().parts
    }

    /// OpenAI's API reference, `chat/object`.
    #[test]
    fn an_answer_of_openai_is_read() {
        let document = br#"{"id":"chatcmpl-B9MHDb","object":"chat.completion","created":1741570283,
            "model":"gpt-4o-2024-08-06","choices":[{"index":0,"message":{"role":"assistant",
            "content":"Hi","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],
            "usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,
            "prompt_tokens_details":{"cached_tokens":3,"audio_tokens":0},
            "completion_tokens_details":{"reasoning_tokens":4,"audio_tokens":0}},
            "service_tier":"default","system_fingerprint":"fp_1"}"#;
        let expected = Answer {
            id: "chatcmpl-B9MHDb".into(),
            model: "gpt-4o-2024-08-06".into(),
            parts: vec![text("Hi")],
            finish: Some(Finish::Stop),
            stop_sequence: None,
            usage: Some(Usage {
                input: 19,
                cached_input: 3,
                output: 10,
                reasoning: 4,
                ..Usage::default()
            }),
        };
        assert_eq!(read_answer(document), Some(expected));
    }

    #[test]
    fn everything_that_an_assistant_says_is_read() {
        let table = [
            (
                r#"{"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},
                {"function":{"name":"f","arguments":{"x":2}}},{"id":"b","function":{"name":"f"}}]}"#,
                vec![
                    call("a", r#"{"x":1}"#),
                    call("call_c1_1", r#"{"x":2}"#),
                    call("b", "{}"),
                ],
            ),
            (
                r#"{"content":"42","reasoning_content":"hm","reasoning":"hm"}"#,
                vec![shown("hm"), text("42")],
            ),
            (
                r#"{"content":"42","reasoning":"hm","reasoning_details":[{"type":"reasoning.text"}]}"#,
                vec![shown("hm"), text("42")],
            ),
            (
                r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},
                {"type":"text","text":"42"}]}"#,
                vec![shown("hm"), text("42")],
            ),
            (
                r#"{"content":null,"refusal":"no"}"#,
                vec![Part::Refusal("no".into())],
            ),
            (r#"{"content":""}"#, vec![]),
        ];
        for (message, expected) in table {
            assert_eq!(parts_of(message), expected, "{message}");
        }
    }

    #[test]
    fn reasons_to_end_are_told_apart() {
        let calls = r#""tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]"#;
        for (word, members, finish) in [
            ("stop", "", Finish::Stop),
            ("stop", calls, Finish::ToolCalls),
            ("stop", r#""refusal":"no""#, Finish::Refusal),
            ("tool_calls", calls, Finish::ToolCalls),
            ("model_length", "", Finish::Length),
            ("content_filter", "", Finish::ContentFilter),
            ("insufficient_system_resource", "", Finish::Error),
            ("a new one", "", Finish::Stop),
        ] {
            let document = format!(
                r#"{{"choices":[{{"message":{{{members}}},"finish_reason":"{word}","stop_reason":7}}]}}"#
            );
            let answer = read_answer(document.as_bytes()).unwrap();
            assert_eq!(answer.finish, Some(finish), "{word} {members}");
        }
    }

    #[test]
    fn what_has_no_choice_is_no_answer() {
        for document in [
            "",
            "[]",
            "{}",
            r#"{"choices":[]}"#,
            r#"{"choices":null}"#,
            r#"{"error":{"message":"x"}}"#,
        ] {
            assert_eq!(read_answer(document.as_bytes()), None, "{document}");
        }
    }
}
