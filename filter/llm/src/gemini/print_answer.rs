//! Prints a whole answer for a client of Gemini's API.

use super::document::Document;
use super::print_contents::Part;
use crate::conversation::{Answer, Part as Said, Thinking};
use crate::translate::AnswerTerms;

/// Prints an answer.
pub(crate) fn print_answer(answer: &Answer<'_>, terms: &AnswerTerms<'_>) -> Vec<u8> {
    let parts = answer.parts.iter().filter_map(part).collect();
    let id = if answer.id.is_empty() {
        terms.request_id
    } else {
        &answer.id
    };
    let document = Document::new(parts, answer.finish, terms.model, id);
    let document = document.with_usage(answer.usage.as_ref());
    serde_json::to_vec(&document).unwrap_or_default()
}

fn part<'r>(said: &'r Said<'_>) -> Option<Part<'r>> {
    match said {
        Said::Text { text, .. } | Said::Refusal(text) => Some(Part::text(text)),
        Said::Thinking(Thinking::Shown { text, signature }) => {
            Some(Part::thought(text, signature.as_deref()))
        }
        // Encrypted reasoning has no other place: it comes back as a signature without words.
        Said::Thinking(Thinking::Redacted { data }) => Some(Part::thought("", Some(data))),
        Said::ToolCall(call) => Some(Part::call(
            Some(&call.id),
            &call.name,
            &call.arguments,
            call.signature.as_deref(),
        )),
        Said::Image(_) | Said::Audio(_) | Said::File(_) | Said::ToolResult(_) => None,
    }
}

#[cfg(test)]
mod tests;
