//! A scripted stand-in for Envoy and its module: it calls the exchange in the order in which Envoy
//! calls the hooks, retries as the router does, and keeps what each side saw.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proto::metering::v1::UsageRecord;

use super::open::Opened;
use crate::config::{Resources, compile};
use crate::credit::Wake;
use crate::exchange::*;
use crate::fixture;
use crate::health::Health;
use crate::host::*;
use crate::limits::NodeLimits;

pub(crate) static HELD: HeldBodies = HeldBodies::new();
pub(crate) const IN_SYNC: NodeState = NodeState {
    in_sync: true,
    stale: false,
};

/// Each look at the clock takes a millisecond.
#[derive(Default)]
pub(crate) struct Ticks(Cell<u64>);

impl Ticks {
    pub(crate) fn advance_ms(&self, ms: u64) {
        self.0.set(self.0.get() + ms * 1000);
    }
}

impl Clock for Ticks {
    fn now(&self) -> Now {
        self.advance_ms(1);
        let mono_us = self.0.get();
        Now {
            mono_us,
            unix_us: 1_750_000_000_000_000 + i64::try_from(mono_us).unwrap(),
        }
    }
}

pub(crate) type Headers = BTreeMap<String, String>;

pub(crate) struct Sink<'a>(pub(crate) &'a mut Headers);

impl HeaderSink for Sink<'_> {
    fn set(&mut self, name: &str, value: &[u8]) {
        self.0
            .insert(name.to_owned(), String::from_utf8(value.to_vec()).unwrap());
    }
    fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}

impl Clusters for BTreeSet<&'static str> {
    fn has_hosts(&self, cluster: &str) -> bool {
        self.contains(cluster)
    }
}

/// How a provider behaves in one attempt.
#[derive(Clone, Debug)]
pub(crate) enum Play {
    Answer {
        status: u16,
        headers: Vec<(&'static str, String)>,
        frames: Vec<Vec<u8>>,
        ends: bool,
    },
    RefuseConnection,
    ResetBeforeHead,
    TimeOut,
    /// The client leaves before any head.
    ClientLeaves,
}

impl Play {
    pub(crate) fn answer(status: u16, content_type: &str, body: &str) -> Self {
        Self::frames(status, content_type, vec![body.as_bytes().to_vec()])
    }
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::answer(status, "application/json", body)
    }
    pub(crate) fn frames(status: u16, content_type: &str, frames: Vec<Vec<u8>>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self::Answer {
            status,
            headers,
            frames,
            ends: true,
        }
    }
    pub(crate) fn stream(events: &[&str]) -> Self {
        let frames = events
            .iter()
            .map(|event| format!("data: {event}\n\n").into_bytes())
            .collect();
        Self::frames(200, "text/event-stream", frames)
    }
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.retain(|(other, _)| *other != name);
            headers.push((name, value.to_owned()));
        }
        self
    }
    pub(crate) fn cut(mut self) -> Self {
        if let Self::Answer { ends, .. } = &mut self {
            *ends = false;
        }
        self
    }
}

pub(crate) struct Shell {
    pub(crate) config: Config,
    pub(crate) clock: Ticks,
    pub(crate) node: NodeState,
    pub(crate) entropy: [u8; 32],
    pub(crate) clusters: BTreeSet<&'static str>,
    /// The client leaves after this many frames.
    pub(crate) client_reads_frames: Option<usize>,
    /// Milliseconds between frames.
    pub(crate) frame_gap_ms: u64,
    /// False: it has no room to keep the body for another attempt.
    pub(crate) router_retries: bool,
    pub(crate) limits: &'static NodeLimits,
    pub(crate) health: &'static Health,
    /// What the agent does while a request waits.
    pub(crate) agent: Box<dyn Fn(&NodeLimits)>,
}

/// Counts how often it was rung.
#[derive(Default)]
pub(crate) struct Bell(pub(crate) AtomicUsize);

impl Wake for Bell {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// What everyone saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
    pub(crate) providers: Vec<(String, Headers, Vec<u8>)>,
    /// The request's headers as an access log would print them.
    pub(crate) logged: Headers,
    pub(crate) settled: Settled,
    /// The bytes that had reached the client after each frame.
    pub(crate) progress: Vec<usize>,
}

impl Seen {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
    pub(crate) fn record(&self) -> &UsageRecord {
        self.settled.record.as_ref().unwrap()
    }
    pub(crate) fn error(&self) -> serde_json::Value {
        let mut body: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        body["error"].take()
    }
    pub(crate) fn code(&self) -> String {
        self.error()["code"].as_str().unwrap_or_default().to_owned()
    }
    fn take_reply(&mut self, reply: Reply) -> &'static str {
        self.status = reply.status;
        self.headers = reply
            .headers
            .into_iter()
            .map(|(n, v)| (n.into(), v.into_owned()))
            .collect();
        self.body = reply.body;
        reply.details
    }
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self::with(&fixture::resources())
    }

    pub(crate) fn with(resources: &Resources) -> Self {
        Self {
            config: Rc::new(Arc::new(compile(resources).0)),
            clock: Ticks::default(),
            node: IN_SYNC,
            entropy: std::array::from_fn(|at| u8::try_from(at).unwrap()),
            clusters: BTreeSet::from(["turnpike-provider-a", "turnpike-provider-b"]),
            client_reads_frames: None,
            frame_gap_ms: 0,
            router_retries: true,
            limits: Box::leak(Box::default()),
            health: Box::leak(Box::default()),
            agent: Box::new(|_| {}),
        }
    }

    pub(crate) fn chat(&self, body: &str, plays: &[Play]) -> Seen {
        self.run(&chat_head(&[]), body.as_bytes(), plays)
    }

    pub(crate) fn run(&self, head: &[(&str, &str)], body: &[u8], plays: &[Play]) -> Seen {
        let mut seen = Seen::default();
        let mut run = Run {
            shell: self,
            headers: to_headers(head),
            seen: &mut seen,
            opened: None,
        };
        let owned: Vec<_> = head
            .iter()
            .map(|(n, v)| (n.as_bytes(), v.as_bytes()))
            .collect();
        let begin = Begin {
            config: &self.config,
            clock: &self.clock,
            entropy: self.entropy,
            node: self.node,
            held: &HELD,
            limits: self.limits,
            health: self.health,
        };
        let head = Head {
            headers: &owned,
            end_of_stream: body.is_empty(),
        };
        let (mut exchange, step) = Exchange::begin(&begin, &head);
        let (code, details) = run.request(&mut exchange, step, body, plays);
        exchange.restore_request_head(&mut Sink(&mut run.headers));
        run.seen.logged = std::mem::take(&mut run.headers);
        let end = StreamEnd {
            response_code: code,
            details: details.as_bytes(),
            flags: 0,
            shutdown: false,
        };
        let crashed = run.opened.take().map(|opened| opened.crash(&exchange));
        seen.settled = exchange.settle(&end, &self.clock);
        if let (Some(crashed), Some(settled)) = (&crashed, &seen.settled.record) {
            super::open::assert_agree(crashed, settled);
        }
        seen
    }
}

pub(crate) fn chat_head<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut head = vec![
        (":method", "POST"),
        (":path", "/v1/chat/completions"),
        (":authority", "gateway.example"),
        ("authorization", "Bearer vk-test-alpha"),
        ("content-type", "application/json"),
    ];
    for &(name, value) in more {
        head.retain(|(other, _)| *other != name);
        head.push((name, value));
    }
    head
}

fn to_headers(head: &[(&str, &str)]) -> Headers {
    head.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

struct Run<'a> {
    shell: &'a Shell,
    headers: Headers,
    seen: &'a mut Seen,
    /// What outlives the process.
    opened: Option<Opened>,
}

/// What became of an attempt.
enum Fate {
    Retry,
    Over(u32, String),
    Fail(u16, String),
}

impl Run<'_> {
    fn request(
        &mut self,
        exchange: &mut Exchange,
        step: Step,
        body: &[u8],
        plays: &[Play],
    ) -> (u32, String) {
        let reply = |run: &mut Self, reply: Reply| {
            let status = reply.status.into();
            (status, run.seen.take_reply(reply).to_owned())
        };
        let step = match step {
            Step::NeedBody { .. } => {
                exchange.edit_request_head(&mut Sink(&mut self.headers));
                let middle = body.len() / 2;
                if let Some(refusal) = exchange.on_request_bytes(middle as u64) {
                    return reply(self, refusal);
                }
                exchange.on_request_body(body, &self.shell.clock)
            }
            step => step,
        };
        if let Step::Reply(refusal) = self.wait(exchange, step) {
            return reply(self, refusal);
        }
        self.opened = Opened::admit(exchange);
        exchange.edit_forward_head(&mut Sink(&mut self.headers));
        let retries: usize = self.headers["x-envoy-max-retries"].parse().unwrap();
        // The router takes its own headers out.
        self.headers.retain(|name, _| !name.starts_with("x-envoy-"));
        self.attempts(exchange, retries, body, plays)
    }

    /// A waiting request is woken as often as the agent has something for it, and waits no longer
    /// than it was told.
    fn wait(&mut self, exchange: &mut Exchange, mut step: Step) -> Step {
        let bell = Arc::new(Bell::default());
        while let Step::Wait { .. } = step {
            let waiting = exchange.wait(Arc::clone(&bell) as Arc<dyn Wake>, &self.shell.clock);
            let Step::Wait { max_us } = waiting else {
                return waiting;
            };
            let rung = bell.0.load(Ordering::SeqCst);
            (self.shell.agent)(self.shell.limits);
            step = if bell.0.load(Ordering::SeqCst) > rung {
                exchange.on_credit(&self.shell.clock).expect("it waits")
            } else {
                self.shell.clock.advance_ms(max_us / 1000 + 1);
                exchange.on_wait_over(&self.shell.clock).expect("it waits")
            };
        }
        assert!(exchange.on_credit(&self.shell.clock).is_none());
        step
    }

    fn attempts(
        &mut self,
        exchange: &mut Exchange,
        retries: usize,
        body: &[u8],
        plays: &[Play],
    ) -> (u32, String) {
        for attempt in 0..=retries {
            let number = if attempt == 0 {
                0
            } else {
                u32::try_from(attempt).unwrap() + 1
            };
            let clusters = &self.shell.clusters;
            let cluster = exchange
                .select(number, clusters, &self.shell.clock)
                .to_owned();
            assert_eq!(
                cluster,
                exchange.select(number, clusters, &self.shell.clock)
            );
            self.headers
                .insert("x-envoy-attempt-count".into(), "1".into());
            let step = exchange.begin_attempt(&mut Sink(&mut self.headers));
            if let AttemptStep::Reply(reply) = step {
                assert_eq!(cluster, STOP_CLUSTER);
                let code = reply.status.into();
                assert_eq!(
                    exchange.on_local_reply(reply.status, reply.details.as_bytes()),
                    LocalReply::Leave
                );
                let details = self.seen.take_reply(reply).to_owned();
                exchange.edit_client_head(&mut Sink(&mut self.seen.headers));
                return (code, details);
            }
            if let Some(opened) = &mut self.opened {
                opened.begin(exchange);
            }
            let sent = match step {
                AttemptStep::Rewrite => exchange
                    .rewrite_body(body, &mut Sink(&mut self.headers))
                    .expect("the target can be asked this"),
                _ => body.to_vec(),
            };
            exchange.on_request_sent();
            self.seen
                .providers
                .push((cluster, self.headers.clone(), sent));
            let play = plays.get(attempt).expect("a play for each attempt").clone();
            match self.play(exchange, play, attempt < retries) {
                Fate::Retry => {}
                Fate::Over(code, details) => return (code, details),
                Fate::Fail(status, details) => {
                    self.local_reply(exchange, status, &details);
                    return (self.seen.status.into(), details);
                }
            }
        }
        panic!("the last attempt has a fate")
    }

    fn play(&mut self, exchange: &mut Exchange, play: Play, may_retry: bool) -> Fate {
        let failed = |status, details: &str| {
            if may_retry {
                Fate::Retry
            } else {
                Fate::Fail(status, details.to_owned())
            }
        };
        match play {
            Play::RefuseConnection => {
                exchange.on_unconnected();
                failed(
                    503,
                    "upstream_reset_before_response_started{remote_connection_failure}",
                )
            }
            Play::ResetBeforeHead => failed(
                503,
                "upstream_reset_before_response_started{connection_termination}",
            ),
            Play::TimeOut => {
                self.shell.clock.advance_ms(120_000);
                failed(504, "upstream_per_try_timeout")
            }
            Play::ClientLeaves => Fate::Over(0, "downstream_remote_disconnect".to_owned()),
            Play::Answer {
                status,
                headers,
                frames,
                ends,
            } => self.answer(exchange, status, &headers, &frames, ends, may_retry),
        }
    }

    fn answer(
        &mut self,
        exchange: &mut Exchange,
        status: u16,
        headers: &[(&'static str, String)],
        frames: &[Vec<u8>],
        ends: bool,
        may_retry: bool,
    ) -> Fate {
        let clock = &self.shell.clock;
        let status = status.to_string();
        let mut head = Headers::from([(":status".to_owned(), status)]);
        head.extend(headers.iter().map(|(n, v)| ((*n).to_owned(), v.clone())));
        let pairs: Vec<_> = head
            .iter()
            .map(|(n, v)| (n.as_bytes(), v.as_bytes()))
            .collect();
        let step = exchange.on_response_head(&pairs, false, clock);
        drop(pairs);
        let mut is_held = step == ResponseStep::Hold;
        if !is_held && self.pass_head(exchange, &mut head, may_retry) {
            return Fate::Retry;
        }
        for (at, frame) in frames.iter().enumerate() {
            clock.advance_ms(self.shell.frame_gap_ms);
            let mut out = Vec::new();
            if exchange.transforms_response() {
                exchange.transform(frame, &mut out, clock);
            } else {
                exchange.observe(frame, clock);
                out.extend_from_slice(frame);
            }
            exchange.guard(&mut out, clock);
            if is_held && exchange.releases_head() {
                is_held = false;
                if self.pass_head(exchange, &mut head, may_retry) {
                    return Fate::Retry;
                }
            }
            assert!(!is_held || out.is_empty(), "bytes before the head");
            self.seen.body.extend_from_slice(&out);
            self.seen.progress.push(self.seen.body.len());
            if self.shell.client_reads_frames == Some(at + 1) {
                let code = if is_held { 0 } else { self.seen.status.into() };
                return Fate::Over(code, "downstream_remote_disconnect".to_owned());
            }
        }
        if !ends {
            return self.cut(is_held, may_retry);
        }
        let mut out = Vec::new();
        exchange.on_response_end(&mut out, clock);
        if is_held {
            assert!(exchange.releases_head(), "a head held past the end");
            if self.pass_head(exchange, &mut head, may_retry) {
                return Fate::Retry;
            }
        }
        self.seen.body.extend_from_slice(&out);
        Fate::Over(self.seen.status.into(), "via_upstream".to_owned())
    }

    /// True when the router retries instead.
    fn pass_head(&mut self, exchange: &mut Exchange, head: &mut Headers, may_retry: bool) -> bool {
        exchange.edit_response_head(&mut Sink(head));
        let status: u16 = head[":status"].parse().unwrap();
        if may_retry && self.shell.router_retries && (status >= 500 || status == 429) {
            return true;
        }
        exchange.restore_request_head(&mut Sink(&mut self.headers));
        exchange.edit_client_head(&mut Sink(head));
        self.seen.status = head[":status"].parse().unwrap();
        self.seen.headers = head.clone();
        false
    }

    fn cut(&self, is_held: bool, may_retry: bool) -> Fate {
        if !is_held {
            let details = "upstream_reset_after_response_started{connection_termination}";
            return Fate::Fail(502, details.to_owned());
        }
        if may_retry {
            return Fate::Retry;
        }
        let details = "upstream_reset_before_response_started{connection_termination}";
        Fate::Fail(503, details.to_owned())
    }

    fn local_reply(&mut self, exchange: &mut Exchange, status: u16, details: &str) {
        match exchange.on_local_reply(status, details.as_bytes()) {
            LocalReply::Leave => {}
            LocalReply::Event(event) => self.seen.body.extend_from_slice(&event),
            LocalReply::Replace(reply) => {
                self.seen.take_reply(reply);
                exchange.edit_client_head(&mut Sink(&mut self.seen.headers));
            }
        }
    }
}
