use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;
use crate::*;

thread_local! {
    static WAKER: RefCell<Option<StreamScheduler>> = const { RefCell::new(None) };
}

/// Upper-cases requests, lets SSE through, and behaves as its `x-do` header says.
#[derive(Clone, Default)]
struct Down {
    mode: String,
    counter: Option<CounterId>,
    settled: bool,
}

impl DownstreamFilterConfig for Down {
    fn new_filter(&self, _: &mut dyn HttpHost) -> Box<dyn DownstreamFilter> {
        Box::new(self.clone())
    }
}

impl DownstreamFilter for Down {
    fn on_request_headers(&mut self, host: &mut dyn DownstreamHost, _: bool) -> HeadersStatus {
        let mode = host.header(HeaderMap::Request, "x-do").unwrap_or_default();
        self.mode = String::from_utf8_lossy(mode).into_owned();
        host.remove_header(HeaderMap::Request, "x-do");
        if self.mode == "wait in headers" {
            return HeadersStatus::StopAllIterationAndBuffer;
        }
        if self.mode == "reply" {
            host.send_response(401, &[], b"no", "mine");
        }
        HeadersStatus::StopIteration
    }

    fn on_request_body(&mut self, host: &mut dyn DownstreamHost, end: bool) -> BodyStatus {
        if !end {
            return BodyStatus::StopIterationAndBuffer;
        }
        let mut body = Vec::new();
        host.copy_request_body(&mut body);
        body.make_ascii_uppercase();
        host.replace_request_body(&body);
        host.clear_route_cluster_cache();
        if self.mode == "wait in body" {
            WAKER.set(Some(host.new_scheduler()));
            return BodyStatus::StopIterationAndBuffer;
        }
        BodyStatus::Continue
    }

    fn on_response_body(&mut self, _: &mut dyn DownstreamHost, end: bool) -> BodyStatus {
        assert!(self.mode != "panic in response");
        if self.mode == "trailers" && end {
            return BodyStatus::StopIterationAndBuffer;
        }
        BodyStatus::Continue
    }

    fn on_local_reply(
        &mut self,
        host: &mut dyn LocalReplyHost,
        _: LocalReply<'_>,
    ) -> LocalReplyStatus {
        host.send_error_event(b"data: error\n\n");
        LocalReplyStatus::Continue
    }

    fn on_scheduled(&mut self, host: &mut dyn ScheduledHost, event_id: u64) {
        match event_id {
            1 => host.continue_decoding(),
            _ => host.send_response_trailers(&[("grpc-status", b"0")]),
        }
    }

    fn on_stream_complete(&mut self, host: &mut dyn HttpHost) {
        self.settled = true;
        host.set_metadata_strings("t", &[("a", b"1"), ("b", b"2")]);
        if let Some(counter) = self.counter {
            host.increment_counter(counter, &["x"], 2).unwrap();
            assert_eq!(
                host.increment_counter(counter, &[], 2),
                Err(MetricsError::InvalidLabels)
            );
        }
    }
}

/// Wraps bodies both ways; holds the first frame of a response.
struct Up {
    stop: bool,
}

impl UpstreamFilterConfig for Up {
    fn new_filter(&self, _: &mut dyn HttpHost) -> Box<dyn UpstreamFilter> {
        Box::new(Self { ..*self })
    }
}

impl UpstreamFilter for Up {
    fn on_request_headers(&mut self, host: &mut dyn UpstreamHost, _: bool) -> HeadersStatus {
        if self.stop {
            host.send_response(429, &[], b"stop", "stopped");
        }
        HeadersStatus::StopIteration
    }

    fn on_request_body(&mut self, host: &mut dyn UpstreamHost, _: bool) -> BodyStatus {
        let mut body = b"<".to_vec();
        host.copy_request_body(&mut body);
        body.push(b'>');
        host.replace_request_body(&body);
        BodyStatus::Continue
    }

    fn on_response_headers(&mut self, _: &mut dyn HttpHost, _: bool) -> HeadersStatus {
        HeadersStatus::StopIteration
    }

    fn on_response_body(&mut self, host: &mut dyn HttpHost, _: bool) -> BodyStatus {
        if host
            .body(Body::ReceivedResponse)
            .iter()
            .any(|chunk| chunk == b"overloaded")
        {
            host.set_header(HeaderMap::Response, ":status", b"503");
        }
        BodyStatus::Continue
    }
}

const OK: &[(&str, &str)] = &[(":status", "200")];

fn exchange(mode: &str) -> Exchange {
    let mut exchange = Exchange::new(&Down::default(), FakeHost::default());
    exchange.request(&[(":path", "/"), ("x-do", mode)], &[b"he", b"llo"]);
    exchange
}

#[test]
fn a_normal_stream_ends_in_envoys_order() {
    let mut stream = exchange("");
    assert_eq!(stream.routed_body(), b"HELLO");
    assert_eq!(stream.attempt(&Up { stop: false }), Flow::Passed);
    assert_eq!(stream.sent_upstream(), b"<HELLO>");
    assert_eq!(stream.response_headers(OK, false), Flow::Held);
    assert_eq!(stream.client.status, None, "held until the first frame");
    assert_eq!(stream.response_frame(b"a", false), Flow::Passed);
    stream.response_frame(b"b", true);
    stream.finish();
    assert_eq!(
        stream.client,
        Client {
            status: Some(200),
            body: b"ab".to_vec(),
            ended: true,
            ..Client::default()
        }
    );
    let end = [
        "downstream.response_body",
        "downstream.stream_complete",
        "upstream.destroy",
        "downstream.destroy",
    ];
    assert_eq!(stream.hooks[stream.hooks.len() - 4..], end);
    assert_eq!(stream.host.made(), [QueuedCall::ClearRouteClusterCache]);
    assert_eq!(stream.host.header_text(HeaderMap::Request, "x-do"), None);
    assert_eq!(stream.host.metadata_text("t", "b").as_deref(), Some("2"));
}

#[test]
fn a_first_event_that_is_an_error_goes_to_the_next_attempt() {
    let mut stream = exchange("");
    stream.retries = 1;
    stream.attempt(&Up { stop: false });
    stream.response_headers(OK, false);
    assert_eq!(stream.response_frame(b"overloaded", false), Flow::Retry);
    assert_eq!(stream.hooks.last(), Some(&"upstream.destroy"));
    stream.attempt(&Up { stop: false });
    assert_eq!(stream.sent_upstream(), b"<HELLO>", "the body starts anew");
    stream.response_headers(OK, false);
    stream.response_frame(b"fine", true);
    stream.finish();
    assert_eq!(
        (stream.client.status, stream.client.body.as_slice()),
        (Some(200), b"fine".as_slice())
    );
    let attempts = stream
        .host
        .attribute_int(Attribute::UpstreamRequestAttemptCount);
    assert_eq!(attempts, Some(2));
}

#[test]
fn a_client_that_aborts_destroys_the_downstream_filter_first() {
    let mut stream = exchange("");
    stream.attempt(&Up { stop: false });
    stream.response_headers(OK, false);
    stream.client_abort();
    let end = [
        "downstream.stream_complete",
        "downstream.destroy",
        "upstream.destroy",
    ];
    assert_eq!(stream.hooks[stream.hooks.len() - 3..], end);
    assert_eq!(
        stream.host.attribute_int(Attribute::ResponseFlags),
        Some(0x4000)
    );
}

#[test]
fn a_provider_that_dies_midway_gives_an_error_event_and_a_cut() {
    let mut stream = exchange("");
    stream.attempt(&Up { stop: false });
    stream.response_headers(OK, false);
    stream.response_frame(b"a", false);
    stream.upstream_reset();
    assert_eq!(stream.client.body, b"adata: error\n\n");
    assert!(stream.client.cut && !stream.client.ended);
    let end = [
        "downstream.local_reply",
        "downstream.stream_complete",
        "upstream.destroy",
        "downstream.destroy",
    ];
    assert_eq!(stream.hooks[stream.hooks.len() - 4..], end);
}

#[test]
fn a_provider_that_dies_before_headers_gives_envoys_reply() {
    let mut stream = exchange("");
    stream.attempt(&Up { stop: false });
    stream.upstream_reset();
    assert_eq!(stream.client.status, Some(503));
    assert!(stream.hooks.contains(&"downstream.response_headers"));
    assert!(stream.client.ended && !stream.client.cut);
}

#[test]
fn a_reply_of_the_downstream_filter_skips_its_response_hooks() {
    let stream = exchange("reply");
    assert_eq!(
        (stream.client.status, stream.client.body.as_slice()),
        (Some(401), b"no".as_slice())
    );
    assert_eq!(
        stream.hooks,
        ["downstream.request_headers", "downstream.local_reply"]
    );
}

#[test]
fn a_reply_of_an_upstream_filter_passes_the_downstream_filter() {
    let mut stream = exchange("");
    assert_eq!(stream.attempt(&Up { stop: true }), Flow::Over);
    stream.finish();
    assert_eq!(
        (stream.client.status, stream.client.body.as_slice()),
        (Some(429), b"stop".as_slice())
    );
    let end = [
        "upstream.request_headers",
        "downstream.local_reply",
        "downstream.response_headers",
        "downstream.response_body",
        "downstream.stream_complete",
        "upstream.destroy",
        "downstream.destroy",
    ];
    assert_eq!(stream.hooks[stream.hooks.len() - 7..], end);
}

#[test]
fn a_wait_in_the_body_hook_is_resumed_from_another_thread() {
    let mut stream = exchange("wait in body");
    assert_eq!(stream.routed_body(), b"");
    let waker = WAKER.take().unwrap();
    std::thread::spawn(move || waker.commit(1)).join().unwrap();
    for event in stream.host.take_wakes() {
        stream.scheduled(event);
    }
    assert_eq!(stream.routed_body(), b"HELLO");
}

#[test]
fn a_wait_in_the_headers_hook_replays_the_body_once() {
    let mut stream = exchange("wait in headers");
    assert_eq!(stream.hooks, ["downstream.request_headers"]);
    stream.scheduled(1);
    assert_eq!(stream.routed_body(), b"HELLO");
}

#[test]
fn trailers_follow_the_buffered_body() {
    let mut stream = exchange("trailers");
    stream.attempt(&Up { stop: false });
    stream.response_headers(OK, false);
    stream.response_frame(b"a", false);
    assert_eq!(stream.response_frame(b"b", true), Flow::Held);
    stream.scheduled(2);
    assert_eq!(stream.client.body, b"ab");
    assert_eq!(
        stream.client.trailers,
        [("grpc-status".to_owned(), b"0".to_vec())]
    );
    assert!(stream.client.ended);
}

#[test]
fn a_panic_in_the_response_cuts_the_client_off() {
    let mut stream = exchange("panic in response");
    stream.attempt(&Up { stop: false });
    stream.response_headers(OK, false);
    assert_eq!(stream.response_frame(b"a", false), Flow::Over);
    assert!(stream.client.cut);
    assert_eq!(stream.client.body, b"");
}

#[test]
fn metrics_are_checked_against_their_definitions() {
    let mut config = FakeConfig::default();
    let counter = config.define_counter("requests", &["model"]).unwrap();
    let down = Down {
        counter: Some(counter),
        ..Down::default()
    };
    let mut host = FakeHost::default();
    host.defined = config.defined;
    let mut stream = Exchange::new(&down, host);
    stream.request(&[], &[]);
    stream.finish();
    assert_eq!(stream.host.counter_total(counter, &["x"]), 2);
}

#[test]
fn a_fake_bootstrap_tracks_timers_wakes_and_shutdown() {
    let mut host = FakeBootstrap::default();
    let (timer, scheduler) = (host.new_timer(), host.new_scheduler());
    let id = timer.id();
    timer.enable(250);
    assert_eq!(host.delay_ms(id), Some(250));
    timer.disable();
    assert_eq!((host.delay_ms(id), host.live_timers()), (None, 1));
    drop(timer);
    scheduler.commit(4);
    assert_eq!((host.take_wakes(), host.live_timers()), (vec![4], 0));
    let done = host.shutdown_done();
    assert_eq!(host.completed_shutdowns(), 0);
    done.complete();
    assert_eq!(host.completed_shutdowns(), 1);
}

#[test]
fn a_fake_specifier_answers_from_its_tables() {
    let mut host = FakeSpecifier {
        clusters: BTreeMap::from([(
            "a".to_owned(),
            HostCount {
                total: 1,
                healthy: 1,
                degraded: 0,
            },
        )]),
        overrides: vec!["fast".to_owned()],
        ..FakeSpecifier::default()
    };
    assert_eq!(host.cluster_hosts("a", 0).map(|count| count.total), Some(1));
    assert_eq!(host.cluster_hosts("b", 0), None);
    assert!(!host.set_route_action_override("slow"));
    assert!(host.set_route_action_override("fast"));
    assert_eq!(host.used_override.as_deref(), Some("fast"));
}

#[test]
fn the_known_build_is_recognised() {
    assert_eq!(known_release(10_376_576), Some("1.40.0"));
    assert_eq!(known_release(1), None);
}
