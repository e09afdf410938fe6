//! Reads a provider's whole answer.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::document::{self, Block, Reasoning, ToolUse, finish, stop_sequence};
use super::reported::Reported;
use crate::anthropic::Said;
use crate::conversation::{Answer, Part, Thinking, ToolCall};

/// Reads an answer; `None`: it is none. It has neither id nor model: the one is in a header, the
/// other in the path.
pub(crate) fn read_answer(document: &[u8]) -> Option<Answer<'_>> {
    let is_object = document.trim_ascii_start().starts_with(b"{");
    let told: document::Answer<'_> = is_object.then(|| serde_json::from_slice(document).ok())??;
    let mut reported = Reported::default();
    told.usage.into_iter().for_each(|usage| reported.add(usage));
    let mut parts = Vec::with_capacity(told.output.message.content.len());
    for block in told.output.message.content {
        add(block, &mut parts);
    }
    Some(Answer {
        parts,
        finish: told.stop_reason.map(finish),
        stop_sequence: stop_sequence(told.additional_model_response_fields),
        usage: reported.canonical(),
        ..Answer::default()
    })
}

/// Blocks that the service's own tools leave say nothing that another API could.
fn add<'a>(block: Block<'a>, parts: &mut Vec<Part<'a>>) {
    let text = |text| Part::Text { text, cache: None };
    parts.extend(Said::filled(block.text).map(text));
    let cited = block.citations_content.map(|cited| cited.content);
    for piece in cited.into_iter().flatten() {
        parts.extend(Said::filled(piece.text).map(text));
    }
    if let Some(reasoning) = block.reasoning_content {
        parts.extend(thinking(reasoning).map(Part::Thinking));
    }
    parts.extend(block.tool_use.map(call).map(Part::ToolCall));
}

fn thinking(reasoning: Reasoning<'_>) -> Option<Thinking<'_>> {
    if let Some(data) = Said::filled(reasoning.redacted_content) {
        return Some(Thinking::Redacted { data });
    }
    let told = reasoning.reasoning_text?;
    Some(Thinking::Shown {
        text: Said::filled(told.text).unwrap_or_default(),
        signature: Said::filled(told.signature),
    })
}

fn call(told: ToolUse<'_>) -> ToolCall<'_> {
    ToolCall {
        id: Said::filled(told.tool_use_id).unwrap_or_default(),
        name: Said::filled(told.name).unwrap_or_default(),
        arguments: Cow::Borrowed(told.input.map_or("{}", RawValue::get)),
        signature: None,
        cache: None,
    }
}

#[cfg(test)]
mod tests;
