//! A host that plays the same request again and again, and does as little as it can itself.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use filter_core::config::{Resources, compile};
use filter_core::credit::{Kind, Lease, LimitTerms, Span};
use filter_core::exchange::{AttemptStep, Begin, Config, Exchange, Head, Settled, Step, StreamEnd};
use filter_core::health::Health;
use filter_core::host::{Clock, Clusters, HeaderSink, HeldBodies, NodeState, Now};
use filter_core::key;
use filter_core::limits::NodeLimits;
use prost::Message as _;
use proto::config::v1::*;
use proto::metering::v1::{Attempt, UsageRecord};

static HELD: HeldBodies = HeldBodies::new();
static HEALTH: Health = Health::new();
static LIMITS: LazyLock<NodeLimits> = LazyLock::new(NodeLimits::default);
const KEYS: usize = 1000;
const MICROSECOND_ZERO: i64 = 1_750_000_000_000_000;
const BODY_BYTES: usize = 1024;

struct Host;

impl Clock for Host {
    fn now(&self) -> Now {
        Now {
            mono_us: 1_000_000,
            unix_us: MICROSECOND_ZERO,
        }
    }
}

impl Clusters for Host {
    fn has_hosts(&self, cluster: &str) -> bool {
        !cluster.is_empty()
    }
}

impl HeaderSink for Host {
    fn set(&mut self, name: &str, value: &[u8]) {
        black_box((name, value));
    }
    fn remove(&mut self, name: &str) {
        black_box(name);
    }
}

/// A compiled config and everything that a worker keeps between requests.
pub(crate) struct Script {
    config: Config,
    authorization: String,
    body: String,
    /// The same, as a stream, and with its usage asked for.
    asking_body: String,
    streamed_body: String,
    answer: String,
    settled: Settled,
    kept: RefCell<Kept>,
}

/// What a worker refills for the open table.
#[derive(Default)]
struct Kept {
    record: UsageRecord,
    attempt: Attempt,
    bytes: Vec<u8>,
}

impl Kept {
    fn admit(&mut self, exchange: &Exchange) {
        black_box(exchange.write_open(&mut self.record));
        self.bytes.clear();
        assert!(self.record.encode(&mut self.bytes).is_ok());
        black_box(&self.bytes);
    }

    fn begin_attempt(&mut self, exchange: &Exchange) {
        black_box(exchange.write_open_attempt(&mut self.attempt));
        self.bytes.clear();
        assert!(self.attempt.encode(&mut self.bytes).is_ok());
        black_box(&self.bytes);
    }

    fn note(exchange: &Exchange) {
        black_box(exchange.progress().next_back());
    }
}

/// A request's body that asks for a stream.
fn streamed(body: &str, asks_usage: bool) -> String {
    let option = format!(r#"{{"stream":true,"stream_options":{{"include_usage":{asks_usage}}},"#);
    body.replacen('{', &option, 1)
}

impl Script {
    /// Without limits.
    pub(crate) fn new() -> Self {
        Self::with_limits(0)
    }

    /// With so many limits that apply to the request, each with credit for many.
    pub(crate) fn with_limits(count: usize) -> Self {
        let secrets: Vec<String> = (0..KEYS).map(secret).collect();
        let mut resources = resources(&secrets);
        LIMITS.accounts.usable_until(u64::MAX);
        for limit in (0..count).map(limit) {
            fund(&limit);
            resources.limits.insert(limit.id.clone(), limit);
        }
        let (config, faults) = compile(&resources);
        assert!(faults.is_empty(), "{faults:?}");
        let mut body = r#"{"model":"public-1","messages":[{"role":"user","content":""#.to_owned();
        let end = r#""}],"temperature":0.5,"max_tokens":256}"#;
        while body.len() + end.len() < BODY_BYTES {
            body.push_str("words ");
        }
        body.push_str(end);
        let answer = format!(
            r#"{{"id":"c-1","object":"chat.completion","created":1750000000,"model":"upstream-1","choices":[{{"index":0,"message":{{"role":"assistant","content":"{}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":210,"completion_tokens":160,"total_tokens":370}}}}"#,
            "an answer of some words. ".repeat(32)
        );
        Self {
            config: Rc::new(Arc::new(config)),
            authorization: format!(
                "Bearer {}",
                secrets.get(KEYS / 3).cloned().unwrap_or_default()
            ),
            asking_body: streamed(&body, true),
            streamed_body: streamed(&body, false),
            body,
            answer,
            settled: Settled::default(),
            kept: RefCell::default(),
        }
    }

    /// One plain request, answered at once; the tokens it cost.
    pub(crate) fn plain_request(&mut self) -> u64 {
        let mut exchange = self.begin(&self.body);
        let headers: [(&[u8], &[u8]); 7] = [
            (b":status", b"200"),
            (b"content-type", b"application/json"),
            (b"date", b"Mon, 16 Jun 2025 00:00:00 GMT"),
            (b"server", b"cloudflare"),
            (b"openai-processing-ms", b"420"),
            (b"x-request-id", b"req_1"),
            (b"x-envoy-upstream-service-time", b"421"),
        ];
        exchange.on_response_head(&headers, false, &Host);
        exchange.edit_response_head(&mut Host);
        exchange.restore_request_head(&mut Host);
        exchange.edit_client_head(&mut Host);
        let answer = self.answer.as_bytes();
        assert!(!exchange.transforms_response());
        exchange.observe(answer, &Host);
        exchange.on_response_end(&mut Vec::new(), &Host);
        Kept::note(&exchange);
        self.end(exchange)
    }

    /// A stream that is up to its first content; `asks_usage`: nothing is stripped from it.
    pub(crate) fn open_stream(&self, asks_usage: bool) -> Exchange {
        let body = if asks_usage {
            &self.asking_body
        } else {
            &self.streamed_body
        };
        let mut exchange = self.begin(body);
        let headers: [(&[u8], &[u8]); 2] = [
            (b":status", b"200"),
            (b"content-type", b"text/event-stream"),
        ];
        exchange.on_response_head(&headers, false, &Host);
        let mut out = Vec::new();
        exchange.transform(STREAM_EVENT, &mut out, &Host);
        assert_eq!(out, STREAM_EVENT);
        assert!(exchange.releases_head());
        assert_eq!(exchange.transforms_response(), !asks_usage);
        exchange
    }

    /// A frame of an open stream, the way it would go.
    pub(crate) fn stream_frame(exchange: &mut Exchange, frame: &[u8], out: &mut Vec<u8>) {
        if exchange.transforms_response() {
            exchange.transform(frame, out, &Host);
        } else {
            exchange.observe(frame, &Host);
        }
        Kept::note(exchange);
    }

    /// A streamed request of so many events; the tokens it cost.
    pub(crate) fn stream_request(&mut self, asks_usage: bool, events: usize) -> u64 {
        let mut exchange = self.open_stream(asks_usage);
        let mut out = Vec::with_capacity(STREAM_EVENT.len());
        for _ in 0..events {
            out.clear();
            Self::stream_frame(&mut exchange, STREAM_EVENT, &mut out);
            black_box(&out);
        }
        out.clear();
        exchange.on_response_end(&mut out, &Host);
        self.end(exchange)
    }

    pub(crate) fn end(&mut self, mut exchange: Exchange) -> u64 {
        exchange.restore_request_head(&mut Host);
        let end = StreamEnd {
            response_code: 200,
            details: b"via_upstream",
            flags: 0,
            shutdown: false,
        };
        exchange.settle_into(&end, &Host, &mut self.settled);
        self.settled.sample.tokens.input + self.settled.sample.tokens.output
    }

    fn begin(&self, body: &str) -> Exchange {
        let length = body.len().to_string();
        let headers: [(&[u8], &[u8]); 11] = [
            (b":authority", b"gateway.example:8080"),
            (b":path", b"/v1/chat/completions"),
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b"accept", b"application/json"),
            (b"authorization", self.authorization.as_bytes()),
            (b"content-type", b"application/json"),
            (b"user-agent", b"OpenAI/Python 1.99.0"),
            (b"x-forwarded-proto", b"http"),
            (b"x-envoy-internal", b"true"),
            (b"content-length", length.as_bytes()),
        ];
        let begin = Begin {
            config: &self.config,
            clock: &Host,
            entropy: [7; 32],
            node: NodeState {
                in_sync: true,
                stale: false,
            },
            held: &HELD,
            limits: &LIMITS,
            health: &HEALTH,
        };
        let head = Head {
            headers: &headers,
            end_of_stream: false,
        };
        let (mut exchange, step) = Exchange::begin(&begin, &head);
        assert!(matches!(step, Step::NeedBody { .. }), "{step:?}");
        exchange.edit_request_head(&mut Host);
        assert!(exchange.on_request_bytes(body.len() as u64).is_none());
        let step = exchange.on_request_body(body.as_bytes(), &Host);
        assert!(matches!(step, Step::Forward), "{step:?}");
        self.kept.borrow_mut().admit(&exchange);
        exchange.edit_forward_head(&mut Host);
        black_box(exchange.select(0, &Host, &Host));
        if matches!(exchange.begin_attempt(&mut Host), AttemptStep::Rewrite) {
            black_box(exchange.rewrite_body(body.as_bytes(), &mut Host)).ok();
        }
        self.kept.borrow_mut().begin_attempt(&exchange);
        exchange.on_request_sent();
        Kept::note(&exchange);
        exchange
    }
}

/// An event of a stream that has content.
pub(crate) const STREAM_EVENT: &[u8] = b"data: {\"id\":\"c-1\",\"object\":\"chat.completion.chunk\",\"created\":1750000000,\"model\":\"upstream-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";

/// Requests, tokens and money by turns, of everything, a team and a key.
fn limit(at: usize) -> Limit {
    let at = at % 9;
    let units = [LimitUnit::Requests, LimitUnit::Tokens, LimitUnit::Money];
    let subjects = [
        LimitSubject::Key,
        LimitSubject::Team,
        LimitSubject::Everything,
    ];
    let of = |list: &[i32; 3], at: usize| list.get(at % 3).copied().unwrap_or_default();
    Limit {
        id: format!("limit-{at}"),
        subject: of(&subjects.map(i32::from), at / 3),
        unit: of(&units.map(i32::from), at),
        amount: 1 << 52,
        window: LimitWindow::Day.into(),
        ..Default::default()
    }
}

fn fund(limit: &Limit) {
    let subject = match limit.subject() {
        LimitSubject::Key => format!("key-{}", KEYS / 3),
        LimitSubject::Team => "team".to_owned(),
        _ => String::new(),
    };
    let terms = LimitTerms {
        id: limit.id.as_str().into(),
        kind: Kind::Credit,
        amount: limit.amount,
        on_unavailable_allowance: None,
    };
    let lease = Lease::new(Span {
        epoch: 1,
        window_start_s: MICROSECOND_ZERO / 1_000_000,
        starts_at_us: 0,
        ends_at_us: u64::MAX,
    });
    lease.raise(1 << 52, 0);
    let account = LIMITS.accounts.account(&terms, &subject);
    account.set_current(Some(Arc::new(lease)));
}

fn secret(at: usize) -> String {
    let entropy = std::array::from_fn(|byte| (at * 31 + byte * 7).to_le_bytes()[0]);
    key::mint(&format!("k{at:07}"), &entropy)
}

fn resources(secrets: &[String]) -> Resources {
    let mut all = Resources::default();
    all.teams.insert(
        "team".into(),
        Team {
            id: "team".into(),
            ..Default::default()
        },
    );
    for (at, secret) in secrets.iter().enumerate() {
        let id = format!("key-{at}");
        let secrets = vec![KeySecret {
            sha256: key::hash(secret.as_bytes()).to_vec(),
            expires_at_s: 0,
        }];
        let key = VirtualKey {
            id: id.clone(),
            team: "team".into(),
            secrets,
            ..Default::default()
        };
        all.virtual_keys.insert(id, key);
    }
    let provider = Provider {
        id: "provider".into(),
        dialect: Dialect::Openai.into(),
        authority: "api.provider.example".into(),
        path_prefix: "/v1".into(),
        cluster_name: "turnpike-provider-provider".into(),
        credential_place: CredentialPlace::Bearer.into(),
        stream_usage_option: true,
        ..Default::default()
    };
    all.providers.insert(provider.id.clone(), provider);
    let credential = Credential {
        id: "credential".into(),
        provider: "provider".into(),
        weight: 1,
        secret: "sk-test-0123456789abcdef".into(),
        ..Default::default()
    };
    all.credentials.insert(credential.id.clone(), credential);
    for at in 0..20 {
        let target = Target {
            provider: "provider".into(),
            upstream_model: format!("upstream-{at}"),
            ..Default::default()
        };
        let id = format!("public-{at}");
        all.models.insert(
            id.clone(),
            Model {
                id,
                targets: vec![target],
                ..Default::default()
            },
        );
    }
    all.price_book = Some(PriceBook {
        version: 1,
        prices: vec![price("upstream-1")],
    });
    all
}

fn price(upstream_model: &str) -> Price {
    Price {
        provider: "provider".into(),
        upstream_model: upstream_model.into(),
        input_pusd: Some(150_000),
        output_pusd: Some(600_000),
        ..Default::default()
    }
}
