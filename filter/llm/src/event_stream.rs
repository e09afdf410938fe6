//! Server-sent events, as they arrive: cut anywhere, with any line ends, with or without the last
//! blank line.
//!
//! [`EventStream`] finds where events end; [`fields`] reads one event's lines. Nothing is decoded
//! and nothing is copied but an event that spans chunks.

use std::ops::Range;

use memchr::memchr2;

/// Buffers up to this size are kept for the next event that spans chunks; larger ones are given
/// back, since a stream may stay open for long.
const KEPT_BUFFER_BYTES: usize = 8 * 1024;

/// A part of the stream. All pieces put together are the stream, byte for byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// A whole event with its blank line; or the stream's last one, which may lack it; or a blank
    /// line alone.
    Event(&'a [u8]),
    /// The line feed that ends the blank line of the event before, where a chunk's end fell
    /// between it and its carriage return.
    LineFeed,
    /// Bytes of an event that is larger than is read. `is_first`: of this event there were none yet.
    Excess { bytes: &'a [u8], is_first: bool },
}

/// Cuts a stream into its events.
#[derive(Clone, Debug)]
pub struct EventStream {
    /// The event at hand, as much of it as came in earlier chunks.
    pending: Vec<u8>,
    max_event_bytes: usize,
    /// The event at hand is larger than `max_event_bytes`.
    is_excess: bool,
    /// The next byte begins a line.
    at_line_start: bool,
    carriage_return: CarriageReturn,
}

/// What a line feed at the start of the next chunk would belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CarriageReturn {
    None,
    EndedLine,
    EndedEvent,
}

impl EventStream {
    /// A stream whose events are read up to `max_event_bytes`, their blank line not counted.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            pending: Vec::new(),
            max_event_bytes,
            is_excess: false,
            at_line_start: true,
            carriage_return: CarriageReturn::None,
        }
    }

    /// Whether the bytes so far end where an event ends.
    pub fn is_at_boundary(&self) -> bool {
        self.pending.is_empty() && !self.is_excess
    }

    /// Whether the event at hand is larger than is read, so that its bytes are handed on at once.
    pub fn is_in_excess(&self) -> bool {
        self.is_excess
    }

    /// Takes the next chunk and hands on the pieces that it completes.
    pub fn push(&mut self, chunk: &[u8], mut hand_on: impl FnMut(Piece<'_>)) {
        let mut rest = self.line_feed_first(chunk, &mut hand_on);
        while let Some(end) = self.event_end(rest) {
            let (event, later) = rest.split_at(end.next);
            self.end_event(event, end.blank_line_bytes, &mut hand_on);
            rest = later;
        }
        self.keep(rest, &mut hand_on);
    }

    /// Ends the stream: an event without its blank line is handed on as it is.
    pub fn finish(&mut self, mut hand_on: impl FnMut(Piece<'_>)) {
        if !self.pending.is_empty() {
            hand_on(Piece::Event(&self.pending));
        }
        *self = Self::new(self.max_event_bytes);
    }

    /// Settles whose line feed it is that a chunk begins with.
    fn line_feed_first<'a>(
        &mut self,
        chunk: &'a [u8],
        hand_on: &mut impl FnMut(Piece<'_>),
    ) -> &'a [u8] {
        let (Some(&first), Some(rest)) = (chunk.first(), chunk.get(1..)) else {
            return chunk;
        };
        let carriage_return = std::mem::replace(&mut self.carriage_return, CarriageReturn::None);
        match carriage_return {
            CarriageReturn::EndedEvent if first == b'\n' => {
                hand_on(Piece::LineFeed);
                rest
            }
            CarriageReturn::EndedLine if first == b'\n' => {
                self.keep(b"\n", hand_on);
                rest
            }
            _ => chunk,
        }
    }

    /// Where the event at hand ends within `bytes`; `None` when it does not.
    fn event_end(&mut self, bytes: &[u8]) -> Option<EventEnd> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let line_end = if self.at_line_start && matches!(rest.first(), Some(b'\n' | b'\r')) {
                0
            } else {
                let Some(line_end) = memchr2(b'\n', b'\r', rest) else {
                    self.at_line_start &= rest.is_empty();
                    return None;
                };
                self.at_line_start = false;
                line_end
            };
            let terminator = match rest.get(line_end..) {
                Some([b'\r', b'\n', ..]) => 2,
                Some([b'\r']) => {
                    self.carriage_return = CarriageReturn::EndedLine;
                    1
                }
                _ => 1,
            };
            at += line_end + terminator;
            if self.at_line_start {
                if self.carriage_return == CarriageReturn::EndedLine {
                    self.carriage_return = CarriageReturn::EndedEvent;
                }
                return Some(EventEnd {
                    next: at,
                    blank_line_bytes: terminator,
                });
            }
            self.at_line_start = true;
        }
    }

    /// Hands on the event that ends with `last`.
    fn end_event(
        &mut self,
        last: &[u8],
        blank_line_bytes: usize,
        hand_on: &mut impl FnMut(Piece<'_>),
    ) {
        let bytes = self.pending.len() + last.len() - blank_line_bytes;
        if self.is_excess || bytes > self.max_event_bytes {
            self.hand_on_excess(last, hand_on);
            self.is_excess = false;
        } else if self.pending.is_empty() {
            hand_on(Piece::Event(last));
        } else {
            self.pending.extend_from_slice(last);
            hand_on(Piece::Event(&self.pending));
            self.forget_pending();
        }
    }

    /// Keeps the start of an event until the rest of it comes.
    fn keep(&mut self, bytes: &[u8], hand_on: &mut impl FnMut(Piece<'_>)) {
        if bytes.is_empty() {
            return;
        }
        if self.is_excess || self.pending.len() + bytes.len() > self.max_event_bytes {
            self.hand_on_excess(bytes, hand_on);
        } else {
            self.pending.extend_from_slice(bytes);
        }
    }

    fn hand_on_excess(&mut self, bytes: &[u8], hand_on: &mut impl FnMut(Piece<'_>)) {
        let mut is_first = !self.is_excess;
        if !self.pending.is_empty() {
            let bytes = &self.pending;
            hand_on(Piece::Excess { bytes, is_first });
            is_first = false;
            self.forget_pending();
        }
        hand_on(Piece::Excess { bytes, is_first });
        self.is_excess = true;
    }

    fn forget_pending(&mut self) {
        if self.pending.capacity() > KEPT_BUFFER_BYTES {
            self.pending = Vec::new();
        }
        self.pending.clear();
    }
}

struct EventEnd {
    /// The first byte after the event.
    next: usize,
    blank_line_bytes: usize,
}

/// What a line of an event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    Data,
    /// The field `event`.
    Name,
    /// Anything else: comments, ids, blank lines.
    Other,
}

/// The lines of one event, each with the range of its value. Several values of [`Field::Data`]
/// are one text, joined by line feeds.
pub fn fields(event: &[u8]) -> Fields<'_> {
    let byte_order_mark = event.starts_with(b"\xef\xbb\xbf");
    Fields {
        event,
        at: if byte_order_mark { 3 } else { 0 },
    }
}

/// See [`fields`].
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    event: &'a [u8],
    at: usize,
}

impl Iterator for Fields<'_> {
    type Item = (Field, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.event.get(self.at..).filter(|rest| !rest.is_empty())?;
        let line_bytes = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (line, end) = rest.split_at(line_bytes);
        let (field, value) = field_of(line);
        let start = self.at + line_bytes - value.len();
        let range = start..self.at + line_bytes;
        self.at = range.end + if end.starts_with(b"\r\n") { 2 } else { 1 };
        Some((field, range))
    }
}

fn field_of(line: &[u8]) -> (Field, &[u8]) {
    let (field, value) = if let Some(value) = line.strip_prefix(b"data") {
        (Field::Data, value)
    } else if let Some(value) = line.strip_prefix(b"event") {
        (Field::Name, value)
    } else {
        return (Field::Other, line);
    };
    match value {
        [] => (field, value),
        [b':', b' ', value @ ..] | [b':', value @ ..] => (field, value),
        _ => (Field::Other, line),
    }
}

#[cfg(test)]
mod tests;
