//! Reads one document of an answer: a whole completion, or one chunk of a streamed one. They
//! differ in `message` and `delta` only.

use std::ops::Range;

use super::error::{self, ErrorParts};
use super::name::Name;
use super::reported::{NUMBER_BYTES, Reported};
use crate::json::{Leaf, Reader};
use crate::meter::{ReadAnswer, Stripped};
use crate::provider_error::ProviderError;
use crate::reading::{Finish, Reading};

const FINISH_BYTES: usize = 32;
const SERVICE_TIER_BYTES: usize = 64;

/// What has been read of an answer, and of the document at hand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(super) reading: Reading,
    pub(super) document: Document,
    finish_is_of_first_choice: bool,
}

/// Facts of the one document at hand.
#[derive(Clone, Debug, Default)]
pub(super) struct Document {
    /// Choices is an array with something in it.
    pub(super) has_choice: bool,
    /// The outermost `usage` is an object.
    pub(super) has_usage: bool,
    pub(super) has_error: bool,
    pub(super) usage_members: UsageMemberSpans,
    reported: Reported,
    error: ErrorParts,
    choice: Choice,
}

/// Facts of the one choice at hand.
#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    is_later: bool,
    finish: Option<Finish>,
    /// Some providers tell the same reasoning under two names: the longer one counts.
    reasoning: u64,
    reasoning_content: u64,
}

impl Answer {
    fn choice_leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        match (path, leaf) {
            ([Name::Index], Leaf::Number(index)) => self.document.choice.is_later = index != b"0",
            ([Name::FinishReason], Leaf::Text { shown, bytes: 1.. }) => {
                self.document.choice.finish = Some(finish(shown));
            }
            ([Name::Delta | Name::Message, path @ ..], Leaf::Text { bytes: 1.., .. }) => {
                self.output_text(path, leaf);
            }
            // Of the older completions API.
            ([Name::Text], Leaf::Text { bytes, .. }) => self.show(bytes),
            _ => {}
        }
    }

    fn output_text(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let Leaf::Text { bytes, .. } = leaf else {
            return;
        };
        match path {
            [Name::Content | Name::Refusal]
            | [Name::Content, Name::Item, Name::Text]
            | [
                Name::ToolCalls,
                Name::Item,
                Name::Function,
                Name::Called | Name::Arguments,
            ]
            | [Name::FunctionCall, Name::Called | Name::Arguments]
            | [Name::Audio, Name::Transcript] => self.show(bytes),
            [Name::Audio, Name::Data] => self.reading.has_content = true,
            [Name::Reasoning] => self.document.choice.reasoning = bytes,
            [Name::ReasoningContent] => self.document.choice.reasoning_content = bytes,
            // Mistral's reasoning stands among the parts of the content.
            [
                Name::Content,
                Name::Item,
                Name::Thinking,
                Name::Item,
                Name::Text,
            ] => {
                self.show(bytes);
                self.reading.reasoning_bytes += bytes;
            }
            _ => {}
        }
    }

    fn show(&mut self, bytes: u64) {
        self.reading.visible_bytes += bytes;
        self.reading.has_content |= bytes > 0;
    }

    fn end_choice(&mut self) {
        let choice = std::mem::take(&mut self.document.choice);
        let reasoning = choice.reasoning.max(choice.reasoning_content);
        self.show(reasoning);
        self.reading.reasoning_bytes += reasoning;
        if choice.finish.is_some() && !(choice.is_later && self.finish_is_of_first_choice) {
            self.reading.finish = choice.finish;
            self.finish_is_of_first_choice = !choice.is_later;
        }
    }

    fn end_error(&mut self) {
        self.document.has_error = true;
        let error = std::mem::take(&mut self.document.error);
        self.reading.error.get_or_insert_with(|| error.into_error());
    }
}

impl ReadAnswer for Answer {
    fn begin_document(&mut self) {
        self.document = Document::default();
    }

    fn reading(&self) -> &Reading {
        &self.reading
    }

    fn reading_mut(&mut self) -> &mut Reading {
        &mut self.reading
    }

    fn is_end_marker(data: &[u8]) -> bool {
        data == b"[DONE]"
    }

    fn parse_error(document: &[u8]) -> Option<ProviderError> {
        error::parse(document)
    }

    /// Usage that a provider puts elsewhere than into the outermost `usage` is there whether it is
    /// asked for or not, and stays.
    fn stripped(&self) -> Stripped {
        let document = &self.document;
        let is_usage_only = document.has_usage && !document.has_choice && !document.has_error;
        if is_usage_only || document.usage_members.are_all() {
            Stripped::Nothing
        } else if document.usage_members.spans().is_empty() {
            Stripped::Whole
        } else {
            Stripped::WithoutUsage
        }
    }

    fn usage_spans(&self) -> &[Range<usize>] {
        self.document.usage_members.spans()
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
            [Name::Unknown, ..] => 0,
            [Name::Choices, Name::Item, Name::FinishReason] => FINISH_BYTES,
            [Name::ServiceTier] => SERVICE_TIER_BYTES,
            _ if usage_path(path).is_some() => NUMBER_BYTES,
            _ => error_path(path).map_or(0, ErrorParts::text_bytes_wanted),
        }
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        if let [Name::Unknown, ..] = path {
            return;
        }
        if let Some(path) = usage_path(path) {
            return self.document.reported.take(path, leaf);
        }
        if let Some(path) = error_path(path) {
            self.document.error.take(path, leaf);
            if path.is_empty() && matches!(leaf, Leaf::Text { .. }) {
                self.end_error();
            }
            return;
        }
        match (path, leaf) {
            ([Name::Choices, Name::Item, path @ ..], _) => self.choice_leaf(path, leaf),
            ([Name::ServiceTier], Leaf::Text { shown, bytes: 1.. }) => {
                set_text(&mut self.reading.service_tier, shown);
            }
            _ => {}
        }
    }

    fn open(&mut self, path: &[Name]) {
        match path {
            [Name::Choices, Name::Item] => self.document.has_choice = true,
            // One of the embeddings.
            [Name::Data, Name::Item] => self.reading.has_content = true,
            _ if matches!(usage_path(path), Some([])) => {
                self.document.has_usage |= path.len() == 1;
                self.document.reported = Reported::default();
            }
            [
                Name::Choices,
                Name::Item,
                Name::Delta | Name::Message,
                Name::FunctionCall,
            ]
            | [
                Name::Choices,
                Name::Item,
                Name::Delta | Name::Message,
                Name::ToolCalls | Name::ReasoningDetails,
                Name::Item,
            ] => self.reading.has_content = true,
            _ => {}
        }
    }

    fn close(&mut self, path: &[Name]) {
        match path {
            [Name::Choices, Name::Item] => self.end_choice(),
            _ if matches!(error_path(path), Some([])) => self.end_error(),
            _ if matches!(usage_path(path), Some([])) => {
                // A later report replaces an earlier one, since reports are cumulative.
                let reported = self.document.reported.canonical();
                self.reading.usage = reported.or(self.reading.usage);
            }
            _ => {}
        }
    }

    fn member(&mut self, name: Name, span: Range<usize>) {
        self.document.usage_members.member(name, span);
    }

    fn comma(&mut self, at: usize) {
        self.document.usage_members.comma(at);
    }
}

/// The path within a usage object, wherever such providers put it: at the outermost level, in
/// Groq's own member, or in the choice.
fn usage_path(path: &[Name]) -> Option<&[Name]> {
    match path {
        [Name::Usage, path @ ..]
        | [Name::XGroq, Name::Usage, path @ ..]
        | [Name::Choices, Name::Item, Name::Usage, path @ ..] => Some(path),
        _ => None,
    }
}

/// The path within an error, wherever such providers tell it.
fn error_path(path: &[Name]) -> Option<&[Name]> {
    match path {
        [Name::Error, path @ ..]
        | [Name::XGroq, Name::Error, path @ ..]
        | [Name::Choices, Name::Item, Name::Error, path @ ..] => Some(path),
        _ => None,
    }
}

/// A reason to end, by its word.
pub(super) fn finish(word: &[u8]) -> Finish {
    match word {
        b"stop" | b"eos" | b"end_turn" | b"stop_sequence" => Finish::Stop,
        b"length" | b"max_tokens" | b"model_length" => Finish::Length,
        b"tool_calls" | b"function_call" | b"tool_use" => Finish::ToolCalls,
        b"content_filter" | b"refusal" => Finish::ContentFilter,
        b"error" | b"insufficient_system_resource" => Finish::Error,
        _ => Finish::Other,
    }
}

/// Sets the text unless it is there already, so that a member repeated in each chunk costs no
/// allocation.
fn set_text(place: &mut Option<String>, shown: &[u8]) {
    if place.as_deref().map(str::as_bytes) != Some(shown) {
        *place = Some(crate::json::unescape(shown));
    }
}

/// Where the outermost object's `usage` members stand, each with one comma, so that taking the
/// spans out leaves an object.
#[derive(Clone, Debug, Default)]
pub(super) struct UsageMemberSpans {
    spans: [Range<usize>; Self::MOST],
    count: usize,
    other_members: bool,
    last_comma: usize,
    /// The last span has no comma yet: the one that follows belongs to it.
    wants_comma: bool,
}

impl UsageMemberSpans {
    /// More members of the same name in one object are left where they are.
    const MOST: usize = 4;

    fn member(&mut self, name: Name, span: Range<usize>) {
        let place = match name {
            Name::Usage => self.spans.get_mut(self.count),
            _ => None,
        };
        let Some(place) = place else {
            self.other_members = true;
            return;
        };
        let start = if self.other_members {
            self.last_comma
        } else {
            span.start
        };
        *place = start..span.end;
        self.count += 1;
        self.wants_comma = !self.other_members;
    }

    fn comma(&mut self, at: usize) {
        self.last_comma = at;
        let last = self.count.checked_sub(1);
        if self.wants_comma
            && let Some(span) = last.and_then(|last| self.spans.get_mut(last))
        {
            span.end = at + 1;
        }
        self.wants_comma = false;
    }

    /// The spans, in order, in bytes from the document's start.
    pub(super) fn spans(&self) -> &[Range<usize>] {
        self.spans.get(..self.count).unwrap_or_default()
    }

    /// The object has no other member.
    pub(super) fn are_all(&self) -> bool {
        self.count > 0 && !self.other_members
    }
}

/// Reads a whole document at once.
#[cfg(test)]
pub(super) fn read_whole(document: &[u8]) -> Reading {
    let mut answer = Answer::default();
    let mut scanner = crate::json::Scanner::new::<Answer>();
    scanner.feed(document, &mut answer);
    assert!(scanner.finish(&mut answer), "a whole document");
    answer.reading
}

#[cfg(test)]
mod tests;
