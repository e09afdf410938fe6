//! The state of a fake stream, and the calls that do not re-enter hooks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::attribute::Attribute;
use crate::fake::metric::{
    Definition, MetricCall, MetricKind, check_labels, metric_call, recorded_metrics,
};
use crate::http::HttpHost;
use crate::metrics::MetricsError;
use crate::op::{Queue, QueuedCall};
use crate::raw::Ptr;
use crate::scheduler::{StreamScheduler, Target};
use crate::status::{Body, HeaderMap, MetadataSource};
use crate::view::{BodyChunks, Headers};

/// A change that a filter made, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// `set_header`.
    SetHeader(HeaderMap, String, Vec<u8>),
    /// `add_header`.
    AddHeader(HeaderMap, String, Vec<u8>),
    /// `remove_header`.
    RemoveHeader(HeaderMap, String),
    /// `drain_body`.
    DrainBody(Body, usize),
    /// `append_body`.
    AppendBody(Body, Vec<u8>),
    /// `set_buffer_limit`.
    SetBufferLimit(u64),
    /// Dynamic metadata, once for each entry of a batch.
    SetMetadata(String, String, MetadataValue),
    /// `set_span_tag`.
    SetSpanTag(String, Vec<u8>),
    /// A metric.
    Metric(MetricCall),
    /// A queued call, at the moment in which it was made.
    Made(QueuedCall),
}

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataValue {
    /// Text.
    String(Vec<u8>),
    /// A number.
    Number(f64),
}

type MetadataKey = (MetadataSource, String, String);
type Pairs = Vec<(String, Vec<u8>)>;

/// A stream as its filters see it, shared by the downstream and the upstream filter.
#[derive(Default)]
pub struct FakeHost {
    maps: BTreeMap<HeaderMap, Pairs>,
    bodies: BTreeMap<Body, Vec<Vec<u8>>>,
    metadata: BTreeMap<MetadataKey, MetadataValue>,
    wakes: Arc<Mutex<Vec<u64>>>,
    /// The stream's one scheduler; closed when its filter goes.
    pub(super) scheduler: Option<StreamScheduler>,
    pub(super) queue: Queue,
    pub(super) response_started: bool,
    /// Numeric attributes.
    pub ints: BTreeMap<Attribute, u64>,
    /// Text attributes.
    pub texts: BTreeMap<Attribute, Vec<u8>>,
    /// Whether the received request frame is the replay of the buffered one.
    pub replayed_request: bool,
    /// The same for the response.
    pub replayed_response: bool,
    /// What `buffer_limit` answers.
    pub buffer_limit: u64,
    /// What `cluster_name` answers.
    pub cluster: Option<String>,
    /// What `worker_index` answers.
    pub worker: u32,
    /// The configuration's metrics ([`FakeConfig::defined`](super::FakeConfig::defined)): a call
    /// for another one, or with other labels, fails as in Envoy and is not recorded.
    pub defined: Vec<Definition>,
    /// All changes so far.
    pub calls: Vec<Call>,
}

impl std::fmt::Debug for FakeHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeHost")
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

impl FakeHost {
    /// Replaces a header map.
    pub fn put_headers(&mut self, map: HeaderMap, headers: &[(&str, &str)]) {
        let pairs = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
            .collect();
        self.maps.insert(map, pairs);
    }

    /// The first value of a header as text.
    pub fn header_text(&self, map: HeaderMap, name: &str) -> Option<String> {
        self.header(map, name).map(text)
    }

    /// Replaces a body buffer by these chunks.
    pub fn put_body(&mut self, body: Body, chunks: &[&[u8]]) {
        let chunks = chunks.iter().map(|chunk| chunk.to_vec()).collect();
        self.bodies.insert(body, chunks);
    }

    /// All bytes of a body buffer.
    pub fn body_bytes(&self, body: Body) -> Vec<u8> {
        self.bodies
            .get(&body)
            .map(|b| b.concat())
            .unwrap_or_default()
    }

    /// Empties a body buffer and answers its bytes.
    pub fn take_body(&mut self, body: Body) -> Vec<u8> {
        self.bodies.remove(&body).unwrap_or_default().concat()
    }

    /// Puts a metadata value, of any source.
    pub fn put_metadata(
        &mut self,
        source: MetadataSource,
        namespace: &str,
        key: &str,
        value: MetadataValue,
    ) {
        let key = (source, namespace.to_owned(), key.to_owned());
        self.metadata.insert(key, value);
    }

    /// A dynamic metadata string as text.
    pub fn metadata_text(&self, namespace: &str, key: &str) -> Option<String> {
        self.metadata_string(MetadataSource::Dynamic, namespace, key)
            .map(text)
    }

    /// Commits of the stream's scheduler since the last call of this, from any thread.
    pub fn take_wakes(&self) -> Vec<u64> {
        std::mem::take(&mut *self.wakes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Queued calls in the order in which they were made.
    pub fn made(&self) -> Vec<QueuedCall> {
        let made = self.calls.iter().filter_map(|call| match call {
            Call::Made(call) => Some(call.clone()),
            _ => None,
        });
        made.collect()
    }

    /// Sum of the increments of a counter with these label values.
    pub fn counter_total(&self, counter: crate::metrics::CounterId, labels: &[&str]) -> u64 {
        let calls = self.calls.iter().filter_map(|call| match call {
            Call::Metric(call) if call.kind == MetricKind::IncrementCounter => Some(call),
            _ => None,
        });
        calls
            .filter(|call| call.metric == counter.0 && call.labels == labels)
            .map(|call| call.value)
            .sum()
    }

    fn record(
        &mut self,
        kind: MetricKind,
        metric: usize,
        labels: &[&str],
        value: u64,
    ) -> Result<(), MetricsError> {
        check_labels(&self.defined, metric, labels)?;
        let call = metric_call(kind, metric, labels, value);
        self.calls.push(Call::Metric(call));
        Ok(())
    }

    fn set_metadata(&mut self, namespace: &str, key: &str, value: MetadataValue) {
        let call = Call::SetMetadata(namespace.to_owned(), key.to_owned(), value.clone());
        self.calls.push(call);
        self.put_metadata(MetadataSource::Dynamic, namespace, key, value);
    }

    fn metadata(
        &self,
        source: MetadataSource,
        namespace: &str,
        key: &str,
    ) -> Option<&MetadataValue> {
        let key = (source, namespace.to_owned(), key.to_owned());
        self.metadata.get(&key)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl HttpHost for FakeHost {
    fn headers(&self, map: HeaderMap) -> Headers<'_> {
        let pairs = self.maps.get(&map).into_iter().flatten();
        pairs
            .map(|(name, value)| (name.as_str(), value.as_slice()))
            .collect()
    }

    fn header(&self, map: HeaderMap, name: &str) -> Option<&[u8]> {
        self.headers(map).first(name)
    }

    fn set_header(&mut self, map: HeaderMap, name: &str, value: &[u8]) -> bool {
        let call = Call::SetHeader(map, name.to_owned(), value.to_vec());
        self.calls.push(call);
        let Some(pairs) = self.maps.get_mut(&map) else {
            return false;
        };
        let at = pairs.iter().position(|(known, _)| known == name);
        pairs.retain(|(known, _)| known != name);
        let at = at.unwrap_or(pairs.len()).min(pairs.len());
        pairs.insert(at, (name.to_owned(), value.to_vec()));
        true
    }

    fn add_header(&mut self, map: HeaderMap, name: &str, value: &[u8]) -> bool {
        let call = Call::AddHeader(map, name.to_owned(), value.to_vec());
        self.calls.push(call);
        self.maps.get_mut(&map).is_some_and(|pairs| {
            pairs.push((name.to_owned(), value.to_vec()));
            true
        })
    }

    fn remove_header(&mut self, map: HeaderMap, name: &str) -> bool {
        self.calls.push(Call::RemoveHeader(map, name.to_owned()));
        self.maps.get_mut(&map).is_some_and(|pairs| {
            pairs.retain(|(known, _)| known != name);
            true
        })
    }

    fn body(&self, body: Body) -> BodyChunks<'_> {
        let chunks = self.bodies.get(&body).into_iter().flatten();
        chunks.map(Vec::as_slice).collect()
    }

    fn body_size(&self, body: Body) -> usize {
        self.body(body).byte_len()
    }

    fn drain_body(&mut self, body: Body, bytes: usize) -> bool {
        self.calls.push(Call::DrainBody(body, bytes));
        let mut left = self.take_body(body);
        left.drain(..bytes.min(left.len()));
        if !left.is_empty() {
            self.bodies.insert(body, vec![left]);
        }
        true
    }

    fn append_body(&mut self, body: Body, bytes: &[u8]) -> bool {
        self.calls.push(Call::AppendBody(body, bytes.to_vec()));
        self.bodies.entry(body).or_default().push(bytes.to_vec());
        true
    }

    fn received_buffered_request_body(&self) -> bool {
        self.replayed_request
    }

    fn received_buffered_response_body(&self) -> bool {
        self.replayed_response
    }

    fn buffer_limit(&self) -> u64 {
        self.buffer_limit
    }

    fn set_buffer_limit(&mut self, bytes: u64) {
        self.calls.push(Call::SetBufferLimit(bytes));
        self.buffer_limit = bytes;
    }

    fn attribute_int(&self, attribute: Attribute) -> Option<u64> {
        self.ints.get(&attribute).copied()
    }

    fn attribute_str(&self, attribute: Attribute) -> Option<&[u8]> {
        self.texts.get(&attribute).map(Vec::as_slice)
    }

    fn metadata_string(&self, source: MetadataSource, namespace: &str, key: &str) -> Option<&[u8]> {
        match self.metadata(source, namespace, key)? {
            MetadataValue::String(value) => Some(value),
            MetadataValue::Number(_) => None,
        }
    }

    fn metadata_number(&self, source: MetadataSource, namespace: &str, key: &str) -> Option<f64> {
        match self.metadata(source, namespace, key)? {
            MetadataValue::Number(value) => Some(*value),
            MetadataValue::String(_) => None,
        }
    }

    fn set_metadata_string(&mut self, namespace: &str, key: &str, value: &[u8]) {
        self.set_metadata(namespace, key, MetadataValue::String(value.to_vec()));
    }

    fn set_metadata_number(&mut self, namespace: &str, key: &str, value: f64) {
        self.set_metadata(namespace, key, MetadataValue::Number(value));
    }

    fn set_metadata_strings(&mut self, namespace: &str, entries: &[(&str, &[u8])]) {
        for (key, value) in entries {
            self.set_metadata_string(namespace, key, value);
        }
    }

    fn set_span_tag(&mut self, key: &str, value: &[u8]) {
        let call = Call::SetSpanTag(key.to_owned(), value.to_vec());
        self.calls.push(call);
    }

    fn cluster_name(&self) -> Option<&[u8]> {
        self.cluster.as_deref().map(str::as_bytes)
    }

    fn worker_index(&self) -> u32 {
        self.worker
    }

    fn new_scheduler(&mut self) -> StreamScheduler {
        self.scheduler
            .get_or_insert_with(|| {
                StreamScheduler::new(Target {
                    raw: Box::into_raw(Box::new(Arc::clone(&self.wakes))).cast(),
                    commit,
                    delete,
                })
            })
            .clone()
    }

    recorded_metrics!();
}

unsafe extern "C" fn commit(raw: Ptr, event_id: u64) {
    // SAFETY: `raw` is the box made by `new_scheduler`, which the handle owns.
    let wakes = unsafe { &*raw.cast::<Arc<Mutex<Vec<u64>>>>() };
    wakes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(event_id);
}

unsafe extern "C" fn delete(raw: Ptr) {
    // SAFETY: as above; the handle gives it up.
    drop(unsafe { Box::from_raw(raw.cast::<Arc<Mutex<Vec<u64>>>>()) });
}
