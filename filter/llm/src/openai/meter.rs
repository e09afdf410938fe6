//! Meters of a provider's answer: one for streams, one for whole documents. They read the bytes
//! as they pass and keep none of them, but for an event that is not whole yet.

use super::answer::{Answer, new_scanner};
use super::error;
use super::name::Name;
use super::strip::{Stripped, stripped, write_without};
use crate::event_stream::{EventStream, Field, Piece, fields};
use crate::json::Scanner;
use crate::provider_error::ProviderError;
use crate::reading::Reading;

/// Whether the client sees the usage that the provider reports in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsageMembers {
    Keep,
    /// Usage was asked for by us, not by the client: chunks that carry nothing else are left out,
    /// and `usage` is taken out of the others.
    Strip,
}

/// Reads a streamed answer, cut anywhere.
#[derive(Clone, Debug)]
pub struct StreamMeter {
    events: EventStream,
    reader: EventReader,
    usage_members: UsageMembers,
    /// The event before was left out; what is left of its blank line goes with it.
    left_out: bool,
    /// The stream ended inside an event, and the client has got what there was of it.
    ended_inside_event: bool,
}

impl StreamMeter {
    /// A meter whose events are read up to `max_event_bytes`; larger ones pass unread and are
    /// counted in [`Reading::oversized_events`].
    pub fn new(usage_members: UsageMembers, max_event_bytes: usize) -> Self {
        Self {
            events: EventStream::new(max_event_bytes),
            reader: EventReader::new(),
            usage_members,
            left_out: false,
            ended_inside_event: false,
        }
    }

    /// Reads a chunk that passes untouched. Allocates for no event that lies within a chunk.
    pub fn observe(&mut self, chunk: &[u8]) {
        let Self { events, reader, .. } = self;
        events.push(chunk, |piece| {
            reader.read(piece);
        });
    }

    /// Reads a chunk and appends what the client gets: the same bytes, or, when usage is stripped,
    /// the events that the chunk completes. What is appended in all does not depend on the cuts.
    pub fn transform(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        if self.usage_members == UsageMembers::Keep {
            out.extend_from_slice(chunk);
            return self.observe(chunk);
        }
        let Self {
            events,
            reader,
            left_out,
            ..
        } = self;
        events.push(chunk, |piece| {
            let stripped = reader.read(piece);
            write_piece(piece, stripped, reader, left_out, out);
        });
    }

    /// Ends the stream: an event that lacks its blank line is read, and what was held back of it
    /// is appended.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let given_inside_event = !self.at_event_boundary();
        let held_from = out.len();
        let Self {
            events,
            reader,
            left_out,
            ..
        } = self;
        let strips = self.usage_members == UsageMembers::Strip;
        events.finish(|piece| {
            let stripped = reader.read(piece);
            if strips {
                write_piece(piece, stripped, reader, left_out, out);
            }
        });
        self.ended_inside_event = given_inside_event || out.len() > held_from;
    }

    /// Whether what the client has been given ends where an event ends.
    pub fn at_event_boundary(&self) -> bool {
        let holds_back = self.usage_members == UsageMembers::Strip;
        let is_given_whole = match holds_back {
            true => !self.events.is_in_excess(),
            false => self.events.is_at_boundary(),
        };
        is_given_whole && !self.ended_inside_event
    }

    /// What has been read so far.
    pub fn reading(&self) -> &Reading {
        &self.reader.answer.reading
    }
}

fn write_piece(
    piece: Piece<'_>,
    stripped: Stripped,
    reader: &EventReader,
    left_out: &mut bool,
    out: &mut Vec<u8>,
) {
    match piece {
        Piece::Event(event) => {
            *left_out = stripped == Stripped::Nothing;
            match stripped {
                Stripped::Whole => out.extend_from_slice(event),
                Stripped::WithoutUsage => {
                    let spans = reader.answer.document.usage_members.spans();
                    write_without(event, spans, out);
                }
                Stripped::Nothing => {}
            }
        }
        Piece::LineFeed if *left_out => {}
        Piece::LineFeed => out.push(b'\n'),
        Piece::Excess { bytes, .. } => {
            *left_out = false;
            out.extend_from_slice(bytes);
        }
    }
}

/// Reads events one after the other.
#[derive(Clone, Debug)]
struct EventReader {
    answer: Answer,
    scanner: Scanner<Name>,
}

impl EventReader {
    fn new() -> Self {
        Self {
            answer: Answer::default(),
            scanner: new_scanner(),
        }
    }

    /// Reads a piece and tells what is left of it when usage is stripped.
    fn read(&mut self, piece: Piece<'_>) -> Stripped {
        match piece {
            Piece::Event(event) => self.read_event(event),
            Piece::LineFeed => Stripped::Whole,
            Piece::Excess { is_first, .. } => {
                let oversized = &mut self.answer.reading.oversized_events;
                *oversized = oversized.saturating_add(u32::from(is_first));
                Stripped::Whole
            }
        }
    }

    fn read_event(&mut self, event: &[u8]) -> Stripped {
        self.scanner.reset();
        self.answer.begin_document();
        let mut first_data = None;
        let mut is_error = false;
        for (field, range) in fields(event) {
            let value = event.get(range).unwrap_or_default();
            match field {
                Field::Data if first_data.is_none() => {
                    first_data = Some(value);
                    if value.trim_ascii() == b"[DONE]" {
                        self.answer.reading.is_done = true;
                        break;
                    }
                    self.scanner.feed(value, &mut self.answer);
                }
                Field::Data => {
                    self.scanner.feed(b"\n", &mut self.answer);
                    self.scanner.feed(value, &mut self.answer);
                }
                Field::Name => is_error = value == b"error",
                Field::Other => {}
            }
        }
        match first_data {
            Some(data) => self.end_data(data, is_error),
            None => Stripped::Whole,
        }
    }

    fn end_data(&mut self, data: &[u8], is_error: bool) -> Stripped {
        self.answer.reading.events += 1;
        if self.scanner.is_untouched() {
            return Stripped::Whole;
        }
        let is_whole = self.scanner.finish(&mut self.answer);
        let reading = &mut self.answer.reading;
        if is_error && reading.error.is_none() {
            reading.error = error::parse(data).or_else(|| Some(ProviderError::of_text(data)));
        }
        if is_whole {
            stripped(&self.answer.document)
        } else {
            reading.unreadable_events = reading.unreadable_events.saturating_add(1);
            Stripped::Whole
        }
    }
}

/// Reads an answer that is one JSON document, cut anywhere and of any size.
#[derive(Clone, Debug)]
pub struct PlainMeter {
    answer: Answer,
    scanner: Scanner<Name>,
}

impl PlainMeter {
    /// A meter at the start of an answer.
    pub fn new() -> Self {
        Self {
            answer: Answer::default(),
            scanner: new_scanner(),
        }
    }

    /// Reads a chunk of the body.
    pub fn observe(&mut self, chunk: &[u8]) {
        self.scanner.feed(chunk, &mut self.answer);
        self.answer.reading.is_done = self.scanner.is_complete();
    }

    /// Ends the body.
    pub fn finish(&mut self) {
        self.answer.reading.is_done = self.scanner.finish(&mut self.answer);
    }

    /// What has been read so far.
    pub fn reading(&self) -> &Reading {
        &self.answer.reading
    }
}

impl Default for PlainMeter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
