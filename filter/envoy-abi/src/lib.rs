//! Safe Rust over Envoy's dynamic-module ABI ("v0.2.0", Envoy 1.40), and one of the two crates
//! with `unsafe` in them.
//!
//! A cdylib implements the traits below and names its four factories in [`declare_module!`];
//! all 51 hooks are exported from here. It binds only what Turnpike uses: no callouts, no
//! streams of our own, no filter state, no per-route configuration. It decides nothing. The
//! traits keep close to the official SDK's shape. Read next: [`DownstreamFilter`],
//! [`UpstreamFilter`], [`ClusterSpecifier`], [`Bootstrap`].
//!
//! # What may be called where
//!
//! | hook | host | besides getters, setters, metadata, metrics |
//! |---|---|---|
//! | downstream `on_request_*`, `on_response_*` | [`DownstreamHost`] | reply, reset, clear route cache, continue |
//! | downstream `on_scheduled` | [`ScheduledHost`] | those, and response trailers |
//! | downstream `on_local_reply` | [`LocalReplyHost`] | an error event, never an end of stream |
//! | downstream `on_stream_complete`, watermarks | [`HttpHost`] | nothing; span tags are lost |
//! | upstream `on_request_*`, `on_scheduled` | [`UpstreamHost`] | reply (before the response), continue |
//! | upstream `on_response_*` | [`HttpHost`] | nothing: set `:status` to make the router retry |
//! | `new_filter` | [`HttpHost`] | worker index, scheduler; there are no headers yet |
//! | filter factories | [`HttpConfigHost`] | define metrics |
//! | specifier `select` | [`SpecifierHost`] | all of it; no call re-enters |
//! | bootstrap factory | [`BootstrapHost`] | define metrics, timers, scheduler, signal init |
//! | bootstrap hooks | [`BootstrapHost`] | the same but for definitions; life-cycle in `on_server_initialized` |
//! | drop of any of them | none | |
//!
//! What is missing there would crash Envoy or be ignored by it: a reset from an upstream filter,
//! ending the stream while a local reply is on its way, trailers without the scheduler.
//!
//! # Re-entrance
//!
//! Replies, resets, cleared route caches and continuations run other hooks, of this filter too,
//! before they return; an upstream reply on a retry runs the downstream filter up to
//! `on_stream_complete`. So they are queued, and made in order when the hook has returned and
//! its `&mut self` is free, but before Envoy sees the hook's answer. A hook that still finds its
//! filter busy passes on (`Continue`). A filter that Envoy destroys inside such a call is freed
//! when the outermost hook ends, and the rest of the queue is dropped. A filter's own error
//! event is not shown to its `on_response_body`.
//!
//! # Panics
//!
//! Every hook catches them and logs hook and source location, never the message. The filter then
//! passes everything on, and the client is answered once:
//!
//! | where | client gets |
//! |---|---|
//! | downstream, up to response headers | 500 with a JSON error |
//! | downstream, later | a cut (reset with `LocalReset`) |
//! | upstream request hooks | 500 with a JSON error, not retried |
//! | upstream, response headers in hand or held | `:status: 500` with a JSON error, retried if the route does |
//! | upstream, later | no more provider bytes, and a cut by the module's downstream filter |
//! | specifier, inside a downstream hook's call | 500 with a JSON error |
//! | specifier, before a retry | Envoy's previous choice of cluster |
//! | bootstrap | nothing; the extension lives on |
//!
//! A broken downstream filter gets no `on_stream_complete`: what must be settled in any case
//! belongs into its `Drop` too. Needs `panic = "unwind"`.
//!
//! # Loading
//!
//! Every callback is found by name when Envoy loads the module. One that is missing is named on
//! stderr and the load refused, so an older Envoy rejects its configuration with a reason.
//! In validation mode Envoy runs all factories: start no thread, dial nothing, write nothing.
#![expect(unsafe_code, reason = "the one crate that talks to Envoy's C ABI")]

mod attribute;
mod bootstrap;
mod bootstrap_instance;
mod cell;
mod cut;
mod down;
mod envoy_config;
mod envoy_specifier;
mod envoy_stream;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
#[cfg(feature = "fault-injection")]
mod fault;
mod guard;
mod hooks;
mod http;
mod http_instance;
mod log;
mod metrics;
mod module;
mod op;
mod raw;
mod scheduler;
mod selection;
mod shutdown;
mod specifier;
mod status;
mod timer;
mod up;
mod view;

pub use attribute::Attribute;
pub use bootstrap::{Bootstrap, BootstrapHost, known_release};
pub use hooks::names::{HOOKS, Hook, Reach, process_faults, request_faults};
pub use http::{
    DownstreamFilter, DownstreamFilterConfig, DownstreamHost, HttpConfigHost, HttpFilterConfig,
    HttpHost, LocalReply, LocalReplyHost, ScheduledHost, UpstreamFilter, UpstreamFilterConfig,
    UpstreamHost,
};
pub use log::{log, log_enabled};
pub use metrics::{CounterId, GaugeId, HistogramId, MetricsError};
pub use module::{
    ABI_VERSION, BootstrapFactory, ClusterSpecifierFactory, HttpFilterFactory, Module, load,
};
pub use op::QueuedCall;
pub use scheduler::{BootstrapScheduler, StreamScheduler};
pub use shutdown::ShutdownDone;
pub use specifier::{ClusterSpecifier, HostCount, SpecifierHost};
pub use status::{
    Body, BodyStatus, HeaderMap, HeadersStatus, LocalReplyStatus, LogLevel, MetadataSource,
    TrailersStatus,
};
pub use timer::{Timer, TimerId};
pub use view::{BodyChunks, Headers};

/// A place where the fault-injection build may panic; nothing in other builds.
macro_rules! fault_point {
    ($hook:expr) => {
        #[cfg(feature = "fault-injection")]
        $crate::fault::trip($hook, None);
    };
}
pub(crate) use fault_point;
