//! The queued calls of a fake stream.

use crate::cell::Stream;
use crate::fake::host::{Call, FakeHost};
use crate::http::{DownstreamHost, LocalReplyHost, ScheduledHost, UpstreamHost};
use crate::op::QueuedCall;

/// Where a stream is after a step of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Let through as far as it goes.
    #[default]
    Passed,
    /// A filter holds it.
    Held,
    /// The attempt was lost to a retry; start the next one.
    Retry,
    /// The client was answered by a filter, or cut off.
    Over,
}

impl DownstreamHost for FakeHost {
    fn send_response(
        &mut self,
        status: u16,
        headers: &[(&str, &[u8])],
        body: &[u8],
        details: &str,
    ) {
        self.queue
            .push(QueuedCall::reply(status, headers, body, details));
    }

    fn reset_stream(&mut self, details: &str) {
        self.queue.push(QueuedCall::ResetStream {
            details: details.to_owned(),
        });
    }

    fn clear_route_cache(&mut self) {
        self.queue.push(QueuedCall::ClearRouteCache);
    }

    fn clear_route_cluster_cache(&mut self) {
        self.queue.push(QueuedCall::ClearRouteClusterCache);
    }

    fn continue_decoding(&mut self) {
        self.queue.push(QueuedCall::ContinueDecoding);
    }

    fn continue_encoding(&mut self) {
        self.queue.push(QueuedCall::ContinueEncoding);
    }
}

impl UpstreamHost for FakeHost {
    fn send_response(
        &mut self,
        status: u16,
        headers: &[(&str, &[u8])],
        body: &[u8],
        details: &str,
    ) {
        DownstreamHost::send_response(self, status, headers, body, details);
    }

    fn continue_decoding(&mut self) {
        DownstreamHost::continue_decoding(self);
    }

    fn continue_encoding(&mut self) {
        DownstreamHost::continue_encoding(self);
    }
}

impl ScheduledHost for FakeHost {
    fn send_response_trailers(&mut self, trailers: &[(&str, &[u8])]) {
        self.queue.push(QueuedCall::trailers(trailers));
    }
}

impl LocalReplyHost for FakeHost {
    fn response_started(&self) -> bool {
        self.response_started
    }

    fn send_error_event(&mut self, bytes: &[u8]) -> bool {
        if self.response_started {
            self.queue.push(QueuedCall::SendErrorEvent(bytes.to_vec()));
        }
        self.response_started
    }
}

impl Stream for FakeHost {
    fn next_call(&mut self) -> Option<QueuedCall> {
        self.queue.pop()
    }

    fn forget_calls(&mut self) {
        self.queue.clear();
    }

    fn make_call(&mut self, call: QueuedCall) {
        self.calls.push(Call::Made(call));
    }

    fn set_response_started(&mut self, started: bool) {
        self.response_started = started;
    }
}
