//! ①, ② and ③ of whole streams on fake hosts, up to the record in the spool.

use std::sync::{Arc, LazyLock};

use filter_agent::spool::{BatchLimit, Read};
use filter_core::{
    config::{Resources, compile},
    credit::{Account, Kind, Lease, LimitTerms, Span},
    key,
};
use filter_envoy_abi::{
    Attribute, ClusterSpecifier as _, HostCount, MetadataSource,
    fake::{Exchange, FakeHost, FakeSpecifier, Flow},
};
use prost::Message as _;
use proto::{
    config::v1::{
        Checkpoint, CredentialPlace, Dialect, Enforcement, KeySecret, Limit, LimitSubject,
        LimitUnit, LimitWindow, Model, Provider, Target, Team, VirtualKey,
    },
    metering::v1::{Attempt, End, UsageRecord, UsageSource, Verdict},
};
use tempfile::TempDir;

mod limits;

use super::*;
use crate::{node::ThisNode, specifier::Specifier, upstream::UpstreamConfig};

const KEY: &str = "vk-test-shells";
const PLAIN: &str = r#"{"model":"pair","messages":[{"role":"user","content":"Hello there"}]}"#;
const STREAM: &str =
    r#"{"model":"pair","stream":true,"messages":[{"role":"user","content":"Hello there"}]}"#;
const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}"#;
const HI: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n";

const JSON_HEAD: [(&str, &str); 2] = [(":status", "200"), ("content-type", "application/json")];
const STREAM_HEAD: [(&str, &str); 2] = [(":status", "200"), ("content-type", "text/event-stream")];

/// What these tests' process runs on, once: a config, and a node with a disk.
static NODE: LazyLock<(Arc<ThisNode>, TempDir)> = LazyLock::new(|| {
    let (compiled, faults) = compile(&resources());
    assert!(faults.is_empty(), "{faults:?}");
    published::publish(compiled);
    published::note_in_sync();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Arc::new(ThisNode::create(folder.path(), "test").expect("a node"));
    worker::install(Arc::clone(&node));
    (node, folder)
});

/// A team, its key, and `pair` at the providers `a` and `b`.
fn resources() -> Resources {
    let mut all = Resources::default();
    let team = "red".to_owned();
    let secret = KeySecret {
        sha256: key::hash(KEY.as_bytes()).to_vec(),
        ..KeySecret::default()
    };
    let key = VirtualKey {
        id: "shells".into(),
        team: team.clone(),
        secrets: vec![secret],
        ..VirtualKey::default()
    };
    all.virtual_keys.insert(key.id.clone(), key);
    all.teams.insert(
        team.clone(),
        Team {
            id: team,
            ..Team::default()
        },
    );
    for id in ["a", "b"] {
        let provider = Provider {
            id: id.into(),
            dialect: Dialect::Openai.into(),
            authority: format!("{id}.example"),
            path_prefix: "/v1".into(),
            cluster_name: format!("turnpike-provider-{id}"),
            credential_place: CredentialPlace::None.into(),
            ..Provider::default()
        };
        all.providers.insert(id.into(), provider);
    }
    let target = |provider: &str| Target {
        provider: provider.into(),
        upstream_model: format!("at-{provider}"),
        ..Target::default()
    };
    let model = Model {
        id: "pair".into(),
        targets: vec![target("a"), target("b")],
        ..Model::default()
    };
    all.models.insert(model.id.clone(), model);
    for (id, unit, enforcement) in [
        ("edge", LimitUnit::Requests, Enforcement::Estimated),
        ("spend", LimitUnit::OutputTokens, Enforcement::Guarded),
    ] {
        let limit = Limit {
            id: id.into(),
            subject: LimitSubject::EndUser.into(),
            // Each test has a user of its own; the others' requests name none.
            unit: unit.into(),
            amount: 1_000_000,
            window: LimitWindow::Day.into(),
            enforcement: enforcement.into(),
            ..Limit::default()
        };
        all.limits.insert(limit.id.clone(), limit);
    }
    all.checkpoint = Some(Checkpoint {
        version: 1,
        nonce: "n".into(),
    });
    all
}

/// One client's stream on a worker of its own.
struct Stream {
    exchange: Exchange,
    shard: u32,
}

impl Stream {
    /// The client's request has come and passed ①.
    fn begin(shard: u32, body: &str) -> Self {
        let (mut stream, flow) = Self::arrive(shard, body);
        assert_eq!(flow, Flow::Passed);
        stream.pass();
        stream
    }

    /// The client's request has come to ①.
    fn arrive(shard: u32, body: &str) -> (Self, Flow) {
        LazyLock::force(&NODE);
        let mut host = FakeHost::default();
        host.worker = shard;
        let mut exchange = Exchange::new(&DownstreamConfig, host);
        let authorization = format!("Bearer {KEY}");
        let head = [
            (":method", "POST"),
            (":path", "/v1/chat/completions"),
            (":authority", "gateway.example"),
            ("authorization", authorization.as_str()),
            ("content-type", "application/json"),
        ];
        let (first, second) = body.as_bytes().split_at(body.len() / 2);
        let flow = exchange.request(&head, &[first, second]);
        (Self { exchange, shard }, flow)
    }

    /// The router reads what it may do.
    fn pass(&mut self) {
        let host = &self.exchange.host;
        let retries = host.header_text(HeaderMap::Request, "x-envoy-max-retries");
        self.exchange.retries = retries.expect("retries").parse().expect("a number");
    }

    /// ② names the cluster and ③ takes the request.
    fn attempt(&mut self) -> String {
        let cluster = self.select();
        assert_eq!(self.exchange.attempt(&UpstreamConfig), Flow::Passed);
        cluster
    }

    /// Envoy counts no attempt before the first, and the one to come before each further one.
    fn select(&self) -> String {
        let host = &self.exchange.host;
        let made = host
            .attribute_int(Attribute::UpstreamRequestAttemptCount)
            .unwrap_or(0);
        let count = if made == 0 { 0 } else { made + 1 };
        let hosts = HostCount {
            total: 1,
            healthy: 1,
            degraded: 0,
        };
        let mut specifier = FakeSpecifier {
            ints: [(Attribute::UpstreamRequestAttemptCount, count)].into(),
            texts: host.texts.clone(),
            clusters: ["a", "b"]
                .map(|id| (format!("turnpike-provider-{id}"), hosts))
                .into(),
            overrides: vec!["plain".into(), "stream".into()],
            ..FakeSpecifier::default()
        };
        if let Some(handle) = host.header(HeaderMap::Request, exchanges::HEADER) {
            let name = exchanges::HEADER.to_owned();
            specifier.headers.insert(name, handle.to_vec());
        }
        let (namespace, key) = (exchanges::METADATA_NAMESPACE, exchanges::METADATA_KEY);
        if let Some(handle) = host.metadata_string(MetadataSource::Dynamic, namespace, key) {
            let place = (namespace.to_owned(), key.to_owned());
            specifier.metadata.insert(place, handle.to_vec());
        }
        assert!(Specifier.select(&mut specifier));
        specifier.cluster.expect("a cluster")
    }

    /// The one record that this stream left in the spool.
    fn record(&self) -> UsageRecord {
        let records = self.records();
        assert_eq!(records.len(), 1, "{records:#?}");
        records.into_iter().next().expect("a record")
    }

    /// All records of this stream's worker.
    fn records(&self) -> Vec<UsageRecord> {
        records(self.shard)
    }

    fn client_text(&self) -> &str {
        std::str::from_utf8(&self.exchange.client.body).expect("text")
    }
}

fn records(shard: u32) -> Vec<UsageRecord> {
    let limit = BatchLimit {
        bytes: 1 << 20,
        records: 10,
    };
    let read = NODE.0.reader(shard).read(limit).expect("a spool");
    let Some(Read::Records { records, .. }) = read else {
        panic!("{read:?}");
    };
    let decode = |bytes: &Vec<u8>| UsageRecord::decode(bytes.as_slice()).expect("a record");
    records.iter().map(decode).collect()
}

fn seen(record: &UsageRecord) -> Vec<(&str, Verdict, UsageSource)> {
    let of = |attempt: &Attempt| attempt.usage.as_ref().expect("usage").source();
    let attempts = record.attempts.iter();
    attempts
        .map(|attempt| (attempt.provider.as_str(), attempt.verdict(), of(attempt)))
        .collect()
}

#[test]
fn a_plain_request_is_translated_metered_and_recorded() {
    let mut stream = Stream::begin(0, PLAIN);
    assert_eq!(stream.attempt(), "turnpike-provider-a");
    let sent = std::str::from_utf8(stream.exchange.sent_upstream()).expect("text");
    assert_eq!(sent, PLAIN.replace("\"pair\"", "\"at-a\""));
    let header = |name: &str| stream.exchange.host.header_text(HeaderMap::Request, name);
    assert_eq!(header(":authority").as_deref(), Some("a.example"));
    assert_eq!(header("authorization"), None, "the caller's key stays here");
    assert_eq!(header(exchanges::HEADER), None, "nor does the handle leave");
    let (first, second) = ANSWER.as_bytes().split_at(20);
    stream.exchange.response_headers(&JSON_HEAD, false);
    stream.exchange.response_frame(first, false);
    stream.exchange.response_frame(second, true);
    stream.exchange.finish();
    assert_eq!(stream.exchange.client.status, Some(200));
    assert_eq!(stream.client_text(), ANSWER);
    let record = stream.record();
    assert_eq!(
        seen(&record),
        [("a", Verdict::Billed, UsageSource::Reported)]
    );
    assert_eq!((record.end(), record.status), (End::Complete, 200));
    let team = stream.exchange.host.metadata_text("turnpike", "team");
    assert_eq!(team.as_deref(), Some("red"), "the access log has it");
}

#[test]
fn a_failed_attempt_is_followed_by_the_next_target_in_one_record() {
    let mut stream = Stream::begin(1, PLAIN);
    stream.attempt();
    let error_head = [(":status", "503"), ("content-type", "application/json")];
    let flow = stream.exchange.response_headers(&error_head, false);
    assert_eq!(flow, Flow::Held, "its words may be wanted");
    let flow = stream
        .exchange
        .response_frame(b"{\"error\":{\"message\":\"full\"}}", true);
    assert_eq!(flow, Flow::Retry);
    assert_eq!(stream.attempt(), "turnpike-provider-b");
    let sent = std::str::from_utf8(stream.exchange.sent_upstream()).expect("text");
    assert_eq!(sent, PLAIN.replace("\"pair\"", "\"at-b\""));
    stream.exchange.response_headers(&JSON_HEAD, false);
    stream.exchange.response_frame(ANSWER.as_bytes(), true);
    stream.exchange.finish();
    assert_eq!(stream.client_text(), ANSWER);
    assert_eq!(
        seen(&stream.record()),
        [
            ("a", Verdict::NotBilled, UsageSource::None),
            ("b", Verdict::Billed, UsageSource::Reported)
        ]
    );
}

#[test]
fn an_attempt_without_a_connection_is_free_and_a_reset_one_is_estimated() {
    // The specifier learns of the first attempt's end, the downstream filter of the last one's.
    let mut stream = Stream::begin(2, PLAIN);
    stream.attempt();
    assert_eq!(stream.exchange.upstream_reset(), Flow::Retry);
    stream.attempt();
    stream.exchange.connect();
    assert_eq!(stream.exchange.upstream_reset(), Flow::Over);
    assert_eq!(stream.exchange.client.status, Some(502));
    assert!(stream.client_text().contains("provider_reset"));
    let record = stream.record();
    assert_eq!(
        seen(&record),
        [
            ("a", Verdict::NotBilled, UsageSource::None),
            ("b", Verdict::Unknown, UsageSource::Estimated)
        ]
    );
    assert_eq!(record.attempts[0].reason, "unconnected");

    let mut stream = Stream::begin(2, PLAIN);
    stream.attempt();
    stream.exchange.connect();
    assert_eq!(stream.exchange.upstream_reset(), Flow::Retry);
    stream.attempt();
    assert_eq!(stream.exchange.upstream_reset(), Flow::Over);
    assert_eq!(stream.exchange.client.status, Some(503));
    assert!(stream.client_text().contains("provider_unreachable"));
    assert_eq!(
        seen(&stream.records()[1]),
        [
            ("a", Verdict::Unknown, UsageSource::Estimated),
            ("b", Verdict::NotBilled, UsageSource::None)
        ]
    );
}

#[test]
fn a_client_that_leaves_midway_is_charged_for_what_it_was_sent() {
    let mut stream = Stream::begin(3, STREAM);
    stream.attempt();
    let flow = stream.exchange.response_headers(&STREAM_HEAD, false);
    assert_eq!(flow, Flow::Held, "until the first content");
    stream.exchange.response_frame(HI, false);
    assert_eq!(stream.exchange.client.body, HI);
    stream.exchange.client_abort();
    let record = stream.record();
    assert_eq!(
        seen(&record),
        [("a", Verdict::Unknown, UsageSource::Estimated)]
    );
    assert_eq!((record.end(), record.status), (End::ClientGone, 200));
    let usage = record.attempts[0].usage.as_ref().expect("usage");
    assert!(usage.input > 0 && usage.output > 0, "{usage:?}");
}

#[test]
fn a_client_that_leaves_while_its_attempt_connects_is_charged_nothing() {
    let mut stream = Stream::begin(4, PLAIN);
    stream.attempt();
    stream.exchange.client_abort();
    let record = stream.record();
    assert_eq!(
        seen(&record),
        [("a", Verdict::NotBilled, UsageSource::None)]
    );
    assert_eq!(record.end(), End::ClientGone);
}

#[test]
fn an_error_without_a_body_gets_one() {
    let mut stream = Stream::begin(5, PLAIN);
    stream.exchange.retries = 0;
    stream.attempt();
    let head = [(":status", "500"), ("content-length", "0")];
    stream.exchange.response_headers(&head, true);
    stream.exchange.finish();
    assert_eq!(stream.exchange.client.status, Some(500));
    assert!(stream.client_text().contains("said no more"));
    let length = stream
        .exchange
        .host
        .header_text(HeaderMap::Response, "content-length");
    assert_eq!(length, Some(stream.client_text().len().to_string()));
}

#[test]
fn a_filter_that_goes_without_its_completion_hook_leaves_a_record() {
    let stream = Stream::begin(6, PLAIN);
    let shard = stream.shard;
    drop(stream);
    let mut stream = Stream::begin(shard, PLAIN);
    stream.attempt();
    stream.exchange.response_headers(&JSON_HEAD, false);
    drop(stream.exchange);
    let statuses: Vec<u32> = records(shard).iter().map(|record| record.status).collect();
    assert_eq!(statuses, [500, 200], "what the client was left with");
}
