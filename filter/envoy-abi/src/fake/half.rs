//! One direction of a stream through one filter: what is held, and what got through.

use crate::fake::host::FakeHost;
use crate::status::{Body, BodyStatus, HeadersStatus};

/// Requests or responses through one filter.
#[derive(Default)]
pub(super) struct Half {
    /// The filter stopped everything: body hooks wait too.
    pub(super) stopped_all: bool,
    /// Headers were let through.
    pub(super) headers_out: bool,
    /// The end of the stream was seen by the filter, or waits behind `stopped_all`.
    pub(super) end_seen: bool,
    /// The end of the stream was let through.
    pub(super) ended: bool,
    /// Bytes that Envoy buffers for the filter.
    pub(super) held: Vec<u8>,
    /// Bytes let through and not yet taken.
    pub(super) out: Vec<u8>,
}

impl Half {
    /// Follows the answer of a headers hook.
    pub(super) fn headers_answered(&mut self, status: HeadersStatus, end: bool) {
        self.end_seen = end;
        match status {
            HeadersStatus::Continue => {
                self.headers_out = true;
                self.ended = end;
            }
            HeadersStatus::ContinueAndDontEndStream => self.headers_out = true,
            HeadersStatus::StopIteration => {}
            HeadersStatus::StopAllIterationAndBuffer
            | HeadersStatus::StopAllIterationAndWatermark => self.stopped_all = true,
        }
    }

    /// Puts a frame where the body hook looks for it; false when no hook may be called.
    pub(super) fn frame_arrives(
        &mut self,
        host: &mut FakeHost,
        pair: BodyPair,
        frame: &[u8],
        end: bool,
    ) -> bool {
        self.end_seen = end;
        if self.stopped_all {
            self.held.extend_from_slice(frame);
            return false;
        }
        host.put_body(pair.buffered, &[&std::mem::take(&mut self.held)]);
        host.put_body(pair.received, &[frame]);
        true
    }

    /// Follows the answer of a body hook.
    pub(super) fn body_answered(
        &mut self,
        host: &mut FakeHost,
        pair: BodyPair,
        status: BodyStatus,
        end: bool,
    ) {
        let buffered = host.take_body(pair.buffered);
        let received = host.take_body(pair.received);
        match status {
            BodyStatus::Continue => {
                self.out.extend(buffered);
                self.out.extend(received);
                self.headers_out = true;
                self.ended |= end;
            }
            BodyStatus::StopIterationAndBuffer | BodyStatus::StopIterationAndWatermark => {
                self.held = buffered;
                self.held.extend(received);
            }
            BodyStatus::StopIterationNoBuffer => self.held = buffered,
        }
    }

    /// Lets everything held through.
    pub(super) fn release(&mut self) {
        self.headers_out = true;
        let held = std::mem::take(&mut self.held);
        self.out.extend(held);
        self.ended |= self.end_seen;
    }
}

/// The two buffers of one direction.
#[derive(Clone, Copy)]
pub(super) struct BodyPair {
    pub(super) received: Body,
    pub(super) buffered: Body,
}

pub(super) const REQUEST: BodyPair = BodyPair {
    received: Body::ReceivedRequest,
    buffered: Body::BufferedRequest,
};
pub(super) const RESPONSE: BodyPair = BodyPair {
    received: Body::ReceivedResponse,
    buffered: Body::BufferedResponse,
};
