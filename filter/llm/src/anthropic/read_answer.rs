//! Reads a provider's whole answer.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::document::{Block, Message, Said, finish};
use super::reported::Reported;
use crate::conversation::{Answer, Part, Thinking, ToolCall};

/// Reads an answer; `None`: it is none.
pub(crate) fn read_answer(document: &[u8]) -> Option<Answer<'_>> {
    let is_object = document.trim_ascii_start().starts_with(b"{");
    let message: Message<'_> = is_object.then(|| serde_json::from_slice(document).ok())??;
    let mut reported = Reported::default();
    message
        .usage
        .into_iter()
        .for_each(|usage| reported.add(usage));
    // An error has neither.
    if message.content.is_empty() && message.stop_reason.is_none() {
        return None;
    }
    Some(Answer {
        id: message.id,
        model: message.model,
        parts: message.content.into_iter().filter_map(part).collect(),
        finish: message.stop_reason.map(finish),
        stop_sequence: message.stop_sequence.map(Said::text),
        usage: reported.canonical(),
    })
}

/// Blocks of Anthropic's own tools say nothing that another API could.
fn part(block: Block<'_>) -> Option<Part<'_>> {
    Some(match block.kind {
        "text" => Part::Text {
            text: Said::filled(block.text)?,
            cache: None,
        },
        "thinking" => Part::Thinking(Thinking::Shown {
            text: Said::filled(block.thinking).unwrap_or_default(),
            signature: Said::filled(block.signature),
        }),
        "redacted_thinking" => Part::Thinking(Thinking::Redacted {
            data: block.data?.text(),
        }),
        "tool_use" => Part::ToolCall(ToolCall {
            id: block.id?.text(),
            name: block.name?.text(),
            arguments: Cow::Borrowed(block.input.map_or("{}", RawValue::get)),
            signature: None,
            cache: None,
        }),
        _ => return None,
    })
}
