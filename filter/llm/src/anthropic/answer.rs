//! What meters read of a message: a whole one, or the events of a stream. Which event it is, the
//! members say that it has.

use super::error::{self, ErrorParts};
use super::name::Name;
use super::reported::Reported;
use crate::json::{Leaf, Reader, unescape};
use crate::meter::ReadAnswer;
use crate::provider_error::ProviderError;
use crate::reading::{Finish, Reading};

const WORD_BYTES: usize = 40;

/// What has been read of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    reading: Reading,
    reported: Reported,
    error: ErrorParts,
    kind: Kind,
    index: Option<u32>,
}

/// The events that mean something by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Other,
    MessageStart,
    BlockStart,
    BlockStop,
    MessageStop,
}

impl Answer {
    fn show(&mut self, bytes: u64) {
        self.reading.visible_bytes += bytes;
        self.reading.has_content |= bytes > 0;
    }

    fn think(&mut self, bytes: u64) {
        self.show(bytes);
        self.reading.reasoning_bytes += bytes;
    }

    fn block_text(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let Leaf::Text { shown, bytes } = leaf else {
            return;
        };
        match path {
            [Name::Text | Name::PartialJson | Name::Called] | [Name::Input, ..] => self.show(bytes),
            [Name::Thinking] => self.think(bytes),
            [Name::Type] => self.reading.has_content |= is_content(shown),
            _ => {}
        }
    }

    fn usage(&mut self, path: &[Name], leaf: Leaf<'_>) {
        if let ([Name::ServiceTier], Leaf::Text { shown, bytes: 1.. }) = (path, leaf) {
            self.reading.service_tier = Some(unescape(shown));
            return;
        }
        self.reported.take(path, leaf);
    }
}

/// Blocks that are content as soon as they begin, whatever follows.
fn is_content(block_type: &[u8]) -> bool {
    block_type.ends_with(b"tool_use") || block_type == b"redacted_thinking"
}

impl ReadAnswer for Answer {
    fn begin_document(&mut self) {
        self.kind = Kind::Other;
        self.index = None;
    }

    fn end_document(&mut self, _name: &[u8]) {
        match self.kind {
            Kind::MessageStart => self.reading.is_output_early = true,
            Kind::BlockStart => self.reading.open_block = self.index,
            Kind::BlockStop => self.reading.open_block = None,
            Kind::MessageStop => self.reading.is_done = true,
            Kind::Other => {}
        }
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
            [Name::Type]
            | [Name::StopReason]
            | [Name::Delta, Name::StopReason]
            | [Name::ContentBlock, Name::Type]
            | [Name::Content, Name::Item, Name::Type]
            | [.., Name::Usage, Name::ServiceTier] => WORD_BYTES,
            [Name::Error, path @ ..] => ErrorParts::text_bytes_wanted(path),
            _ => 0,
        }
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        match (path, leaf) {
            ([Name::Type], Leaf::Text { shown, .. }) => self.kind = kind(shown),
            ([Name::Index], Leaf::Number(digits)) => {
                let digits = std::str::from_utf8(digits).unwrap_or_default();
                self.index = digits.parse().ok();
            }
            ([Name::StopReason] | [Name::Delta, Name::StopReason], Leaf::Text { shown, .. }) => {
                self.reading.finish = Some(finish(shown));
            }
            ([Name::Usage, path @ ..] | [Name::Message, Name::Usage, path @ ..], _) => {
                self.usage(path, leaf);
            }
            (
                [Name::Delta | Name::ContentBlock, path @ ..]
                | [Name::Content, Name::Item, path @ ..],
                _,
            ) => self.block_text(path, leaf),
            ([Name::Error, path @ ..], _) => self.error.take(path, leaf),
            _ => {}
        }
    }

    fn open(&mut self, path: &[Name]) {
        match path {
            [Name::Error] => self.error = ErrorParts::default(),
            // The usage of a message's end counts all of its output.
            [Name::Usage] => self.reading.is_output_early = false,
            _ => {}
        }
    }

    fn close(&mut self, path: &[Name]) {
        match path {
            [Name::Usage] | [Name::Message, Name::Usage] => {
                self.reading.usage = self.reported.canonical().or(self.reading.usage);
            }
            [Name::Error] => {
                let error = std::mem::take(&mut self.error).into_error();
                self.reading.error.get_or_insert(error);
            }
            _ => {}
        }
    }
}

fn kind(word: &[u8]) -> Kind {
    match word {
        b"message_start" => Kind::MessageStart,
        b"content_block_start" => Kind::BlockStart,
        b"content_block_stop" => Kind::BlockStop,
        b"message_stop" => Kind::MessageStop,
        _ => Kind::Other,
    }
}

fn finish(word: &[u8]) -> Finish {
    match word {
        b"end_turn" | b"stop_sequence" => Finish::Stop,
        b"max_tokens" | b"model_context_window_exceeded" => Finish::Length,
        b"tool_use" => Finish::ToolCalls,
        b"refusal" => Finish::ContentFilter,
        _ => Finish::Other,
    }
}

#[cfg(test)]
mod tests;
