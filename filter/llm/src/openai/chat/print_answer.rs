//! Prints a whole answer for a client.

use serde::Serialize;

use super::thought::{BlockShown, SignedId};
use crate::conversation::{Answer, Finish, Part, Thinking, ToolCall};
use crate::openai::usage::UsageShown;
use crate::translate::AnswerTerms;

/// Prints an answer.
pub(crate) fn print_answer(answer: &Answer<'_>, terms: &AnswerTerms<'_>) -> Vec<u8> {
    let message = message(answer);
    let has_refusal = message.refusal.is_some();
    let completion = Completion {
        id: or_else(&answer.id, terms.request_id),
        object: "chat.completion",
        created: terms.created_at_s,
        model: or_else(&answer.model, terms.model),
        choices: [Choice {
            index: 0,
            finish_reason: match answer.finish {
                Some(finish) => word(finish, has_refusal),
                None if !message.tool_calls.is_empty() => "tool_calls",
                None => "stop",
            },
            message,
            logprobs: None,
            stop_reason: answer.stop_sequence.as_deref(),
        }],
        usage: answer.usage.as_ref().map(UsageShown::from),
    };
    serde_json::to_vec(&completion).unwrap_or_default()
}

/// The word for why an answer ended. A refusal in words is a stop; one without is a filter's.
pub(super) fn word(finish: Finish, has_refusal: bool) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::Refusal if has_refusal => "stop",
        Finish::ContentFilter | Finish::Refusal => "content_filter",
        // OpenAI has none; this is OpenRouter's.
        Finish::Error => "error",
    }
}

pub(super) fn or_else<'a>(told: &'a str, otherwise: &'a str) -> &'a str {
    if told.is_empty() { otherwise } else { told }
}

#[derive(Serialize)]
struct Completion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [Choice<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageShown>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    message: MessageShown<'a>,
    logprobs: Option<()>,
    finish_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
}

#[derive(Serialize)]
struct MessageShown<'a> {
    role: &'static str,
    content: Option<String>,
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thinking_blocks: Vec<BlockShown<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallShown<'a>>,
}

#[derive(Serialize)]
struct CallShown<'a> {
    id: SignedId<'a>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledShown<'a>,
}

#[derive(Serialize)]
struct CalledShown<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// Content is null where something else stands for it, as at OpenAI.
fn message<'a>(answer: &'a Answer<'_>) -> MessageShown<'a> {
    let refusals = answer.parts.iter().filter_map(|part| match part {
        Part::Refusal(text) => Some(text.as_ref()),
        _ => None,
    });
    let refusal: String = refusals.collect();
    let refusal = Some(refusal).filter(|refusal| !refusal.is_empty());
    let tool_calls: Vec<_> = answer.calls().map(call).collect();
    let text = answer.text();
    let is_other = text.is_empty() && (refusal.is_some() || !tool_calls.is_empty());
    let reasoning: String = answer.thinking().filter_map(shown_text).collect();
    MessageShown {
        role: "assistant",
        content: (!is_other).then_some(text),
        refusal,
        reasoning_content: Some(reasoning).filter(|reasoning| !reasoning.is_empty()),
        thinking_blocks: thinking_blocks(answer),
        tool_calls,
    }
}

fn call<'a>(call: &'a ToolCall<'_>) -> CallShown<'a> {
    CallShown {
        id: SignedId {
            id: &call.id,
            signature: call.signature.as_deref(),
        },
        kind: "function",
        function: CalledShown {
            name: &call.name,
            arguments: &call.arguments,
        },
    }
}

fn shown_text<'a>(thinking: &'a Thinking<'_>) -> Option<&'a str> {
    match thinking {
        Thinking::Shown { text, .. } => Some(text),
        Thinking::Redacted { .. } => None,
    }
}

/// Blocks say more than the text only where something is signed or hidden.
fn thinking_blocks<'a>(answer: &'a Answer<'_>) -> Vec<BlockShown<'a>> {
    let is_mere_text = |thinking: &Thinking<'_>| matches!(thinking, Thinking::Shown { signature, .. } if signature.is_none());
    if answer.thinking().all(is_mere_text) {
        return Vec::new();
    }
    answer.thinking().map(BlockShown::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::Usage;

    fn print(answer: &Answer<'_>) -> String {
        let terms = AnswerTerms {
            request_id: "req-1",
            model: "alias",
            created_at_s: 7,
            shows_usage: false,
        };
        String::from_utf8(print_answer(answer, &terms)).unwrap()
    }

    fn shown(text: &'static str, signature: Option<&'static str>) -> Part<'static> {
        Part::Thinking(Thinking::Shown {
            text: text.into(),
            signature: signature.map(Into::into),
        })
    }

    #[test]
    fn all_of_an_answer_is_printed() {
        let answer = Answer {
            id: "msg_1".into(),
            model: "m-1".into(),
            parts: vec![
                shown("hm", Some("c2ln")),
                Part::Text {
                    text: "so".into(),
                    cache: None,
                },
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
                cache_write_1h: 3,
                output: 4,
                reasoning: 1,
                ..Usage::default()
            }),
        };
        let expected = concat!(
            r#"{"id":"msg_1","object":"chat.completion","created":7,"model":"m-1","choices":[{"index":0,"#,
            r#""message":{"role":"assistant","content":"so","refusal":null,"reasoning_content":"hm","#,
            r#""thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"c2ln"}],"#,
            r#""tool_calls":[{"id":"a__thought__Z2Vt","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},"#,
            r#""logprobs":null,"finish_reason":"tool_calls"}],"#,
            r#""usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"#,
            r#""prompt_tokens_details":{"cached_tokens":2,"audio_tokens":0,"cache_write_tokens":5},"#,
            r#""completion_tokens_details":{"reasoning_tokens":1,"audio_tokens":0},"#,
            r#""cache_creation":{"ephemeral_1h_input_tokens":3}}}"#,
        );
        assert_eq!(print(&answer), expected);
    }

    #[test]
    fn an_answer_without_words_has_them_empty_and_names_of_the_request() {
        let expected = concat!(
            r#"{"id":"req-1","object":"chat.completion","created":7,"model":"alias","choices":[{"index":0,"#,
            r#""message":{"role":"assistant","content":"","refusal":null},"#,
            r#""logprobs":null,"finish_reason":"stop"}]}"#,
        );
        assert_eq!(print(&Answer::default()), expected);
        let refused = Answer {
            parts: vec![Part::Refusal("no".into())],
            finish: Some(Finish::Refusal),
            ..Answer::default()
        };
        let printed = print(&refused);
        assert!(
            printed.contains(r#""content":null,"refusal":"no""#),
            "{printed}"
        );
        assert!(printed.contains(r#""finish_reason":"stop""#));
    }

    #[test]
    fn thinking_that_is_neither_signed_nor_hidden_needs_no_blocks() {
        let answer = Answer {
            parts: vec![shown("hm", None)],
            ..Answer::default()
        };
        assert!(!print(&answer).contains("thinking_blocks"));
    }
}
