//! The HTTP host over Envoy's callbacks; `flow` has the calls that are queued.

mod flow;

use std::cell::RefCell;

use crate::attribute::Attribute;
use crate::http::HttpHost;
use crate::metrics::{CounterId, GaugeId, HistogramId, MetricsError, check};
use crate::op::Queue;
use crate::raw::{Buffer, Callbacks, Pair, Ptr};
use crate::scheduler::{StreamScheduler, Target};
use crate::status::{Body, HeaderMap, MetadataSource};
use crate::view::{BodyChunks, Headers, Inline};

/// Envoy's side of a stream, for the length of one hook.
pub(crate) struct EnvoyStream<'a> {
    callbacks: &'static Callbacks,
    stream: Ptr,
    scheduler: &'a RefCell<Option<StreamScheduler>>,
    queue: Queue,
    response_started: bool,
}

impl<'a> EnvoyStream<'a> {
    pub(crate) fn new(
        callbacks: &'static Callbacks,
        stream: Ptr,
        scheduler: &'a RefCell<Option<StreamScheduler>>,
    ) -> Self {
        Self {
            callbacks,
            stream,
            scheduler,
            queue: Queue::default(),
            response_started: false,
        }
    }
}

/// Views of label names or values for one call.
pub(crate) fn label_buffers(labels: &[&str]) -> Inline<Buffer, 8> {
    let mut buffers = Inline::new();
    for label in labels {
        buffers.push(Buffer::new(label.as_bytes()));
    }
    buffers
}

/// A getter's out-parameter as bytes that live as long as the borrow of the host.
macro_rules! read_bytes {
    ($self:ident, $callback:ident ( $($arg:expr),* )) => {{
        let mut out = Buffer::NULL;
        // SAFETY: the stream is alive during its hook; Envoy fills `out` when it answers true,
        // with bytes that only a setter, which needs the host exclusively, can change.
        unsafe {
            ($self.callbacks.$callback)($self.stream, $($arg,)* &raw mut out).then(|| out.bytes())
        }
    }};
}

/// A getter's out-parameter as a plain value.
macro_rules! read_value {
    ($self:ident, $zero:expr, $callback:ident ( $($arg:expr),* )) => {{
        let mut out = $zero;
        // SAFETY: the stream is alive during its hook.
        let found = unsafe {
            ($self.callbacks.$callback)($self.stream, $($arg,)* &raw mut out)
        };
        found.then_some(out)
    }};
}

/// A callback that takes the stream and plain values or buffers that live during the call.
macro_rules! call {
    ($self:ident, $callback:ident ( $($arg:expr),* )) => {
        // SAFETY: the stream is alive during its hook; arguments are copied or only read.
        unsafe { ($self.callbacks.$callback)($self.stream, $($arg),*) }
    };
}

/// A metric call with label values.
macro_rules! metric {
    ($self:ident, $callback:ident, $id:expr, $labels:expr, $value:expr) => {{
        let labels = label_buffers($labels);
        let labels = labels.as_slice();
        check(call!(
            $self,
            $callback($id.0, labels.as_ptr(), labels.len(), $value)
        ))
    }};
}

impl HttpHost for EnvoyStream<'_> {
    fn headers(&self, map: HeaderMap) -> Headers<'_> {
        let len = call!(self, http_get_headers_size(map as u32));
        // SAFETY: Envoy writes `len` pairs, whose bytes live until a setter runs, which needs
        // the host exclusively.
        unsafe {
            Headers::filled(len, |out| {
                (self.callbacks.http_get_headers)(self.stream, map as u32, out)
            })
        }
    }

    fn header(&self, map: HeaderMap, name: &str) -> Option<&[u8]> {
        let mut out = Buffer::NULL;
        // SAFETY: as for `read_bytes!`; the total count may be null.
        unsafe {
            (self.callbacks.http_get_header)(
                self.stream,
                map as u32,
                Buffer::new(name.as_bytes()),
                &raw mut out,
                0,
                std::ptr::null_mut(),
            )
            .then(|| out.bytes())
        }
    }

    fn set_header(&mut self, map: HeaderMap, name: &str, value: &[u8]) -> bool {
        call!(
            self,
            http_set_header(map as u32, Buffer::new(name.as_bytes()), Buffer::new(value))
        )
    }

    fn add_header(&mut self, map: HeaderMap, name: &str, value: &[u8]) -> bool {
        call!(
            self,
            http_add_header(map as u32, Buffer::new(name.as_bytes()), Buffer::new(value))
        )
    }

    fn remove_header(&mut self, map: HeaderMap, name: &str) -> bool {
        call!(
            self,
            http_set_header(map as u32, Buffer::new(name.as_bytes()), Buffer::NULL)
        )
    }

    fn body(&self, body: Body) -> BodyChunks<'_> {
        let len = call!(self, http_get_body_chunks_size(body as u32));
        // SAFETY: Envoy writes `len` buffers, whose bytes live until a setter runs, which needs
        // the host exclusively.
        unsafe {
            BodyChunks::filled(len, |out| {
                (self.callbacks.http_get_body_chunks)(self.stream, body as u32, out)
            })
        }
    }

    fn body_size(&self, body: Body) -> usize {
        call!(self, http_get_body_size(body as u32))
    }

    fn drain_body(&mut self, body: Body, bytes: usize) -> bool {
        bytes == 0 || call!(self, http_drain_body(body as u32, bytes))
    }

    fn append_body(&mut self, body: Body, bytes: &[u8]) -> bool {
        bytes.is_empty() || call!(self, http_append_body(body as u32, Buffer::new(bytes)))
    }

    fn received_buffered_request_body(&self) -> bool {
        call!(self, http_received_buffered_request_body())
    }

    fn received_buffered_response_body(&self) -> bool {
        call!(self, http_received_buffered_response_body())
    }

    fn buffer_limit(&self) -> u64 {
        call!(self, http_get_buffer_limit())
    }

    fn set_buffer_limit(&mut self, bytes: u64) {
        call!(self, http_set_buffer_limit(bytes));
    }

    fn attribute_int(&self, attribute: Attribute) -> Option<u64> {
        read_value!(self, 0_u64, http_filter_get_attribute_int(attribute as u32))
    }

    fn attribute_str(&self, attribute: Attribute) -> Option<&[u8]> {
        read_bytes!(self, http_filter_get_attribute_string(attribute as u32))
    }

    fn metadata_string(&self, source: MetadataSource, namespace: &str, key: &str) -> Option<&[u8]> {
        let (namespace, key) = (
            Buffer::new(namespace.as_bytes()),
            Buffer::new(key.as_bytes()),
        );
        read_bytes!(
            self,
            http_get_metadata_string(source as u32, namespace, key)
        )
    }

    fn metadata_number(&self, source: MetadataSource, namespace: &str, key: &str) -> Option<f64> {
        let (namespace, key) = (
            Buffer::new(namespace.as_bytes()),
            Buffer::new(key.as_bytes()),
        );
        read_value!(
            self,
            0_f64,
            http_get_metadata_number(source as u32, namespace, key)
        )
    }

    fn set_metadata_string(&mut self, namespace: &str, key: &str, value: &[u8]) {
        let (namespace, key) = (
            Buffer::new(namespace.as_bytes()),
            Buffer::new(key.as_bytes()),
        );
        call!(
            self,
            http_set_dynamic_metadata_string(namespace, key, Buffer::new(value))
        );
    }

    fn set_metadata_number(&mut self, namespace: &str, key: &str, value: f64) {
        let (namespace, key) = (
            Buffer::new(namespace.as_bytes()),
            Buffer::new(key.as_bytes()),
        );
        call!(
            self,
            http_set_dynamic_metadata_number(namespace, key, value)
        );
    }

    fn set_metadata_strings(&mut self, namespace: &str, entries: &[(&str, &[u8])]) {
        let mut pairs = Inline::<Pair, 16>::new();
        for (key, value) in entries {
            pairs.push(Pair::new(key, value));
        }
        let (namespace, pairs) = (Buffer::new(namespace.as_bytes()), pairs.as_slice());
        call!(
            self,
            http_set_dynamic_metadata_string_batch(namespace, pairs.as_ptr(), pairs.len())
        );
    }

    fn set_span_tag(&mut self, key: &str, value: &[u8]) {
        let span = call!(self, http_get_active_span());
        if span.is_null() {
            return;
        }
        // SAFETY: the span is alive while the stream is; both buffers are copied.
        unsafe {
            (self.callbacks.http_span_set_tag)(
                span,
                Buffer::new(key.as_bytes()),
                Buffer::new(value),
            );
        }
    }

    fn cluster_name(&self) -> Option<&[u8]> {
        read_bytes!(self, http_get_cluster_name())
    }

    fn worker_index(&self) -> u32 {
        call!(self, http_filter_get_worker_index())
    }

    fn new_scheduler(&mut self) -> StreamScheduler {
        self.scheduler
            .borrow_mut()
            .get_or_insert_with(|| {
                StreamScheduler::new(Target {
                    raw: call!(self, http_filter_scheduler_new()),
                    commit: self.callbacks.http_filter_scheduler_commit,
                    delete: self.callbacks.http_filter_scheduler_delete,
                })
            })
            .clone()
    }

    fn increment_counter(
        &mut self,
        counter: CounterId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError> {
        metric!(self, http_filter_increment_counter, counter, labels, by)
    }

    fn increment_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError> {
        metric!(self, http_filter_increment_gauge, gauge, labels, by)
    }

    fn decrement_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError> {
        metric!(self, http_filter_decrement_gauge, gauge, labels, by)
    }

    fn set_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        value: u64,
    ) -> Result<(), MetricsError> {
        metric!(self, http_filter_set_gauge, gauge, labels, value)
    }

    fn record_histogram(
        &mut self,
        histogram: HistogramId,
        labels: &[&str],
        value: u64,
    ) -> Result<(), MetricsError> {
        metric!(
            self,
            http_filter_record_histogram_value,
            histogram,
            labels,
            value
        )
    }
}
