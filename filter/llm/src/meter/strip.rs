//! Takes out of a stream the usage that we asked for and the client did not.

use std::ops::Range;

use crate::event_stream::{Field, fields};

/// What the client gets of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stripped {
    Whole,
    WithoutUsage,
    Nothing,
}

/// Appends the event without its document's `spans`; every other byte stays, line starts and ends
/// included.
pub(super) fn write_without(event: &[u8], spans: &[Range<usize>], out: &mut Vec<u8>) {
    let mut written = 0;
    // Of the document: where the line at hand begins.
    let mut line_start = 0;
    for (_, line) in fields(event).filter(|(field, _)| *field == Field::Data) {
        for span in spans {
            let from = span.start.max(line_start);
            let to = span.end.min(line_start + line.len());
            if from < to {
                let from = line.start + from - line_start;
                out.extend_from_slice(event.get(written..from).unwrap_or_default());
                written = line.start + to - line_start;
            }
        }
        line_start += line.len() + 1;
    }
    out.extend_from_slice(event.get(written..).unwrap_or_default());
}
