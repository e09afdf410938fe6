//! Meters of a provider's answer: one for streams, one for whole documents. They read the bytes
//! as they pass and keep none of them, but for an event that is not whole yet.
//!
//! What an API's documents mean is read by an [`ReadAnswer`] of its own, such as
//! `openai::answer::Answer`; what all meters share is here.

mod document;
mod framing;
mod strip;

pub(crate) use document::ReadAnswer;

use std::borrow::Cow;

use crate::api::Api;
use crate::bedrock::told::told;
use crate::event_stream::{Field, Piece, fields};
use crate::reading::Reading;
use document::Documents;
use framing::Framing;
use strip::write_without;

pub(crate) use strip::Stripped;

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
    events: Framing,
    reader: Documents,
    usage_members: UsageMembers,
    /// The event before was left out; what is left of its blank line goes with it.
    left_out: bool,
    /// The stream ended inside an event, and the client has got what there was of it.
    ended_inside_event: bool,
}

impl StreamMeter {
    /// A meter whose events are read up to `max_event_bytes`; larger ones pass unread and are
    /// counted in [`Reading::oversized_events`].
    pub fn new(api: Api, usage_members: UsageMembers, max_event_bytes: usize) -> Self {
        Self {
            events: Framing::new(api, max_event_bytes),
            reader: Documents::new(api),
            usage_members,
            left_out: false,
            ended_inside_event: false,
        }
    }

    /// Reads a chunk that passes untouched. Allocates for no event that lies within a chunk.
    pub fn observe(&mut self, chunk: &[u8]) {
        match &mut self.events {
            Framing::Lines(events) => events.push(chunk, |piece| {
                self.reader.read(piece);
            }),
            Framing::Frames(_) => self.read_each(chunk, &mut |_, _| {}),
        }
    }

    /// Reads a chunk and appends what the client gets: the same bytes, or, when usage is stripped,
    /// the events that the chunk completes. What is appended in all does not depend on the cuts.
    pub fn transform(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let Self {
            events,
            reader,
            left_out,
            ..
        } = self;
        let Some(events) = events
            .lines()
            .filter(|_| self.usage_members == UsageMembers::Strip)
        else {
            out.extend_from_slice(chunk);
            return self.observe(chunk);
        };
        events.push(chunk, |piece| {
            let stripped = reader.read(piece);
            write_piece(piece, stripped, reader, left_out, out);
        });
    }

    /// Reads a chunk of a stream that is translated: hands on each event's name, which may be
    /// empty, and its data, once they have been metered.
    pub fn read_each(&mut self, chunk: &[u8], hand_on: &mut dyn FnMut(&[u8], &[u8])) {
        let reader = &mut self.reader;
        match &mut self.events {
            Framing::Lines(events) => events.push(chunk, |piece| {
                reader.read(piece);
                name_and_data(piece, hand_on);
            }),
            Framing::Frames(frames) => frames.push(chunk, |frame| {
                if let Some((name, data)) = told(frame) {
                    reader.read_named(name, &data);
                    hand_on(name, &data);
                }
            }),
        }
    }

    /// Ends a stream that is translated.
    pub fn finish_each(&mut self, hand_on: &mut dyn FnMut(&[u8], &[u8])) {
        let Self { events, reader, .. } = self;
        // A frame that is cut off tells nothing.
        if let Some(events) = events.lines() {
            events.finish(|piece| {
                reader.read(piece);
                name_and_data(piece, hand_on);
            });
        }
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
        if let Some(events) = events.lines() {
            events.finish(|piece| {
                let stripped = reader.read(piece);
                if strips {
                    write_piece(piece, stripped, reader, left_out, out);
                }
            });
        }
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
        self.reader.reading()
    }
}

/// Hands on an event that has data; of several lines of data, all as one text.
fn name_and_data(piece: Piece<'_>, hand_on: &mut dyn FnMut(&[u8], &[u8])) {
    let Piece::Event(event) = piece else { return };
    let mut name: &[u8] = b"";
    let mut data: Option<Cow<'_, [u8]>> = None;
    for (field, range) in fields(event) {
        let value = event.get(range).unwrap_or_default();
        match (field, &mut data) {
            (Field::Name, _) => name = value,
            (Field::Data, None) => data = Some(Cow::Borrowed(value)),
            (Field::Data, Some(before)) => {
                let before = before.to_mut();
                before.push(b'\n');
                before.extend_from_slice(value);
            }
            (Field::Other, _) => {}
        }
    }
    if let Some(data) = data {
        hand_on(name, &data);
    }
}

fn write_piece(
    piece: Piece<'_>,
    stripped: Stripped,
    reader: &Documents,
    left_out: &mut bool,
    out: &mut Vec<u8>,
) {
    match piece {
        Piece::Event(event) => {
            *left_out = stripped == Stripped::Nothing;
            match stripped {
                Stripped::Whole => out.extend_from_slice(event),
                Stripped::WithoutUsage => {
                    let spans = reader.usage_spans();
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

/// Reads an answer that is one JSON document, cut anywhere and of any size.
#[derive(Clone, Debug)]
pub struct PlainMeter {
    reader: Documents,
}

impl PlainMeter {
    /// A meter at the start of an answer.
    pub fn new(api: Api) -> Self {
        Self {
            reader: Documents::new(api),
        }
    }

    /// Reads a chunk of the body.
    pub fn observe(&mut self, chunk: &[u8]) {
        let is_done = self.reader.feed(chunk);
        self.reader.reading_mut().is_done = is_done;
    }

    /// Ends the body.
    pub fn finish(&mut self) {
        let is_done = self.reader.finish();
        self.reader.reading_mut().is_done = is_done;
    }

    /// What has been read so far.
    pub fn reading(&self) -> &Reading {
        self.reader.reading()
    }
}

#[cfg(test)]
mod tests;
