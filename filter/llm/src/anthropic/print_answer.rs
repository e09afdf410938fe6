//! Prints a whole answer for a client of Anthropic's Messages.

use std::borrow::Cow;

use serde::Serialize;

use super::block::{Block, input};
use super::print_events::UsageShown;
use crate::conversation::{Answer, Finish, Part, Thinking};
use crate::openai::chat::thought::SignedId;
use crate::translate::AnswerTerms;

#[derive(Serialize)]
struct Document<'r> {
    id: Cow<'r, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'r str,
    content: Vec<Block<'r>>,
    stop_reason: &'static str,
    stop_sequence: Option<&'r str>,
    usage: UsageShown,
}

/// Prints an answer.
pub(crate) fn print_answer(answer: &Answer<'_>, terms: &AnswerTerms<'_>) -> Vec<u8> {
    let document = Document {
        id: message_id(&answer.id, terms.request_id),
        kind: "message",
        role: "assistant",
        model: terms.model,
        content: answer.parts.iter().filter_map(block).collect(),
        stop_reason: stop_reason(
            answer.finish.unwrap_or(Finish::Stop),
            answer.stop_sequence.is_some(),
        ),
        stop_sequence: answer.stop_sequence.as_deref(),
        usage: UsageShown::of(&answer.usage.unwrap_or_default()),
    };
    serde_json::to_vec(&document).unwrap_or_default()
}

/// The provider's id, or one of the request's.
pub(super) fn message_id<'r>(id: &'r str, request_id: &str) -> Cow<'r, str> {
    if id.is_empty() {
        Cow::Owned(format!("msg_{request_id}"))
    } else {
        Cow::Borrowed(id)
    }
}

/// The word of a finish.
pub(super) const fn stop_reason(finish: Finish, has_sequence: bool) -> &'static str {
    match finish {
        Finish::Stop if has_sequence => "stop_sequence",
        Finish::Stop | Finish::Error => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
        Finish::ContentFilter | Finish::Refusal => "refusal",
    }
}

fn block<'r>(part: &'r Part<'_>) -> Option<Block<'r>> {
    Some(match part {
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

/// A call's id with the signature in it, which comes back with the result.
pub(super) fn signed_id<'r>(id: &'r str, signature: Option<&str>) -> Cow<'r, str> {
    match signature {
        None => Cow::Borrowed(id),
        signature => Cow::Owned(SignedId { id, signature }.to_string()),
    }
}
