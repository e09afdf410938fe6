//! What meters read of an answer: a whole one, or the events of a stream. Their members say what
//! they are; only an end that says nothing is known by its event's name.

use super::error;
use super::name::Name;
use super::reported::{Reported, TTL_BYTES};
use crate::json::{Leaf, Reader, unescape};
use crate::meter::ReadAnswer;
use crate::provider_error::ProviderError;
use crate::reading::{Finish, Reading};

const WORD_BYTES: usize = 40;
/// The event that comes last, with the usage.
const LAST: &[u8] = b"metadata";

/// What has been read of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    reading: Reading,
    reported: Reported,
}

impl Answer {
    fn show(&mut self, bytes: u64) {
        self.reading.visible_bytes += bytes;
        self.reading.has_content |= bytes > 0;
    }

    /// A leaf of a block, or of what is new of one.
    fn block_leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        match (path, leaf) {
            (
                [Name::Text]
                | [Name::ToolUse, Name::Called]
                | [Name::ToolUse, Name::Input, ..]
                | [
                    Name::CitationsContent,
                    Name::Content,
                    Name::Item,
                    Name::Text,
                ],
                Leaf::Text { bytes, .. },
            ) => self.show(bytes),
            ([Name::ToolUse, Name::Input, ..], Leaf::Number(digits)) => {
                self.show(digits.len() as u64);
            }
            (
                [Name::ReasoningContent, Name::Text]
                | [Name::ReasoningContent, Name::ReasoningText, Name::Text],
                Leaf::Text { bytes, .. },
            ) => {
                self.show(bytes);
                self.reading.reasoning_bytes += bytes;
            }
            ([Name::ReasoningContent, Name::RedactedContent], Leaf::Text { .. }) => {
                self.reading.has_content = true;
            }
            _ => {}
        }
    }
}

/// The path within a block, whole or in an event.
fn within_block(path: &[Name]) -> Option<&[Name]> {
    match path {
        [Name::Delta | Name::Start, path @ ..]
        | [
            Name::Output,
            Name::Message,
            Name::Content,
            Name::Item,
            path @ ..,
        ] => Some(path),
        _ => None,
    }
}

impl ReadAnswer for Answer {
    fn begin_document(&mut self) {}

    fn end_document(&mut self, name: &[u8]) {
        self.reading.is_done |= name == LAST;
    }

    fn reading(&self) -> &Reading {
        &self.reading
    }

    fn reading_mut(&mut self) -> &mut Reading {
        &mut self.reading
    }

    fn parse_error(document: &[u8]) -> Option<ProviderError> {
        error::parse(document)
    }
}

impl Reader for Answer {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, path: &[Name]) -> usize {
        match path {
            [Name::StopReason] | [Name::ServiceTier, Name::Type] => WORD_BYTES,
            [Name::Usage, Name::CacheDetails, ..] => TTL_BYTES,
            _ => 0,
        }
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        match (path, leaf) {
            ([Name::StopReason], Leaf::Text { shown, .. }) => {
                self.reading.finish = Some(finish(shown));
            }
            ([Name::ServiceTier, Name::Type], Leaf::Text { shown, bytes: 1.. }) => {
                self.reading.service_tier = Some(unescape(shown));
            }
            ([Name::Usage, path @ ..], _) => self.reported.take(path, leaf),
            _ => {
                if let Some(path) = within_block(path) {
                    self.block_leaf(path, leaf);
                }
            }
        }
    }

    fn open(&mut self, path: &[Name]) {
        if let [Name::Usage, path @ ..] = path {
            self.reported.open(path);
        }
        self.reading.has_content |= within_block(path) == Some(&[Name::ToolUse]);
    }

    fn close(&mut self, path: &[Name]) {
        if let [Name::Usage, path @ ..] = path {
            self.reported.close(path);
        }
        if path == [Name::Usage] {
            self.reading.usage = self.reported.canonical().or(self.reading.usage);
        }
    }
}

/// What a `stopReason` means.
pub(super) fn finish(word: &[u8]) -> Finish {
    match word {
        b"end_turn" | b"stop_sequence" => Finish::Stop,
        b"max_tokens" | b"model_context_window_exceeded" => Finish::Length,
        b"tool_use" => Finish::ToolCalls,
        b"guardrail_intervened" | b"content_filtered" => Finish::ContentFilter,
        b"malformed_model_output" | b"malformed_tool_use" => Finish::Error,
        _ => Finish::Other,
    }
}

#[cfg(test)]
mod tests;
