//! A table of callbacks that record their calls, and a module whose filters panic on demand.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::CStr;

use crate::hooks::{bootstrap, http};
use crate::http::*;
use crate::module::{Module, load_for_tests};
use crate::raw::{Buffer, Callbacks, Pair, Ptr};
use crate::status::*;
use crate::*;

thread_local! {
    /// Callbacks made by the module, in order.
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Hooks that reached the probe filters.
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static METADATA: RefCell<HashMap<String, &'static [u8]>> = RefCell::default();
    /// Hooks that Envoy runs inside `send_response`.
    static INSIDE_REPLY: Cell<Option<fn()>> = const { Cell::new(None) };
    static INSIDE_SELECTION: Cell<Option<fn()>> = const { Cell::new(None) };
    /// Trailers are at hand, and no frame.
    pub(super) static IN_TRAILERS: Cell<bool> = const { Cell::new(false) };
    static INSIDE_EVENT: Cell<Option<fn()>> = const { Cell::new(None) };
    pub(super) static FILTER: Cell<Ptr> = const { Cell::new(std::ptr::null_mut()) };
    pub(super) static KEPT: RefCell<Option<StreamScheduler>> = const { RefCell::new(None) };
}

pub(super) const STREAM: Ptr = std::ptr::without_provenance_mut(0x10);

pub(super) fn calls() -> Vec<String> {
    CALLS.take()
}

pub(super) fn seen() -> Vec<String> {
    SEEN.take()
}

pub(super) fn inside_reply(hooks: fn()) {
    INSIDE_REPLY.set(Some(hooks));
}

pub(super) fn inside_event(hooks: fn()) {
    INSIDE_EVENT.set(Some(hooks));
}

pub(super) fn inside_selection(hooks: fn()) {
    INSIDE_SELECTION.set(Some(hooks));
}

fn note(call: impl Into<String>) {
    CALLS.with_borrow_mut(|calls| calls.push(call.into()));
}

fn text(buffer: Buffer) -> String {
    String::from_utf8_lossy(unsafe { buffer.bytes() }).into_owned()
}

unsafe extern "C" fn log(level: u32, message: Buffer) {
    if level >= LogLevel::Error as u32 {
        note(format!("log {}", text(message)));
    }
}
unsafe extern "C" fn send_response(
    _: Ptr,
    code: u32,
    _: *const Pair,
    headers: usize,
    body: Buffer,
    details: Buffer,
) {
    note(format!(
        "send_response {code} {headers} {} {}",
        body.len,
        text(details)
    ));
    if let Some(hooks) = INSIDE_REPLY.take() {
        hooks();
    }
}
unsafe extern "C" fn send_response_data(_: Ptr, data: Buffer, end: bool) {
    note(format!("send_response_data {} {end}", text(data)));
    if let Some(hooks) = INSIDE_EVENT.take() {
        hooks();
    }
}
unsafe extern "C" fn reset_stream(_: Ptr, reason: u32, details: Buffer) {
    note(format!("reset_stream {reason} {}", text(details)));
}
unsafe extern "C" fn set_header(_: Ptr, _: u32, key: Buffer, value: Buffer) -> bool {
    let value = if value.ptr.is_null() {
        "(removed)".to_owned()
    } else {
        text(value)
    };
    note(format!("set_header {} {value}", text(key)));
    true
}
unsafe extern "C" fn get_header(
    _: Ptr,
    _: u32,
    key: Buffer,
    out: *mut Buffer,
    _: usize,
    _: *mut usize,
) -> bool {
    let found = text(key) == "host";
    if found {
        unsafe { out.write(Buffer::new(b"example")) };
    }
    found
}
unsafe extern "C" fn headers_size(_: Ptr, _: u32) -> usize {
    40
}
unsafe extern "C" fn get_headers(_: Ptr, _: u32, out: *mut Pair) -> bool {
    (0..40).for_each(|i| unsafe { out.add(i).write(Pair::new("name", b"value")) });
    true
}
unsafe extern "C" fn body_size(_: Ptr, body: u32) -> usize {
    if body == Body::ReceivedResponse as u32 {
        5
    } else {
        0
    }
}
unsafe extern "C" fn drain_body(_: Ptr, _: u32, bytes: usize) -> bool {
    note(format!("drain_body {bytes}"));
    true
}
unsafe extern "C" fn append_body(_: Ptr, body: u32, bytes: Buffer) -> bool {
    let received = [Body::ReceivedRequest as u32, Body::ReceivedResponse as u32];
    if IN_TRAILERS.get() && received.contains(&body) {
        return false;
    }
    note(format!("append_body {}", bytes.len));
    true
}
unsafe extern "C" fn no_replay(_: Ptr) -> bool {
    false
}
unsafe extern "C" fn set_metadata(_: Ptr, ns: Buffer, key: Buffer, value: Buffer) {
    let value: &'static [u8] = Box::leak(unsafe { value.bytes() }.into());
    METADATA.with_borrow_mut(|m| m.insert(text(ns) + &text(key), value));
}
unsafe extern "C" fn get_metadata(
    _: Ptr,
    _: u32,
    ns: Buffer,
    key: Buffer,
    out: *mut Buffer,
) -> bool {
    let found = METADATA.with_borrow(|m| m.get(&(text(ns) + &text(key))).copied());
    found.is_some_and(|value| {
        unsafe { out.write(Buffer::new(value)) };
        true
    })
}
unsafe extern "C" fn no_context_value(_: Ptr, _: Buffer, _: Buffer, _: *mut Buffer) -> bool {
    false
}
unsafe extern "C" fn new_object(_: Ptr) -> Ptr {
    note("new");
    std::ptr::without_provenance_mut(0x20)
}
unsafe extern "C" fn commit(_: Ptr, event: u64) {
    note(format!("commit {event}"));
}
unsafe extern "C" fn delete(_: Ptr) {
    note("delete");
}
unsafe extern "C" fn disable(_: Ptr) {}
unsafe extern "C" fn clear_cluster(_: Ptr) {
    note("clear_route_cluster_cache");
    if let Some(hooks) = INSIDE_SELECTION.take() {
        hooks();
    }
}
unsafe extern "C" fn continue_decoding(_: Ptr) {
    note("continue_decoding");
}
unsafe extern "C" fn continue_encoding(_: Ptr) {
    note("continue_encoding");
}
unsafe extern "C" fn signal_init(_: Ptr) {
    note("signal_init_complete");
}
unsafe extern "C" fn gauge(extension: Ptr, _: Buffer, out: *mut u64) -> bool {
    unsafe { out.write(extension.addr() as u64) };
    true
}
unsafe extern "C" fn unexpected() {
    panic!("a callback without a stand-in was called");
}

fn stand_in(name: &CStr) -> Ptr {
    let name = name.to_str().unwrap();
    match name.strip_prefix("envoy_dynamic_module_callback_").unwrap() {
        "log" => log as *const () as Ptr,
        "http_send_response" => send_response as *const () as Ptr,
        "http_send_response_data" => send_response_data as *const () as Ptr,
        "http_filter_reset_stream" => reset_stream as *const () as Ptr,
        "http_set_header" => set_header as *const () as Ptr,
        "http_get_header" => get_header as *const () as Ptr,
        "http_get_headers_size" => headers_size as *const () as Ptr,
        "http_get_headers" => get_headers as *const () as Ptr,
        "http_get_body_size" => body_size as *const () as Ptr,
        "http_drain_body" => drain_body as *const () as Ptr,
        "http_received_buffered_request_body" | "http_received_buffered_response_body" => {
            no_replay as *const () as Ptr
        }
        "http_append_body" => append_body as *const () as Ptr,
        "http_set_dynamic_metadata_string" => set_metadata as *const () as Ptr,
        "http_get_metadata_string" => get_metadata as *const () as Ptr,
        "cluster_specifier_get_dynamic_metadata" => no_context_value as *const () as Ptr,
        "http_filter_scheduler_new"
        | "bootstrap_extension_config_scheduler_new"
        | "bootstrap_extension_timer_new" => new_object as *const () as Ptr,
        "http_filter_scheduler_commit"
        | "bootstrap_extension_config_scheduler_commit"
        | "bootstrap_extension_timer_enable" => commit as *const () as Ptr,
        "http_filter_scheduler_delete"
        | "bootstrap_extension_config_scheduler_delete"
        | "bootstrap_extension_timer_delete" => delete as *const () as Ptr,
        "bootstrap_extension_timer_disable" => disable as *const () as Ptr,
        "http_clear_route_cluster_cache" => clear_cluster as *const () as Ptr,
        "http_filter_continue_decoding" => continue_decoding as *const () as Ptr,
        "http_filter_continue_encoding" => continue_encoding as *const () as Ptr,
        "bootstrap_extension_config_signal_init_complete" => signal_init as *const () as Ptr,
        "bootstrap_extension_get_gauge_value" => gauge as *const () as Ptr,
        _ => unexpected as *const () as Ptr,
    }
}

/// A module whose bootstrap is in the bootstrap tests and whose filters are probes.
pub(super) const MODULE: Module = Module {
    program_init: || true,
    bootstrap: super::bootstrap::new_bootstrap,
    http_filter: |_, name, config| {
        let wish = std::str::from_utf8(config).ok()?.to_owned();
        match name {
            "down" => Some(HttpFilterConfig::Downstream(Box::new(Probe(wish)))),
            "up" => Some(HttpFilterConfig::Upstream(Box::new(Probe(wish)))),
            "panics" => panic!("while configured"),
            _ => None,
        }
    },
    cluster_specifier: |_, config| (config == b"panic").then(|| Box::new(Panics) as Box<_>),
};

struct Panics;

impl ClusterSpecifier for Panics {
    fn select(&self, _: &mut dyn SpecifierHost) -> bool {
        panic!("while selecting")
    }
}

pub(super) fn load() {
    load_for_tests(Callbacks::load(&stand_in).ok().unwrap(), MODULE);
}

pub(super) fn new_config(name: &str, wish: &str) -> Ptr {
    load();
    http::envoy_dynamic_module_on_http_filter_config_new(
        STREAM,
        Buffer::new(name.as_bytes()),
        Buffer::new(wish.as_bytes()),
    )
}

/// A filter that obeys `wish`: the name of a hook to panic in, or of a test's behaviour.
pub(super) fn new_filter(name: &str, wish: &str) -> Ptr {
    let config = new_config(name, wish);
    assert!(!config.is_null());
    let filter = http::envoy_dynamic_module_on_http_filter_new(config, STREAM);
    FILTER.set(filter);
    filter
}

pub(super) fn new_bootstrap(config: &str) -> Ptr {
    load();
    bootstrap::envoy_dynamic_module_on_bootstrap_extension_config_new(
        STREAM,
        Buffer::new(b"probe"),
        Buffer::new(config.as_bytes()),
    )
}

/// Config and filter in one: notes each hook and panics in the one it was told.
#[derive(Clone)]
struct Probe(String);

impl Probe {
    fn see(&self, hook: &str) {
        SEEN.with_borrow_mut(|seen| seen.push(hook.to_owned()));
        assert!(self.0 != hook, "secret in the message");
    }

    fn wants(&self, wish: &str) -> bool {
        self.0 == wish
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.see("drop");
        }
    }
}

impl DownstreamFilterConfig for Probe {
    fn new_filter(&self, _: &mut dyn HttpHost) -> Box<dyn DownstreamFilter> {
        self.see("new_filter");
        Box::new(self.clone())
    }
}

impl UpstreamFilterConfig for Probe {
    fn new_filter(&self, _: &mut dyn HttpHost) -> Box<dyn UpstreamFilter> {
        self.see("new_filter");
        Box::new(self.clone())
    }
}

impl DownstreamFilter for Probe {
    fn on_request_headers(&mut self, host: &mut dyn DownstreamHost, _: bool) -> HeadersStatus {
        if self.wants("queue, then panic") {
            host.send_response(200, &[], b"", "never");
            panic!("after a queued call");
        }
        self.see("request_headers");
        if self.wants("read headers") {
            let headers = host.headers(HeaderMap::Request);
            assert_eq!(
                (headers.len(), headers.first("name")),
                (40, Some(b"value".as_slice()))
            );
            assert_eq!(
                host.header(HeaderMap::Request, "host"),
                Some(b"example".as_slice())
            );
            assert_eq!(host.header(HeaderMap::Request, "other"), None);
        }
        if self.wants("select") {
            host.clear_route_cluster_cache();
        }
        if self.wants("reply") {
            host.clear_route_cluster_cache();
            host.send_response(401, &[("a", b"b")], b"no", "mine");
            host.continue_decoding();
            self.see("queued");
            return HeadersStatus::StopIteration;
        }
        if self.wants("schedule") {
            let scheduler = host.new_scheduler();
            KEPT.set(Some(scheduler.clone()));
            host.new_scheduler().commit(1);
            drop(scheduler);
        }
        HeadersStatus::Continue
    }
    fn on_request_body(&mut self, _: &mut dyn DownstreamHost, _: bool) -> BodyStatus {
        self.see("request_body");
        BodyStatus::Continue
    }
    fn on_request_trailers(&mut self, host: &mut dyn DownstreamHost) -> TrailersStatus {
        self.see("request_trailers");
        if self.wants("replace bodies") {
            host.replace_request_body(b"new");
        }
        TrailersStatus::Continue
    }
    fn on_response_headers(&mut self, _: &mut dyn DownstreamHost, _: bool) -> HeadersStatus {
        self.see("response_headers");
        HeadersStatus::Continue
    }
    fn on_response_body(&mut self, _: &mut dyn DownstreamHost, _: bool) -> BodyStatus {
        self.see("response_body");
        BodyStatus::Continue
    }
    fn on_response_trailers(&mut self, host: &mut dyn DownstreamHost) -> TrailersStatus {
        self.see("response_trailers");
        if self.wants("replace bodies") {
            host.replace_response_body(b"newer");
        }
        TrailersStatus::Continue
    }
    fn on_local_reply(
        &mut self,
        host: &mut dyn LocalReplyHost,
        _: LocalReply<'_>,
    ) -> LocalReplyStatus {
        self.see("local_reply");
        if self.wants("event") {
            assert_eq!(host.send_error_event(b"oops"), host.response_started());
        }
        LocalReplyStatus::Continue
    }
    fn on_stream_complete(&mut self, _: &mut dyn HttpHost) {
        self.see("stream_complete");
    }
    fn on_scheduled(&mut self, _: &mut dyn ScheduledHost, _: u64) {
        self.see("scheduled");
    }
    fn on_above_write_buffer_high_watermark(&mut self, _: &mut dyn HttpHost) {
        self.see("above_watermark");
    }
    fn on_below_write_buffer_low_watermark(&mut self, _: &mut dyn HttpHost) {
        self.see("below_watermark");
    }
}

impl UpstreamFilter for Probe {
    fn on_request_headers(&mut self, _: &mut dyn UpstreamHost, _: bool) -> HeadersStatus {
        self.see("request_headers");
        HeadersStatus::Continue
    }
    fn on_request_body(&mut self, _: &mut dyn UpstreamHost, _: bool) -> BodyStatus {
        self.see("request_body");
        BodyStatus::Continue
    }
    fn on_request_trailers(&mut self, _: &mut dyn UpstreamHost) -> TrailersStatus {
        self.see("request_trailers");
        TrailersStatus::Continue
    }
    fn on_response_headers(&mut self, _: &mut dyn HttpHost, _: bool) -> HeadersStatus {
        self.see("response_headers");
        if self.wants("hold, then response_trailers") {
            return HeadersStatus::StopIteration;
        }
        HeadersStatus::Continue
    }
    fn on_response_body(&mut self, _: &mut dyn HttpHost, _: bool) -> BodyStatus {
        self.see("response_body");
        BodyStatus::Continue
    }
    fn on_response_trailers(&mut self, _: &mut dyn HttpHost) -> TrailersStatus {
        self.see("response_trailers");
        assert!(!self.wants("hold, then response_trailers"));
        TrailersStatus::Continue
    }
    fn on_scheduled(&mut self, host: &mut dyn UpstreamHost, _: u64) {
        self.see("scheduled");
        host.send_response(503, &[], b"", "late");
        host.continue_encoding();
    }
}
