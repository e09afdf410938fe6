//! How a stream is cut into events.

use crate::api::Api;
use crate::bedrock::frames::FrameStream;
use crate::event_stream::EventStream;

/// Lines of text everywhere but at Bedrock.
#[derive(Clone, Debug)]
pub(super) enum Framing {
    Lines(EventStream),
    Frames(FrameStream),
}

impl Framing {
    pub(super) fn new(api: Api, max_event_bytes: usize) -> Self {
        match api {
            Api::Converse => Self::Frames(FrameStream::new(max_event_bytes)),
            _ => Self::Lines(EventStream::new(max_event_bytes)),
        }
    }

    pub(super) const fn lines(&mut self) -> Option<&mut EventStream> {
        match self {
            Self::Lines(events) => Some(events),
            Self::Frames(_) => None,
        }
    }

    /// Whether the event at hand is larger than is read, so that its bytes are handed on at once.
    pub(super) fn is_in_excess(&self) -> bool {
        match self {
            Self::Lines(events) => events.is_in_excess(),
            Self::Frames(_) => false,
        }
    }

    /// Whether the bytes so far end where an event ends.
    pub(super) fn is_at_boundary(&self) -> bool {
        match self {
            Self::Lines(events) => events.is_at_boundary(),
            Self::Frames(frames) => frames.is_at_boundary(),
        }
    }
}
