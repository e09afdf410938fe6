//! What meters read of a `GenerateContentResponse`: a whole one, a chunk of a stream, or the array
//! of chunks that a stream without `alt=sse` is.

use super::error::{self, ErrorParts};
use super::name::Name;
use super::reported::{NUMBER_BYTES, Reported};
use crate::json::{Leaf, Reader};
use crate::meter::ReadAnswer;
use crate::provider_error::ProviderError;
use crate::reading::{Finish, Reading};

const FINISH_BYTES: usize = 32;

/// What has been read of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    reading: Reading,
    reported: Reported,
    error: ErrorParts,
    part: Part,
    candidate: Candidate,
    has_call: bool,
}

/// Facts of the one part at hand, known when it ends: whether it is a thought may be told last.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    text_bytes: u64,
    is_thought: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    is_later: bool,
    finish: Option<Finish>,
}

impl Answer {
    fn part_leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        match (path, leaf) {
            ([Name::Text], Leaf::Text { bytes, .. }) => self.part.text_bytes += bytes,
            ([Name::Thought], Leaf::Bool(is_thought)) => self.part.is_thought = is_thought,
            ([Name::FunctionCall, ..], Leaf::Text { bytes, .. }) => self.part.text_bytes += bytes,
            ([Name::FunctionCall, Name::Args, ..], Leaf::Number(digits)) => {
                self.part.text_bytes += digits.len() as u64;
            }
            _ => {}
        }
    }

    fn end_part(&mut self) {
        let part = std::mem::take(&mut self.part);
        self.reading.visible_bytes += part.text_bytes;
        self.reading.has_content |= part.text_bytes > 0;
        if part.is_thought {
            self.reading.reasoning_bytes += part.text_bytes;
        }
    }

    fn end_candidate(&mut self) {
        let candidate = std::mem::take(&mut self.candidate);
        let Some(finish) = candidate.finish else {
            return;
        };
        self.reading.is_done = true;
        if candidate.is_later && self.reading.finish.is_some() {
            return;
        }
        self.reading.finish = Some(match finish {
            // A call of a tool ends as a plain stop.
            Finish::Stop if self.has_call => Finish::ToolCalls,
            finish => finish,
        });
    }
}

impl ReadAnswer for Answer {
    fn begin_document(&mut self) {
        self.part = Part::default();
        self.candidate = Candidate::default();
        self.error = ErrorParts::default();
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
        match within(path) {
            [Name::Candidates, Name::Item, Name::FinishReason]
            | [Name::PromptFeedback, Name::BlockReason] => FINISH_BYTES,
            [Name::UsageMetadata, ..] => NUMBER_BYTES,
            [Name::Error, path @ ..] => ErrorParts::text_bytes_wanted(path),
            _ => 0,
        }
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        match (within(path), leaf) {
            (
                [
                    Name::Candidates,
                    Name::Item,
                    Name::Content,
                    Name::Parts,
                    Name::Item,
                    path @ ..,
                ],
                _,
            ) => self.part_leaf(path, leaf),
            ([Name::Candidates, Name::Item, Name::Index], Leaf::Number(index)) => {
                self.candidate.is_later = index != b"0";
            }
            ([Name::Candidates, Name::Item, Name::FinishReason], Leaf::Text { shown, .. }) => {
                self.candidate.finish = finish(shown);
            }
            ([Name::PromptFeedback, Name::BlockReason], Leaf::Text { shown, .. })
                if shown != b"BLOCK_REASON_UNSPECIFIED" =>
            {
                self.reading.finish = Some(Finish::ContentFilter);
                self.reading.is_done = true;
            }
            ([Name::UsageMetadata, path @ ..], _) => self.reported.take(path, leaf),
            ([Name::Error, path @ ..], _) => self.error.take(path, leaf),
            _ => {}
        }
    }

    fn open(&mut self, path: &[Name]) {
        match within(path) {
            [Name::UsageMetadata] => self.reported = Reported::default(),
            [
                Name::Candidates,
                Name::Item,
                Name::Content,
                Name::Parts,
                Name::Item,
                Name::FunctionCall,
            ] => {
                self.has_call = true;
                self.reading.has_content = true;
            }
            [
                Name::Candidates,
                Name::Item,
                Name::Content,
                Name::Parts,
                Name::Item,
                Name::InlineData,
            ] => self.reading.has_content = true,
            _ => {}
        }
    }

    fn close(&mut self, path: &[Name]) {
        match within(path) {
            [
                Name::Candidates,
                Name::Item,
                Name::Content,
                Name::Parts,
                Name::Item,
            ] => self.end_part(),
            [Name::Candidates, Name::Item] => self.end_candidate(),
            [Name::UsageMetadata, of, Name::Item] => self.reported.end_detail(*of),
            [Name::UsageMetadata] => {
                // Each chunk tells all so far.
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

/// A path within one response, which may stand in an array.
fn within(path: &[Name]) -> &[Name] {
    path.strip_prefix(&[Name::Item]).unwrap_or(path)
}

/// What a `finishReason` means; `None`: the candidate has not finished.
pub(super) fn finish(word: &[u8]) -> Option<Finish> {
    Some(match word {
        b"" | b"FINISH_REASON_UNSPECIFIED" => return None,
        b"STOP" => Finish::Stop,
        b"MAX_TOKENS" => Finish::Length,
        b"SAFETY"
        | b"RECITATION"
        | b"LANGUAGE"
        | b"BLOCKLIST"
        | b"PROHIBITED_CONTENT"
        | b"SPII"
        | b"IMAGE_SAFETY"
        | b"IMAGE_PROHIBITED_CONTENT"
        | b"IMAGE_RECITATION"
        | b"MODEL_ARMOR" => Finish::ContentFilter,
        b"MALFORMED_FUNCTION_CALL" | b"UNEXPECTED_TOOL_CALL" | b"TOO_MANY_TOOL_CALLS" => {
            Finish::Error
        }
        _ => Finish::Other,
    })
}

#[cfg(test)]
mod tests;
