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
