//! The calls that may re-enter hooks: queued by the host traits, made by the filter cell.

use crate::cell::Stream;
use crate::envoy_stream::EnvoyStream;
use crate::http::{DownstreamHost, LocalReplyHost, ScheduledHost, UpstreamHost};
use crate::op::QueuedCall;
use crate::raw::{Buffer, Pair};
use crate::view::Inline;

/// Envoy's `LocalReset`; the other reason takes Envoy down.
const LOCAL_RESET: u32 = 0;

impl DownstreamHost for EnvoyStream<'_> {
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

impl UpstreamHost for EnvoyStream<'_> {
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

impl ScheduledHost for EnvoyStream<'_> {
    fn send_response_trailers(&mut self, trailers: &[(&str, &[u8])]) {
        self.queue.push(QueuedCall::trailers(trailers));
    }
}

impl LocalReplyHost for EnvoyStream<'_> {
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

impl Stream for EnvoyStream<'_> {
    fn next_call(&mut self) -> Option<QueuedCall> {
        self.queue.pop()
    }

    fn forget_calls(&mut self) {
        self.queue.clear();
    }

    fn make_call(&mut self, call: QueuedCall) {
        let (callbacks, stream) = (self.callbacks, self.stream);
        // SAFETY: the stream is alive during its hook, and the cell makes no call after the
        // filter was destroyed; buffers live during the call and Envoy copies them.
        unsafe {
            match call {
                QueuedCall::SendResponse {
                    status,
                    headers,
                    body,
                    details,
                } => {
                    let headers = pairs(&headers);
                    let headers = headers.as_slice();
                    (callbacks.http_send_response)(
                        stream,
                        u32::from(status),
                        headers.as_ptr(),
                        headers.len(),
                        Buffer::new(&body),
                        Buffer::new(details.as_bytes()),
                    );
                }
                QueuedCall::ResetStream { details } => (callbacks.http_filter_reset_stream)(
                    stream,
                    LOCAL_RESET,
                    Buffer::new(details.as_bytes()),
                ),
                QueuedCall::ClearRouteCache => (callbacks.http_clear_route_cache)(stream),
                QueuedCall::ClearRouteClusterCache => {
                    (callbacks.http_clear_route_cluster_cache)(stream);
                }
                QueuedCall::ContinueDecoding => (callbacks.http_filter_continue_decoding)(stream),
                QueuedCall::ContinueEncoding => (callbacks.http_filter_continue_encoding)(stream),
                // Never with end of stream: ending it in this hook takes Envoy down.
                QueuedCall::SendErrorEvent(bytes) => {
                    (callbacks.http_send_response_data)(stream, Buffer::new(&bytes), false);
                }
                QueuedCall::SendResponseTrailers(trailers) => {
                    let trailers = pairs(&trailers);
                    let trailers = trailers.as_slice();
                    (callbacks.http_send_response_trailers)(
                        stream,
                        trailers.as_ptr(),
                        trailers.len(),
                    );
                }
            }
        }
    }

    fn set_response_started(&mut self, started: bool) {
        self.response_started = started;
    }
}

/// Views of owned names and values for one call.
fn pairs(owned: &[(String, Vec<u8>)]) -> Inline<Pair, 16> {
    let mut pairs = Inline::new();
    for (name, value) in owned {
        pairs.push(Pair::new(name, value));
    }
    pairs
}
