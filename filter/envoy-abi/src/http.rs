//! HTTP filters: what a filter implements and what it may call.
//!
//! One [`HttpFilterConfig`] comes out of the module's `http_filter` factory and says on which
//! side of the router its filters stand. Both sides share [`HttpHost`]; each hook then gets the
//! narrowest host trait that is safe in it, so a call that would crash Envoy does not compile.

use crate::attribute::Attribute;
use crate::metrics::{CounterId, GaugeId, HistogramId, MetricsError};
use crate::scheduler::StreamScheduler;
use crate::status::{
    Body, BodyStatus, HeaderMap, HeadersStatus, LocalReplyStatus, MetadataSource, TrailersStatus,
};
use crate::view::{BodyChunks, Headers};

/// A parsed filter configuration, one variant for each place in which Envoy can run a filter.
pub enum HttpFilterConfig {
    /// In the HTTP connection manager's chain.
    Downstream(Box<dyn DownstreamFilterConfig>),
    /// In a cluster's upstream chain: one instance for each attempt.
    Upstream(Box<dyn UpstreamFilterConfig>),
}

impl std::fmt::Debug for HttpFilterConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Downstream(_) => "HttpFilterConfig::Downstream",
            Self::Upstream(_) => "HttpFilterConfig::Upstream",
        })
    }
}

/// Makes the downstream filters of one configuration; shared by all workers.
pub trait DownstreamFilterConfig: Send + Sync {
    /// Makes the filter of one stream; no header or body is readable yet.
    fn new_filter(&self, host: &mut dyn HttpHost) -> Box<dyn DownstreamFilter>;
}

/// Makes the upstream filters of one configuration; shared by all workers.
pub trait UpstreamFilterConfig: Send + Sync {
    /// Makes the filter of one attempt; no header or body is readable yet.
    fn new_filter(&self, host: &mut dyn HttpHost) -> Box<dyn UpstreamFilter>;
}

/// What may be called while an HTTP filter configuration is created (main thread).
pub trait HttpConfigHost {
    /// Defines a counter whose values carry these label names.
    fn define_counter(&mut self, name: &str, labels: &[&str]) -> Result<CounterId, MetricsError>;
    /// Defines a gauge whose values carry these label names.
    fn define_gauge(&mut self, name: &str, labels: &[&str]) -> Result<GaugeId, MetricsError>;
    /// Defines a histogram whose values carry these label names.
    fn define_histogram(
        &mut self,
        name: &str,
        labels: &[&str],
    ) -> Result<HistogramId, MetricsError>;
    /// Whether Envoy only checks its configuration: start no thread and write no file then.
    fn validation_mode(&self) -> bool;
    /// Number of worker threads.
    fn concurrency(&self) -> u32;
}

/// A filter in the downstream chain, one instance for each stream, always on one worker thread.
///
/// Order: request hooks, response hooks, `on_stream_complete`, drop. `on_local_reply` may come
/// at any time before `on_stream_complete`. Drop runs without a host.
pub trait DownstreamFilter {
    /// Request headers arrived.
    fn on_request_headers(
        &mut self,
        _host: &mut dyn DownstreamHost,
        _end_of_stream: bool,
    ) -> HeadersStatus {
        HeadersStatus::Continue
    }
    /// A request body frame arrived, possibly empty.
    fn on_request_body(
        &mut self,
        _host: &mut dyn DownstreamHost,
        _end_of_stream: bool,
    ) -> BodyStatus {
        BodyStatus::Continue
    }
    /// Request trailers arrived.
    fn on_request_trailers(&mut self, _host: &mut dyn DownstreamHost) -> TrailersStatus {
        TrailersStatus::Continue
    }
    /// Response headers of the winning attempt, or of a local reply of another filter.
    fn on_response_headers(
        &mut self,
        _host: &mut dyn DownstreamHost,
        _end_of_stream: bool,
    ) -> HeadersStatus {
        HeadersStatus::Continue
    }
    /// A response body frame, possibly empty; this filter's own error events are not shown.
    fn on_response_body(
        &mut self,
        _host: &mut dyn DownstreamHost,
        _end_of_stream: bool,
    ) -> BodyStatus {
        BodyStatus::Continue
    }
    /// Response trailers arrived.
    fn on_response_trailers(&mut self, _host: &mut dyn DownstreamHost) -> TrailersStatus {
        TrailersStatus::Continue
    }
    /// Someone in this Envoy (this filter included) replies in the provider's place, or the
    /// stream is about to be cut because response headers are already out.
    fn on_local_reply(
        &mut self,
        _host: &mut dyn LocalReplyHost,
        _reply: LocalReply<'_>,
    ) -> LocalReplyStatus {
        LocalReplyStatus::Continue
    }
    /// The stream is over; always called, before the access log and before the last attempt's
    /// filter is dropped. Request headers and metadata set here are logged; span tags are lost.
    fn on_stream_complete(&mut self, _host: &mut dyn HttpHost) {}
    /// A [`StreamScheduler::commit`] of this stream arrived on its worker.
    fn on_scheduled(&mut self, _host: &mut dyn ScheduledHost, _event_id: u64) {}
    /// The client reads slower than the response arrives.
    fn on_above_write_buffer_high_watermark(&mut self, _host: &mut dyn HttpHost) {}
    /// The client has caught up.
    fn on_below_write_buffer_low_watermark(&mut self, _host: &mut dyn HttpHost) {}
}

/// A filter in a cluster's upstream chain, one instance for each attempt.
///
/// There is no completion hook: a lost, finished or aborted attempt is just dropped, after the
/// downstream `on_stream_complete` when it was the last one.
pub trait UpstreamFilter {
    /// Request headers of this attempt, with what earlier attempts changed in them.
    fn on_request_headers(
        &mut self,
        _host: &mut dyn UpstreamHost,
        _end_of_stream: bool,
    ) -> HeadersStatus {
        HeadersStatus::Continue
    }
    /// A request body frame; an attempt always starts from the downstream chain's body.
    fn on_request_body(
        &mut self,
        _host: &mut dyn UpstreamHost,
        _end_of_stream: bool,
    ) -> BodyStatus {
        BodyStatus::Continue
    }
    /// Request trailers arrived.
    fn on_request_trailers(&mut self, _host: &mut dyn UpstreamHost) -> TrailersStatus {
        TrailersStatus::Continue
    }
    /// Response headers of this attempt; a retriable `:status` set here makes the router retry.
    fn on_response_headers(
        &mut self,
        _host: &mut dyn HttpHost,
        _end_of_stream: bool,
    ) -> HeadersStatus {
        HeadersStatus::Continue
    }
    /// A response body frame of this attempt, possibly empty.
    fn on_response_body(&mut self, _host: &mut dyn HttpHost, _end_of_stream: bool) -> BodyStatus {
        BodyStatus::Continue
    }
    /// Response trailers arrived.
    fn on_response_trailers(&mut self, _host: &mut dyn HttpHost) -> TrailersStatus {
        TrailersStatus::Continue
    }
    /// A [`StreamScheduler::commit`] of this attempt arrived on its worker.
    fn on_scheduled(&mut self, _host: &mut dyn UpstreamHost, _event_id: u64) {}
}

/// What the local-reply hook is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalReply<'a> {
    /// HTTP status of the reply.
    pub status: u32,
    /// Envoy's response code details, such as `upstream_reset_after_response_started{…}`.
    pub details: &'a [u8],
    /// Another filter has already asked for a reset in place of the reply.
    pub reset_imminent: bool,
}

/// What both filter kinds may call in every hook.
///
/// Getters borrow the host shared and their slices point into Envoy's memory; setters borrow it
/// exclusively, so no slice can be held over a change. No call here re-enters a hook.
pub trait HttpHost {
    /// All headers of one map, in order; empty when the map does not exist yet.
    fn headers(&self, map: HeaderMap) -> Headers<'_>;
    /// The first value of a header; `name` in lower case.
    fn header(&self, map: HeaderMap, name: &str) -> Option<&[u8]>;
    /// Replaces all values of a header; false when the map does not exist.
    fn set_header(&mut self, map: HeaderMap, name: &str, value: &[u8]) -> bool;
    /// Adds one value of a header; false when the map does not exist.
    fn add_header(&mut self, map: HeaderMap, name: &str, value: &[u8]) -> bool;
    /// Removes all values of a header; false when the map does not exist.
    fn remove_header(&mut self, map: HeaderMap, name: &str) -> bool;

    /// The chunks of one body buffer, without a copy; empty when there is none.
    fn body(&self, body: Body) -> BodyChunks<'_>;
    /// Length of one body buffer in bytes.
    fn body_size(&self, body: Body) -> usize;
    /// Removes `bytes` from the front of a body buffer; false when there is none.
    fn drain_body(&mut self, body: Body, bytes: usize) -> bool;
    /// Appends to a body buffer; false when there is none.
    fn append_body(&mut self, body: Body, bytes: &[u8]) -> bool;
    /// Whether `Body::ReceivedRequest` is the replay of `Body::BufferedRequest`; counting both
    /// would then count twice.
    fn received_buffered_request_body(&self) -> bool;
    /// The same for the response.
    fn received_buffered_response_body(&self) -> bool;
    /// Bytes that Envoy buffers for this stream at most.
    fn buffer_limit(&self) -> u64;
    /// Changes that limit, in bytes; the router's retry buffer follows it.
    fn set_buffer_limit(&mut self, bytes: u64);

    /// A numeric attribute.
    fn attribute_int(&self, attribute: Attribute) -> Option<u64>;
    /// A text attribute.
    fn attribute_str(&self, attribute: Attribute) -> Option<&[u8]>;
    /// A metadata string.
    fn metadata_string(&self, source: MetadataSource, namespace: &str, key: &str) -> Option<&[u8]>;
    /// A metadata number.
    fn metadata_number(&self, source: MetadataSource, namespace: &str, key: &str) -> Option<f64>;
    /// Sets a dynamic metadata string.
    fn set_metadata_string(&mut self, namespace: &str, key: &str, value: &[u8]);
    /// Sets a dynamic metadata number.
    fn set_metadata_number(&mut self, namespace: &str, key: &str, value: f64);
    /// Sets many dynamic metadata strings of one namespace in one call.
    fn set_metadata_strings(&mut self, namespace: &str, entries: &[(&str, &[u8])]);
    /// Tags the stream's trace span, if tracing is on; lost in `on_stream_complete`.
    fn set_span_tag(&mut self, key: &str, value: &[u8]);
    /// Name of the stream's current cluster.
    fn cluster_name(&self) -> Option<&[u8]>;
    /// Index of the worker thread, from 0 to concurrency - 1.
    fn worker_index(&self) -> u32;
    /// A handle that can wake this stream from any thread.
    fn new_scheduler(&mut self) -> StreamScheduler;

    /// Adds to a counter.
    fn increment_counter(
        &mut self,
        counter: CounterId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError>;
    /// Adds to a gauge.
    fn increment_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError>;
    /// Subtracts from a gauge, which wraps below zero.
    fn decrement_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError>;
    /// Sets a gauge.
    fn set_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        value: u64,
    ) -> Result<(), MetricsError>;
    /// Records a value in a histogram.
    fn record_histogram(
        &mut self,
        histogram: HistogramId,
        labels: &[&str],
        value: u64,
    ) -> Result<(), MetricsError>;

    /// Appends the whole request body to `out`: what was held back, then the received frame.
    fn copy_request_body(&self, out: &mut Vec<u8>) {
        if !self.received_buffered_request_body() {
            self.body(Body::BufferedRequest).copy_to(out);
        }
        self.body(Body::ReceivedRequest).copy_to(out);
    }
    /// Replaces the whole request body; `content-length` stays the caller's business. In a trailers
    /// hook there is no received frame: what was held back then takes the bytes.
    fn replace_request_body(&mut self, bytes: &[u8]) {
        if !self.received_buffered_request_body() {
            self.drain_body(Body::BufferedRequest, self.body_size(Body::BufferedRequest));
        }
        self.drain_body(Body::ReceivedRequest, self.body_size(Body::ReceivedRequest));
        if !self.append_body(Body::ReceivedRequest, bytes) {
            self.append_body(Body::BufferedRequest, bytes);
        }
    }
    /// Appends the whole response body held so far to `out`, then the received frame.
    fn copy_response_body(&self, out: &mut Vec<u8>) {
        if !self.received_buffered_response_body() {
            self.body(Body::BufferedResponse).copy_to(out);
        }
        self.body(Body::ReceivedResponse).copy_to(out);
    }
    /// Replaces the whole response body held so far and the received frame, as
    /// [`replace_request_body`](Self::replace_request_body) does.
    fn replace_response_body(&mut self, bytes: &[u8]) {
        if !self.received_buffered_response_body() {
            self.drain_body(
                Body::BufferedResponse,
                self.body_size(Body::BufferedResponse),
            );
        }
        self.drain_body(
            Body::ReceivedResponse,
            self.body_size(Body::ReceivedResponse),
        );
        if !self.append_body(Body::ReceivedResponse, bytes) {
            self.append_body(Body::BufferedResponse, bytes);
        }
    }
}

/// What a downstream filter may call besides [`HttpHost`].
///
/// Every call of this trait is queued and made, in order, after the hook has returned and before
/// Envoy gets its answer: each may re-enter this filter or others.
pub trait DownstreamHost: HttpHost {
    /// Replies to the client; answer the hook with `StopIteration` or `StopIterationNoBuffer`.
    /// Re-enters this filter's `on_local_reply`, not its response hooks.
    fn send_response(&mut self, status: u16, headers: &[(&str, &[u8])], body: &[u8], details: &str);
    /// Cuts the stream.
    fn reset_stream(&mut self, details: &str);
    /// Selects route and cluster again.
    fn clear_route_cache(&mut self);
    /// Selects the cluster again on the same route; runs the cluster specifier.
    fn clear_route_cluster_cache(&mut self);
    /// Resumes a request that a hook stopped; headers go on first.
    fn continue_decoding(&mut self);
    /// Resumes a response that a hook stopped.
    fn continue_encoding(&mut self);
}

/// What the scheduled hook of a downstream filter may call.
pub trait ScheduledHost: DownstreamHost {
    /// Ends the response with trailers: after `on_response_body(end_of_stream = true)` answered
    /// `StopIterationAndBuffer`, when Envoy flushes the buffered body first; or in the middle of a
    /// body, when the attempt's connection is closed and no trailers, where there are none, leave
    /// a body that ends as it should (measured on Envoy 1.40 over HTTP/1.1). Queued.
    fn send_response_trailers(&mut self, trailers: &[(&str, &[u8])]);
}

/// What the local-reply hook may call.
pub trait LocalReplyHost: HttpHost {
    /// Whether this filter has let response headers through, so that the reply will be a cut.
    fn response_started(&self) -> bool;
    /// Sends bytes to the client before the cut, without ending the stream; false (and nothing
    /// sent) when response headers are not out. Queued; not shown to `on_response_body`.
    fn send_error_event(&mut self, bytes: &[u8]) -> bool;
}

/// What an upstream filter may call on the request side and when scheduled.
///
/// Every call of this trait is queued, like those of [`DownstreamHost`]. There is no reset: it
/// takes Envoy down here.
pub trait UpstreamHost: HttpHost {
    /// Replies to the client in the provider's place; never retried. Ignored, with an error in
    /// the log, once this attempt's response headers have arrived. On a retry the downstream
    /// filter's hooks up to `on_stream_complete` run inside this call.
    fn send_response(&mut self, status: u16, headers: &[(&str, &[u8])], body: &[u8], details: &str);
    /// Resumes a request that a hook stopped.
    fn continue_decoding(&mut self);
    /// Resumes a response that a hook stopped.
    fn continue_encoding(&mut self);
}
