//! What meters read of a response: a whole one, or the events of a stream.
//!
//! An event may have its `type` last (vLLM writes members in the alphabet's order), so what it
//! means is settled where it ends. The last event repeats the whole response: its output counts
//! only where no delta was told before.

use super::name::Name;
use crate::json::{Leaf, Reader, unescape};
use crate::meter::ReadAnswer;
use crate::openai::error::{self, ErrorParts};
use crate::openai::name::Name as Shared;
use crate::openai::reported::{NUMBER_BYTES, Reported};
use crate::provider_error::ProviderError;
use crate::reading::{Finish, Reading};

/// The longest `type` that means something is `response.reasoning_summary_text.delta`.
const WORD_BYTES: usize = 64;
const ID_BYTES: usize = 128;

/// What has been read of an answer, and of the document at hand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    reading: Reading,
    document: Document,
    /// A function's call has been seen.
    has_call: bool,
}

/// Facts of the one document at hand.
#[derive(Clone, Debug, Default)]
struct Document {
    kind: Kind,
    /// Bytes of the event's `delta`.
    delta_bytes: u64,
    /// Of an event's item.
    item: Item,
    status: Status,
    reason: Option<Finish>,
    /// What the event's response repeats.
    repeated: Shown,
    output_item: OutputItem,
    reported: Reported,
    error: ErrorParts,
    has_error: bool,
}

/// What an event tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Other,
    Delta,
    ReasoningDelta,
    /// Of audio, which is not text.
    OpaqueDelta,
    ItemAdded,
    ItemDone,
    /// `response.completed`, `response.incomplete` or `response.failed`.
    Last(Status),
    Error,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Unsaid,
    /// Queued, or in progress.
    Going,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

#[derive(Clone, Copy, Debug, Default)]
struct Item {
    kind: ItemKind,
    name_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ItemKind {
    #[default]
    Unsaid,
    Message,
    Reasoning,
    /// Of a tool of the client's.
    Call,
    /// Of a tool that the provider runs, and its results.
    Other,
}

/// The item of an output that is at hand.
#[derive(Clone, Copy, Debug, Default)]
struct OutputItem {
    kind: ItemKind,
    content_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    bytes: u64,
    reasoning_bytes: u64,
    /// Something that is not text, such as a tool's call.
    has_other: bool,
}

impl Shown {
    fn text(bytes: u64) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    fn reasoning(bytes: u64) -> Self {
        Self {
            reasoning_bytes: bytes,
            ..Self::text(bytes)
        }
    }
}

impl Answer {
    fn show(&mut self, shown: Shown) {
        let reading = &mut self.reading;
        reading.visible_bytes += shown.bytes;
        reading.reasoning_bytes += shown.reasoning_bytes;
        reading.has_content |= shown.bytes > 0 || shown.has_other;
    }

    /// A member of the response, wherever that stands.
    fn response_leaf(&mut self, path: &[Name], leaf: Leaf<'_>, is_whole: bool) {
        let Leaf::Text { shown, bytes } = leaf else {
            return;
        };
        match path {
            [Name::Id] => set_text(&mut self.reading.id, shown),
            // Asked for, not served.
            [Name::ServiceTier] if shown == b"auto" => {}
            [Name::ServiceTier] => set_text(&mut self.reading.service_tier, shown),
            [Name::Status] => self.document.status = status(shown),
            [Name::IncompleteDetails, Name::Reason] => {
                self.document.reason = Some(match shown {
                    b"max_output_tokens" => Finish::Length,
                    b"content_filter" => Finish::ContentFilter,
                    _ => Finish::Other,
                });
            }
            [Name::Output, Name::Element, path @ ..] => {
                let shown = self.output_text(path, shown, bytes);
                self.output(shown, is_whole);
            }
            _ => {}
        }
    }

    /// Takes in what an output shows; an event's may repeat what deltas have told.
    fn output(&mut self, shown: Shown, is_whole: bool) {
        if is_whole {
            return self.show(shown);
        }
        let repeated = &mut self.document.repeated;
        repeated.bytes += shown.bytes;
        repeated.reasoning_bytes += shown.reasoning_bytes;
        repeated.has_other |= shown.has_other;
    }

    /// A text within an item of the output.
    fn output_text(&mut self, path: &[Name], text: &[u8], bytes: u64) -> Shown {
        let item = &mut self.document.output_item;
        match path {
            [Name::Type] => {
                item.kind = item_kind(text);
                self.has_call |= item.kind == ItemKind::Call;
                Shown {
                    has_other: matches!(item.kind, ItemKind::Call | ItemKind::Other),
                    ..Shown::default()
                }
            }
            [Name::Summary, Name::Element, Name::Text] => Shown::reasoning(bytes),
            [Name::Content, Name::Element, Name::Text | Name::Refusal] => {
                item.content_bytes += bytes;
                Shown::text(bytes)
            }
            [Name::Called | Name::Arguments | Name::Input] => Shown::text(bytes),
            _ => Shown::default(),
        }
    }

    fn event_leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let document = &mut self.document;
        match (path, leaf) {
            ([Name::Type], Leaf::Text { shown, .. }) => document.kind = kind(shown),
            ([Name::Delta], Leaf::Text { bytes, .. }) => document.delta_bytes = bytes,
            ([Name::SequenceNumber], Leaf::Number(digits)) => {
                let digits = std::str::from_utf8(digits).unwrap_or_default();
                if let Ok(number) = digits.parse::<u64>() {
                    self.reading.next_sequence_number = number.saturating_add(1);
                }
            }
            ([Name::Item, Name::Type], Leaf::Text { shown, .. }) => {
                document.item.kind = item_kind(shown);
            }
            ([Name::Item, Name::Called], Leaf::Text { bytes, .. }) => {
                document.item.name_bytes = bytes;
            }
            _ => {}
        }
    }

    /// The document is whole.
    fn settle(&mut self) {
        let Document {
            kind,
            delta_bytes,
            item,
            status,
            repeated,
            ..
        } = self.document;
        match kind {
            Kind::Delta => self.show(Shown::text(delta_bytes)),
            Kind::ReasoningDelta => self.show(Shown::reasoning(delta_bytes)),
            Kind::OpaqueDelta => self.reading.has_content = true,
            Kind::ItemAdded => {
                self.has_call |= item.kind == ItemKind::Call;
                self.show(Shown {
                    has_other: matches!(item.kind, ItemKind::Call | ItemKind::Other),
                    ..Shown::text(item.name_bytes)
                });
            }
            // Reasoning of which nothing is shown has been encrypted.
            Kind::ItemDone => self.reading.has_content |= item.kind == ItemKind::Reasoning,
            Kind::Last(said) => {
                if self.reading.visible_bytes == 0 {
                    self.show(repeated);
                }
                self.end(if status == Status::Unsaid {
                    said
                } else {
                    status
                });
                self.reading.is_done = true;
            }
            Kind::Error => self.end_error(),
            Kind::Other => self.end(status),
        }
    }

    fn end(&mut self, status: Status) {
        let finish = match status {
            Status::Unsaid | Status::Going => return,
            Status::Completed if self.has_call => Finish::ToolCalls,
            Status::Completed => Finish::Stop,
            Status::Incomplete => self.document.reason.unwrap_or(Finish::Other),
            Status::Failed => Finish::Error,
            Status::Cancelled => Finish::Other,
        };
        self.reading.finish = Some(finish);
        if status == Status::Failed {
            self.end_error();
        }
    }

    fn end_error(&mut self) {
        let error = std::mem::take(&mut self.document.error);
        self.reading.error.get_or_insert_with(|| error.into_error());
    }

    /// Takes a member of `usage` under the name that it has in the other APIs of this family.
    fn report(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let path: &[Shared] = match path {
            [Name::InputTokens] => &[Shared::PromptTokens],
            [Name::OutputTokens] => &[Shared::CompletionTokens],
            [Name::TotalTokens] => &[Shared::TotalTokens],
            [Name::InputTokensDetails, Name::CachedTokens] => {
                &[Shared::PromptTokensDetails, Shared::CachedTokens]
            }
            [Name::InputTokensDetails, Name::CacheWriteTokens] => {
                &[Shared::PromptTokensDetails, Shared::CacheWriteTokens]
            }
            [Name::OutputTokensDetails, Name::ReasoningTokens] => {
                &[Shared::CompletionTokensDetails, Shared::ReasoningTokens]
            }
            _ => return,
        };
        self.document.reported.take(path, leaf);
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

    /// Not OpenAI's here, but some servers end every stream with it.
    fn is_end_marker(data: &[u8]) -> bool {
        data == b"[DONE]"
    }

    fn parse_error(document: &[u8]) -> Option<ProviderError> {
        error::parse(document)
    }
}

impl Reader for Answer {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Element;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, path: &[Name]) -> usize {
        if let Some(path) = error_path(path) {
            return ErrorParts::text_bytes_wanted(path);
        }
        match response_path(path) {
            [Name::Id] => ID_BYTES,
            [Name::Type]
            | [Name::Item, Name::Type]
            | [Name::Status]
            | [Name::ServiceTier]
            | [Name::IncompleteDetails, Name::Reason]
            | [Name::Output, Name::Element, Name::Type] => WORD_BYTES,
            [Name::Usage, ..] => NUMBER_BYTES,
            _ => 0,
        }
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        if let Some(error) = error_path(path) {
            self.document.error.take(error, leaf);
            let is_text = matches!(leaf, Leaf::Text { .. });
            self.document.has_error |= is_text && matches!(path, [.., Name::Error]);
            return;
        }
        match path {
            [Name::Response, Name::Usage, path @ ..] | [Name::Usage, path @ ..] => {
                self.report(path, leaf);
            }
            [Name::Response, path @ ..] => self.response_leaf(path, leaf, false),
            [
                Name::Id
                | Name::ServiceTier
                | Name::Status
                | Name::IncompleteDetails
                | Name::Output,
                ..,
            ] => self.response_leaf(path, leaf, true),
            _ => self.event_leaf(path, leaf),
        }
    }

    fn open(&mut self, path: &[Name]) {
        match response_path(path) {
            [Name::Usage] => self.document.reported = Reported::default(),
            [Name::Error] => self.document.has_error = true,
            [Name::Output, Name::Element] => self.document.output_item = OutputItem::default(),
            _ => {}
        }
    }

    fn close(&mut self, path: &[Name]) {
        match response_path(path) {
            [] if path.is_empty() => {
                self.settle();
                if self.document.has_error {
                    self.end_error();
                }
            }
            [Name::Output, Name::Element] => {
                let OutputItem {
                    kind,
                    content_bytes,
                } = self.document.output_item;
                if kind == ItemKind::Reasoning {
                    let is_whole = path.len() == 2;
                    let reasoning = Shown {
                        reasoning_bytes: content_bytes,
                        ..Shown::default()
                    };
                    self.output(reasoning, is_whole);
                }
            }
            [Name::Usage] => {
                // A later report replaces an earlier one, since reports are cumulative.
                let reported = self.document.reported.canonical();
                self.reading.usage = reported.or(self.reading.usage);
            }
            _ => {}
        }
    }
}

/// The path within the response, which an event has as a member.
fn response_path(path: &[Name]) -> &[Name] {
    path.strip_prefix(&[Name::Response]).unwrap_or(path)
}

/// The path within an error: the response's, an event's, or the event that is one itself.
fn error_path(path: &[Name]) -> Option<&'static [Shared]> {
    match response_path(path) {
        [Name::Error] => Some(&[]),
        [Name::Message] | [Name::Error, Name::Message] => Some(&[Shared::Message]),
        [Name::Code] | [Name::Error, Name::Code] => Some(&[Shared::Code]),
        [Name::Error, Name::Type] => Some(&[Shared::Type]),
        _ => None,
    }
}

fn kind(word: &[u8]) -> Kind {
    match word {
        b"response.output_item.added" => Kind::ItemAdded,
        b"response.output_item.done" => Kind::ItemDone,
        b"response.completed" => Kind::Last(Status::Completed),
        b"response.incomplete" => Kind::Last(Status::Incomplete),
        b"response.failed" => Kind::Last(Status::Failed),
        b"response.audio.delta" => Kind::OpaqueDelta,
        b"error" => Kind::Error,
        _ if !word.ends_with(b".delta") => Kind::Other,
        _ if word.starts_with(b"response.reasoning") => Kind::ReasoningDelta,
        _ => Kind::Delta,
    }
}

fn status(word: &[u8]) -> Status {
    match word {
        b"completed" => Status::Completed,
        b"incomplete" => Status::Incomplete,
        b"failed" => Status::Failed,
        b"cancelled" => Status::Cancelled,
        b"queued" | b"in_progress" => Status::Going,
        _ => Status::Unsaid,
    }
}

fn item_kind(word: &[u8]) -> ItemKind {
    match word {
        b"message" => ItemKind::Message,
        b"reasoning" => ItemKind::Reasoning,
        b"function_call" | b"custom_tool_call" => ItemKind::Call,
        _ => ItemKind::Other,
    }
}

/// Sets the text unless it is there already, so that a member repeated in events costs no
/// allocation.
fn set_text(place: &mut Option<String>, shown: &[u8]) {
    if place.as_deref().map(str::as_bytes) != Some(shown) {
        *place = Some(unescape(shown));
    }
}

#[cfg(test)]
mod tests;
