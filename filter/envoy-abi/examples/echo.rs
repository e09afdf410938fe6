//! The smallest module with all four extension points, to try this crate in a real Envoy.
//!
//! It tags requests, picks the cluster named by a header or the first one with hosts, counts
//! requests, and does on demand what is hard to get right: see `x-echo-*` below.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use filter_envoy_abi::{
    Attribute, Body, BodyStatus, Bootstrap, BootstrapHost, ClusterSpecifier, CounterId,
    DownstreamFilter, DownstreamFilterConfig, DownstreamHost, HeaderMap, HeadersStatus,
    HttpConfigHost, HttpFilterConfig, HttpHost, LocalReply, LocalReplyHost, LocalReplyStatus,
    LogLevel, MetadataSource, ScheduledHost, ShutdownDone, SpecifierHost, Timer, TimerId,
    UpstreamFilter, UpstreamFilterConfig, UpstreamHost, known_release, log,
};

filter_envoy_abi::declare_module! {
    program_init: program_init,
    bootstrap: bootstrap,
    http_filter: http_filter,
    cluster_specifier: cluster_specifier,
}

/// Requests seen by all workers, moved to Envoy's counter by the bootstrap timer.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

fn info(message: &str) {
    log(LogLevel::Info, message);
}

fn text(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(
        || "-".to_owned(),
        |b| String::from_utf8_lossy(b).into_owned(),
    )
}

fn program_init() -> bool {
    info("echo: loaded");
    true
}

// ---- bootstrap ----

struct EchoBootstrap {
    timer: Timer,
    requests: CounterId,
    done: Option<ShutdownDone>,
}

fn bootstrap(
    host: &mut dyn BootstrapHost,
    name: &str,
    config: &[u8],
) -> Option<Box<dyn Bootstrap>> {
    let requests = host.define_counter("echo_requests_total", &["kind"]).ok()?;
    let timer = host.new_timer();
    let validation = host.validation_mode();
    info(&format!(
        "echo: bootstrap {name} config={} validation={validation} concurrency={}",
        String::from_utf8_lossy(config),
        host.concurrency()
    ));
    if !validation {
        let scheduler = host.new_scheduler();
        // A commit from another thread lets Envoy open its listeners.
        std::thread::spawn(move || scheduler.commit(7));
        timer.enable(100);
    }
    Some(Box::new(EchoBootstrap {
        timer,
        requests,
        done: None,
    }))
}

impl Bootstrap for EchoBootstrap {
    fn on_extension_created(&mut self, host: &mut dyn BootstrapHost) {
        let version = host.gauge_value("server.version");
        info(&format!(
            "echo: server.version={version:?} release={:?}",
            version.and_then(known_release)
        ));
    }

    fn on_server_initialized(&mut self, host: &mut dyn BootstrapHost) {
        let enabled = host.enable_cluster_lifecycle();
        info(&format!(
            "echo: server initialized, cluster life-cycle {enabled}"
        ));
    }

    fn on_scheduled(&mut self, host: &mut dyn BootstrapHost, event_id: u64) {
        info(&format!("echo: scheduled {event_id}"));
        host.signal_init_complete();
        host.signal_init_complete();
    }

    fn on_timer_fired(&mut self, host: &mut dyn BootstrapHost, timer: TimerId) {
        assert_eq!(timer, self.timer.id());
        self.timer.enable(100);
        let requests = REQUESTS.swap(0, Ordering::Relaxed);
        if requests > 0 {
            let counted = host.increment_counter(self.requests, &["all"], requests);
            info(&format!("echo: counted {requests}: {counted:?}"));
        }
        self.done = None;
    }

    fn on_shutdown(&mut self, _host: &mut dyn BootstrapHost, done: ShutdownDone) {
        info("echo: shutdown, held until the timer");
        self.done = Some(done);
    }
}

impl Drop for EchoBootstrap {
    fn drop(&mut self) {
        info("echo: bootstrap dropped");
    }
}

// ---- HTTP filters ----

fn http_filter(
    host: &mut dyn HttpConfigHost,
    name: &str,
    _config: &[u8],
) -> Option<HttpFilterConfig> {
    let attempts = host
        .define_counter("echo_hooks_total", &["side", "hook"])
        .ok()?;
    match name {
        "echo" => Some(HttpFilterConfig::Downstream(Box::new(Down { attempts }))),
        "echo-upstream" => Some(HttpFilterConfig::Upstream(Box::new(Up { attempts }))),
        _ => None,
    }
}

struct Down {
    attempts: CounterId,
}

impl DownstreamFilterConfig for Down {
    fn new_filter(&self, host: &mut dyn HttpHost) -> Box<dyn DownstreamFilter> {
        Box::new(DownFilter {
            attempts: self.attempts,
            worker: host.worker_index(),
            bytes: 0,
            trailers: false,
        })
    }
}

struct DownFilter {
    attempts: CounterId,
    worker: u32,
    bytes: usize,
    trailers: bool,
}

impl DownstreamFilter for DownFilter {
    fn on_request_headers(
        &mut self,
        host: &mut dyn DownstreamHost,
        end_of_stream: bool,
    ) -> HeadersStatus {
        REQUESTS.fetch_add(1, Ordering::Relaxed);
        let counted = host.increment_counter(self.attempts, &["down", "request_headers"], 1);
        info(&format!(
            "echo: request on worker {} with {} headers: {counted:?}",
            self.worker,
            host.headers(HeaderMap::Request).len()
        ));
        host.set_buffer_limit(8 << 20);
        if host.header(HeaderMap::Request, "x-echo-reply").is_some() {
            host.send_response(
                401,
                &[("content-type", b"application/json"), ("x-echo", b"reply")],
                b"{\"error\":\"no\"}",
                "echo_reply",
            );
            return HeadersStatus::StopIteration;
        }
        if host.header(HeaderMap::Request, "x-echo-wait").is_some() {
            let scheduler = host.new_scheduler();
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(50));
                scheduler.commit(1);
                std::thread::sleep(std::time::Duration::from_millis(500));
                // The stream is gone by now.
                scheduler.commit(2);
            });
            return HeadersStatus::StopAllIterationAndBuffer;
        }
        self.trailers = host.header(HeaderMap::Request, "x-echo-trailers").is_some();
        host.set_metadata_string("echo", "side", b"down");
        host.clear_route_cluster_cache();
        if end_of_stream {
            HeadersStatus::Continue
        } else {
            HeadersStatus::StopIteration
        }
    }

    fn on_request_body(
        &mut self,
        host: &mut dyn DownstreamHost,
        end_of_stream: bool,
    ) -> BodyStatus {
        if !end_of_stream {
            return BodyStatus::StopIterationAndBuffer;
        }
        let mut body = Vec::new();
        host.copy_request_body(&mut body);
        body.make_ascii_uppercase();
        host.replace_request_body(&body);
        let length = body.len().to_string();
        host.set_header(HeaderMap::Request, "content-length", length.as_bytes());
        BodyStatus::Continue
    }

    fn on_response_headers(
        &mut self,
        host: &mut dyn DownstreamHost,
        end_of_stream: bool,
    ) -> HeadersStatus {
        host.add_header(HeaderMap::Response, "x-echo", b"down");
        if self.trailers && !end_of_stream {
            host.remove_header(HeaderMap::Response, "content-length");
        }
        HeadersStatus::Continue
    }

    fn on_response_body(
        &mut self,
        host: &mut dyn DownstreamHost,
        end_of_stream: bool,
    ) -> BodyStatus {
        self.bytes += host.body(Body::ReceivedResponse).byte_len();
        if self.trailers && end_of_stream {
            host.append_body(Body::ReceivedResponse, b"last\n");
            host.new_scheduler().commit(3);
            return BodyStatus::StopIterationAndBuffer;
        }
        BodyStatus::Continue
    }

    fn on_local_reply(
        &mut self,
        host: &mut dyn LocalReplyHost,
        reply: LocalReply<'_>,
    ) -> LocalReplyStatus {
        let sent = host.send_error_event(b"\n\ndata: {\"error\":\"upstream died\"}\n\n");
        info(&format!(
            "echo: local reply {} {} reset={} event={sent}",
            reply.status,
            text(Some(reply.details)),
            reply.reset_imminent
        ));
        LocalReplyStatus::Continue
    }

    fn on_stream_complete(&mut self, host: &mut dyn HttpHost) {
        let bytes = self.bytes.to_string();
        host.set_metadata_strings("echo", &[("bytes", bytes.as_bytes()), ("final", b"yes")]);
        host.set_metadata_number("echo", "count", 2.5);
        info(&format!(
            "echo: complete code={:?} details={} flags={:?} attempts={:?} cluster={} side={} count={:?}",
            host.attribute_int(Attribute::ResponseCode),
            text(host.attribute_str(Attribute::ResponseCodeDetails)),
            host.attribute_int(Attribute::ResponseFlags),
            host.attribute_int(Attribute::UpstreamRequestAttemptCount),
            text(host.cluster_name()),
            text(host.metadata_string(MetadataSource::Dynamic, "echo", "side")),
            host.metadata_number(MetadataSource::Dynamic, "echo", "count"),
        ));
    }

    fn on_scheduled(&mut self, host: &mut dyn ScheduledHost, event_id: u64) {
        info(&format!("echo: stream scheduled {event_id}"));
        match event_id {
            3 => host.send_response_trailers(&[("x-echo-trailer", b"yes")]),
            _ => host.continue_decoding(),
        }
    }
}

struct Up {
    attempts: CounterId,
}

impl UpstreamFilterConfig for Up {
    fn new_filter(&self, _host: &mut dyn HttpHost) -> Box<dyn UpstreamFilter> {
        Box::new(UpFilter {
            attempts: self.attempts,
            hold: false,
        })
    }
}

struct UpFilter {
    attempts: CounterId,
    hold: bool,
}

impl UpstreamFilter for UpFilter {
    fn on_request_headers(
        &mut self,
        host: &mut dyn UpstreamHost,
        _end_of_stream: bool,
    ) -> HeadersStatus {
        let counted = host.increment_counter(self.attempts, &["up", "request_headers"], 1);
        info(&format!(
            "echo: attempt {:?} to {} side={}: {counted:?}",
            host.attribute_int(Attribute::UpstreamRequestAttemptCount),
            text(host.attribute_str(Attribute::UpstreamAddress)),
            text(host.metadata_string(MetadataSource::Dynamic, "echo", "side")),
        ));
        self.hold = host.header(HeaderMap::Request, "x-echo-hold").is_some();
        let stop = text(host.header(HeaderMap::Request, "x-echo-stop"));
        if stop == text(host.cluster_name()) {
            host.send_response(
                429,
                &[("retry-after", b"7")],
                b"{\"error\":\"stop\"}",
                "echo_stop",
            );
            return HeadersStatus::StopIteration;
        }
        HeadersStatus::Continue
    }

    fn on_response_headers(
        &mut self,
        host: &mut dyn HttpHost,
        end_of_stream: bool,
    ) -> HeadersStatus {
        host.add_header(HeaderMap::Response, "x-echo", b"up");
        if self.hold && !end_of_stream {
            return HeadersStatus::StopIteration;
        }
        HeadersStatus::Continue
    }
}

// ---- cluster specifier ----

struct Specifier {
    clusters: Vec<String>,
}

fn cluster_specifier(_name: &str, config: &[u8]) -> Option<Box<dyn ClusterSpecifier>> {
    let config = std::str::from_utf8(config).ok()?;
    Some(Box::new(Specifier {
        clusters: config.split(',').map(str::to_owned).collect(),
    }))
}

impl ClusterSpecifier for Specifier {
    fn select(&self, host: &mut dyn SpecifierHost) -> bool {
        let attempt = host
            .attribute_int(Attribute::UpstreamRequestAttemptCount)
            .unwrap_or(0);
        let skip = usize::try_from(attempt.saturating_sub(1)).unwrap_or(0);
        let named = host.header("x-echo-cluster").map(<[u8]>::to_vec);
        let plan = named.as_deref().and_then(|n| std::str::from_utf8(n).ok());
        let plan: Vec<&str> = plan.map_or_else(
            || self.clusters.iter().map(String::as_str).collect(),
            |names| names.split(',').collect(),
        );
        let live = |name: &&&str| host.cluster_hosts(name, 0).is_some_and(|n| n.total > 0);
        let Some(cluster) = plan.iter().skip(skip).find(live).copied() else {
            return false;
        };
        info(&format!(
            "echo: select attempt={attempt} -> {cluster} {:?} side={}",
            host.cluster_hosts(cluster, 0),
            text(host.metadata_string("echo", "side"))
        ));
        host.set_cluster(cluster);
        host.set_timeout_ms(10_000);
        if host.header("x-echo-override").is_some() {
            let set = host.set_route_action_override("once");
            info(&format!("echo: override {set}"));
        }
        true
    }
}
