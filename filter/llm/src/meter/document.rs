//! Reads documents of answers one after the other, whatever API they are of.

use std::ops::Range;

use super::strip::Stripped;
use crate::api::Api;
use crate::event_stream::{Field, Piece, fields};
use crate::json::{Reader, Scanner};
use crate::provider_error::ProviderError;
use crate::reading::Reading;
use crate::{anthropic, bedrock, gemini, openai};

/// Reads what one API's documents tell: whole answers, and the data of a stream's events.
pub(crate) trait ReadAnswer: Reader + Default {
    /// Makes ready for the next document.
    fn begin_document(&mut self);

    /// A document has ended; `name` is its event's, empty where there is none.
    fn end_document(&mut self, _name: &[u8]) {}

    /// What has been read of the answer.
    fn reading(&self) -> &Reading;

    /// The same, to be changed.
    fn reading_mut(&mut self) -> &mut Reading;

    /// Data that is no document but ends the stream.
    fn is_end_marker(_data: &[u8]) -> bool {
        false
    }

    /// Reads an error that stands alone.
    fn parse_error(document: &[u8]) -> Option<ProviderError>;

    /// What is left of the document at hand when usage is stripped.
    fn stripped(&self) -> Stripped {
        Stripped::Whole
    }

    /// Where the document at hand has usage that is stripped.
    fn usage_spans(&self) -> &[Range<usize>] {
        &[]
    }
}

/// The reader of one answer.
#[derive(Clone, Debug)]
pub(super) enum Documents {
    Chat(Documented<openai::answer::Answer>),
    Responses(Documented<openai::responses::answer::Answer>),
    Gemini(Documented<gemini::answer::Answer>),
    Converse(Documented<bedrock::answer::Answer>),
    Messages(Documented<anthropic::answer::Answer>),
    Count(Documented<anthropic::count_tokens::Count>),
}

impl Documents {
    pub(super) fn new(api: Api) -> Self {
        match api {
            Api::Responses => Self::Responses(Documented::new()),
            Api::GenerateContent => Self::Gemini(Documented::new()),
            Api::Converse => Self::Converse(Documented::new()),
            Api::Messages => Self::Messages(Documented::new()),
            Api::CountTokens => Self::Count(Documented::new()),
            // Completions and embeddings have their usage and choices where chat has them.
            _ => Self::Chat(Documented::new()),
        }
    }

    /// Reads a piece and tells what is left of it when usage is stripped.
    pub(super) fn read(&mut self, piece: Piece<'_>) -> Stripped {
        match self {
            Self::Chat(documents) => documents.read(piece),
            Self::Responses(documents) => documents.read(piece),
            Self::Gemini(documents) => documents.read(piece),
            Self::Converse(documents) => documents.read(piece),
            Self::Messages(documents) => documents.read(piece),
            Self::Count(documents) => documents.read(piece),
        }
    }

    /// Reads an event whose name and data are known already.
    pub(super) fn read_named(&mut self, name: &[u8], data: &[u8]) {
        match self {
            Self::Chat(documents) => documents.read_named(name, data),
            Self::Responses(documents) => documents.read_named(name, data),
            Self::Gemini(documents) => documents.read_named(name, data),
            Self::Converse(documents) => documents.read_named(name, data),
            Self::Messages(documents) => documents.read_named(name, data),
            Self::Count(documents) => documents.read_named(name, data),
        }
    }

    /// Reads a part of an answer that is one document; true once it is whole.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> bool {
        match self {
            Self::Chat(documents) => documents.feed(chunk),
            Self::Responses(documents) => documents.feed(chunk),
            Self::Gemini(documents) => documents.feed(chunk),
            Self::Converse(documents) => documents.feed(chunk),
            Self::Messages(documents) => documents.feed(chunk),
            Self::Count(documents) => documents.feed(chunk),
        }
    }

    /// Ends an answer that is one document; true if it is whole.
    pub(super) fn finish(&mut self) -> bool {
        match self {
            Self::Chat(documents) => documents.finish(),
            Self::Responses(documents) => documents.finish(),
            Self::Gemini(documents) => documents.finish(),
            Self::Converse(documents) => documents.finish(),
            Self::Messages(documents) => documents.finish(),
            Self::Count(documents) => documents.finish(),
        }
    }

    pub(super) fn usage_spans(&self) -> &[Range<usize>] {
        match self {
            Self::Chat(documents) => documents.answer.usage_spans(),
            Self::Responses(documents) => documents.answer.usage_spans(),
            Self::Gemini(documents) => documents.answer.usage_spans(),
            Self::Converse(documents) => documents.answer.usage_spans(),
            Self::Messages(documents) => documents.answer.usage_spans(),
            Self::Count(documents) => documents.answer.usage_spans(),
        }
    }

    pub(super) fn reading(&self) -> &Reading {
        match self {
            Self::Chat(documents) => documents.answer.reading(),
            Self::Responses(documents) => documents.answer.reading(),
            Self::Gemini(documents) => documents.answer.reading(),
            Self::Converse(documents) => documents.answer.reading(),
            Self::Messages(documents) => documents.answer.reading(),
            Self::Count(documents) => documents.answer.reading(),
        }
    }

    pub(super) fn reading_mut(&mut self) -> &mut Reading {
        match self {
            Self::Chat(documents) => documents.answer.reading_mut(),
            Self::Responses(documents) => documents.answer.reading_mut(),
            Self::Gemini(documents) => documents.answer.reading_mut(),
            Self::Converse(documents) => documents.answer.reading_mut(),
            Self::Messages(documents) => documents.answer.reading_mut(),
            Self::Count(documents) => documents.answer.reading_mut(),
        }
    }
}

/// One API's reader, and the scanner that feeds it.
#[derive(Clone, Debug)]
pub(super) struct Documented<A: ReadAnswer> {
    answer: A,
    scanner: Scanner<A::Name>,
}

impl<A: ReadAnswer> Documented<A> {
    fn new() -> Self {
        Self {
            answer: A::default(),
            scanner: Scanner::new::<A>(),
        }
    }

    fn feed(&mut self, chunk: &[u8]) -> bool {
        self.scanner.feed(chunk, &mut self.answer);
        self.scanner.is_complete()
    }

    fn finish(&mut self) -> bool {
        let is_whole = self.scanner.finish(&mut self.answer);
        self.answer.end_document(b"");
        is_whole
    }

    fn read(&mut self, piece: Piece<'_>) -> Stripped {
        match piece {
            Piece::Event(event) => self.read_event(event),
            Piece::LineFeed => Stripped::Whole,
            Piece::Excess { is_first, .. } => {
                let oversized = &mut self.answer.reading_mut().oversized_events;
                *oversized = oversized.saturating_add(u32::from(is_first));
                Stripped::Whole
            }
        }
    }

    fn read_event(&mut self, event: &[u8]) -> Stripped {
        self.scanner.reset();
        self.answer.begin_document();
        let mut first_data = None;
        let mut name: &[u8] = b"";
        for (field, range) in fields(event) {
            let value = event.get(range).unwrap_or_default();
            match field {
                Field::Data if first_data.is_none() => {
                    first_data = Some(value);
                    if A::is_end_marker(value.trim_ascii()) {
                        self.answer.reading_mut().is_done = true;
                        break;
                    }
                    self.scanner.feed(value, &mut self.answer);
                }
                Field::Data => {
                    self.scanner.feed(b"\n", &mut self.answer);
                    self.scanner.feed(value, &mut self.answer);
                }
                Field::Name => name = value,
                Field::Other => {}
            }
        }
        match first_data {
            Some(data) => self.end_data(data, name),
            None => Stripped::Whole,
        }
    }

    fn read_named(&mut self, name: &[u8], data: &[u8]) {
        self.scanner.reset();
        self.answer.begin_document();
        self.scanner.feed(data, &mut self.answer);
        self.end_data(data, name);
    }

    fn end_data(&mut self, data: &[u8], name: &[u8]) -> Stripped {
        self.answer.reading_mut().events += 1;
        if self.scanner.is_untouched() {
            return Stripped::Whole;
        }
        let is_whole = self.scanner.finish(&mut self.answer);
        self.answer.end_document(name);
        let reading = self.answer.reading_mut();
        if name == b"error" && reading.error.is_none() {
            reading.error = A::parse_error(data).or_else(|| Some(ProviderError::of_text(data)));
        }
        if is_whole {
            self.answer.stripped()
        } else {
            reading.unreadable_events = reading.unreadable_events.saturating_add(1);
            Stripped::Whole
        }
    }
}
