//! Prints a whole answer for a client.

use super::shown::{
    Content, Head, Item, ItemId, Outcome, ResponseShown, Summary, answer_name, or_else,
};
use super::thought::Sealed;
use crate::conversation::{Answer, Part, Thinking};
use crate::openai::chat::thought::SignedId;
use crate::translate::AnswerTerms;

/// Prints an answer.
pub(crate) fn print_answer(answer: &Answer<'_>, terms: &AnswerTerms<'_>) -> Vec<u8> {
    let id = or_else(&answer.id, terms.request_id);
    let name = answer_name(id);
    let is_refusal = |part: &Part<'_>| matches!(part, Part::Refusal(_));
    let outcome = Outcome::of(answer.finish, answer.parts.iter().any(is_refusal));
    let head = Head {
        id,
        model: or_else(&answer.model, terms.model),
        created_at_s: terms.created_at_s,
    };
    let output = output(answer, &name, outcome);
    let response = ResponseShown::new(head, outcome, output, answer.usage.as_ref());
    serde_json::to_vec(&response).unwrap_or_default()
}

/// The items of an answer. Texts that follow each other are of one message.
fn output<'a>(answer: &'a Answer<'_>, name: &'a str, outcome: Outcome) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    for part in &answer.parts {
        match part {
            Part::Text { text, .. } => say(&mut items, Content::text(text), name),
            Part::Refusal(refusal) => say(&mut items, Content::Refusal { refusal }, name),
            Part::Thinking(thinking) => items.push(Item::Reasoning {
                id: item_id(Item::REASONING, name, items.len()),
                summary: summary(thinking),
                encrypted_content: Sealed::of(thinking),
            }),
            Part::ToolCall(call) => items.push(Item::FunctionCall {
                id: item_id(Item::CALL, name, items.len()),
                status: Outcome::Completed.item_status(),
                call_id: SignedId {
                    id: &call.id,
                    signature: call.signature.as_deref(),
                },
                name: &call.name,
                arguments: &call.arguments,
            }),
            // No answer has these.
            Part::Image(_) | Part::Audio(_) | Part::File(_) | Part::ToolResult(_) => {}
        }
    }
    if let Some(Item::Message { status, .. } | Item::FunctionCall { status, .. }) = items.last_mut()
    {
        *status = outcome.item_status();
    }
    items
}

fn say<'a>(items: &mut Vec<Item<'a>>, said: Content<'a>, name: &'a str) {
    if let Some(Item::Message { content, .. }) = items.last_mut() {
        return content.push(said);
    }
    items.push(Item::Message {
        id: item_id(Item::MESSAGE, name, items.len()),
        status: Outcome::Completed.item_status(),
        role: "assistant",
        content: vec![said],
    });
}

const fn item_id<'a>(prefix: &'static str, answer: &'a str, output_index: usize) -> ItemId<'a> {
    ItemId {
        prefix,
        answer,
        output_index,
    }
}

fn summary<'a>(thinking: &'a Thinking<'_>) -> Vec<Summary<'a>> {
    match thinking {
        Thinking::Shown { text, .. } => Summary::of(text),
        Thinking::Redacted { .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
