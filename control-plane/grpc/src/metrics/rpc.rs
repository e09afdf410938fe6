//! Calls by method: how many, how they ended, and how long they took.
//!
//! A call's time ends with the head of its answer: of a stream that is its opening, and how it
//! ended later is not seen.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::Code;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tower::{Layer, Service};

/// Upper bounds in seconds. Most calls are one transaction; `Wait` may take a minute.
const BOUNDS_S: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];
/// Methods that nobody serves, health and reflection.
const OTHER: &str = "other";
const ADS: &str = "envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";

/// Calls as they are counted. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Rpcs {
    methods: Arc<BTreeMap<String, Method>>,
    other: Method,
    calls: Family<OfCall, Counter>,
    seconds: Family<OfMethod, Histogram, fn() -> Histogram>,
}

/// A method's label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Method(Arc<str>);

impl EncodeLabelValue for Method {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        (&*self.0).encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfMethod {
    method: Method,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCall {
    method: Method,
    code: &'static str,
}

impl Rpcs {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let rpcs = Self {
            methods: Arc::new(methods()),
            other: Method(OTHER.into()),
            calls: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BOUNDS_S)),
        };
        let help = "Calls that were answered, by the code they ended with";
        registry.register("rpcs", help, rpcs.calls.clone());
        let help = "Time to the head of the answer; of streams, to their opening";
        registry.register_with_unit("rpc_duration", help, Unit::Seconds, rpcs.seconds.clone());
        rpcs
    }

    /// The label of a path; none of it is taken from the path itself.
    fn method(&self, path: &str) -> Method {
        self.methods.get(path).unwrap_or(&self.other).clone()
    }

    fn answered(&self, method: Method, code: &'static str, since: Instant) {
        let seconds = since.elapsed().as_secs_f64();
        let of_method = OfMethod {
            method: method.clone(),
        };
        self.seconds.get_or_create(&of_method).observe(seconds);
        self.calls.get_or_create(&OfCall { method, code }).inc();
    }
}

/// Every method of ours by its path, and ADS.
fn methods() -> BTreeMap<String, Method> {
    // Our own descriptors, which a test reads too.
    let descriptors = FileDescriptorSet::decode(proto::FILE_DESCRIPTOR_SET).unwrap_or_default();
    let ours = descriptors.file.iter().flat_map(|file| {
        file.service.iter().flat_map(move |service| {
            let methods = service.method.iter();
            methods.map(move |method| {
                format!("{}.{}/{}", file.package(), service.name(), method.name())
            })
        })
    });
    ours.chain([ADS.to_owned()])
        .map(|method| (format!("/{method}"), Method(method.as_str().into())))
        .collect()
}

/// Wraps a service, so that its calls are timed.
#[derive(Clone, Debug)]
pub struct RpcLayer(Rpcs);

impl RpcLayer {
    pub(super) fn new(rpcs: Rpcs) -> Self {
        Self(rpcs)
    }
}

impl<S> Layer<S> for RpcLayer {
    type Service = Timed<S>;

    fn layer(&self, inner: S) -> Timed<S> {
        Timed {
            inner,
            rpcs: self.0.clone(),
        }
    }
}

/// A service whose calls are timed.
#[derive(Clone, Debug)]
pub struct Timed<S> {
    inner: S,
    rpcs: Rpcs,
}

impl<S, B, A> Service<Request<B>> for Timed<S>
where
    S: Service<Request<B>, Response = Response<A>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let since = Instant::now();
        let method = self.rpcs.method(request.uri().path());
        let rpcs = self.rpcs.clone();
        let call = self.inner.call(request);
        Box::pin(async move {
            let answer = call.await;
            if let Ok(answer) = &answer {
                rpcs.answered(method, code(answer.headers()), since);
            }
            answer
        })
    }
}

/// A call that failed before its answer began has its code in the head; the others are fine so far.
fn code(headers: &HeaderMap) -> &'static str {
    let code = headers.get("grpc-status").map(|status| status.as_bytes());
    match code.map_or(Code::Ok, Code::from_bytes) {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_none_of_ours_gives_no_label_of_its_own() {
        let rpcs = Rpcs::register(&mut Registry::default());
        let label = |path: &str| rpcs.method(path).0.to_string();
        assert_eq!(
            label("/turnpike.admin.v1.Limits/ListBuckets"),
            "turnpike.admin.v1.Limits/ListBuckets"
        );
        assert_eq!(label(&format!("/{ADS}")), ADS);
        for path in ["/turnpike.admin.v1.Limits/tp_secret", "/x", ""] {
            assert_eq!(label(path), OTHER);
        }
        assert!(rpcs.methods.len() > 40, "{}", rpcs.methods.len());
    }

    #[test]
    fn every_code_has_a_word() {
        let mut headers = HeaderMap::new();
        assert_eq!(code(&headers), "ok");
        headers.insert("grpc-status", "5".parse().unwrap());
        assert_eq!(code(&headers), "not_found");
    }
}
