//! Envoy is killed with exchanges open: whatever had reached a provider is in exactly one record,
//! estimated where nothing was reported, whoever adopts what the dead process left.

mod limits;

use std::{collections::BTreeMap, time::Duration};

use proto::metering::v1::{End, Usage, UsageRecord, UsageSource, Verdict};
use serde_json::{Value, json};
use tests::{
    http::{Answer, Open, Request},
    ledger::Stored,
    stack::{Options, Stack},
    wait,
};
use xtask::process::Ask;

/// From the moment that Envoy serves again.
const RECOVERED: Duration = Duration::from_secs(10);
/// Other processes look for dead ones every 30 s.
const ADOPTED: Duration = Duration::from_secs(45);
/// Of the scripted answers.
const CHUNK_BYTES: usize = 40;
/// Attempts that reach the provider.
const REACHED: usize = 4 + 6 + 8 + 2 * 3 + 3;
const PROMPT: &str = "a prompt of some words, so that there is something to estimate";

fn request(key: &str, model: &str, id: &str, stream: bool, script: &Value) -> Request {
    let body = json!({
        "model": model, "stream": stream,
        "messages": [{"role": "user", "content": PROMPT}],
    });
    Request::chat(key, &body)
        .header("x-request-id", id)
        .script(script)
}

/// A stream that goes on for a minute.
fn endless() -> Value {
    json!({
        "text": "x".repeat(CHUNK_BYTES), "text_times": 600, "chunks": 600, "chunk_delay_ms": 100,
    })
}

fn has(seen: &[u8], what: &str) -> bool {
    String::from_utf8_lossy(seen).contains(what)
}

/// What was open when Envoy was killed, by request id.
struct Opened {
    before_head: Vec<(String, Open)>,
    streaming: Vec<(String, Open)>,
    /// The first attempt failed, the second one streams.
    retried: Vec<(String, Open)>,
    /// The provider has told its usage, and does not end.
    reported: Vec<(String, Open)>,
    /// Over when Envoy was killed.
    settled: Vec<String>,
}

impl Opened {
    /// Twenty exchanges in every state, and some that have ended.
    fn start(stack: &Stack, key: &str) -> Self {
        let port = stack.port();
        let open = |kind: &str, at: usize, model: &str, stream: bool, script: &Value| {
            let id = format!("{kind}-{at}");
            let request = request(key, model, &id, stream, script);
            (id, request.open(port).expect("sent"))
        };
        let settled = |at: usize| {
            let (id, open) = open("settled", at, "small", at.is_multiple_of(2), &json!({}));
            assert!(open.finish().expect("an answer").complete);
            id
        };
        let silent = json!({"delay_ms": 60_000});
        let failing = json!([{"status": 500}, endless()]);
        let mut opened = Self {
            settled: (0..4).map(settled).collect(),
            before_head: (0..6)
                .map(|at| open("silent", at, "small", at % 2 == 0, &silent))
                .collect(),
            streaming: (0..8)
                .map(|at| open("streaming", at, "small", true, &endless()))
                .collect(),
            retried: (0..3)
                .map(|at| open("retried", at, "pair", true, &failing))
                .collect(),
            reported: (0..3)
                .map(|at| {
                    let script = json!({"usage": "every-chunk", "text": "some words", "chunks": 300,
                        "text_times": 200, "chunk_delay_ms": 200});
                    open("reported", at, "small", true, &script)
                })
                .collect(),
        };
        let flowing = opened.streaming.iter_mut().chain(&mut opened.retried);
        for (_, open) in flowing.chain(&mut opened.reported) {
            open.read_until(|seen| has(seen, "\"content\""))
                .expect("content");
        }
        // The provider has the others as well.
        wait::until(
            Duration::from_secs(10),
            "every request at the provider",
            || (stack.served().len() == REACHED).then_some(()),
        );
        opened
    }
}

/// The text that an answer, whole or cut, brought to its client.
fn text_of(answer: &Answer) -> String {
    let event = |line: &str| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok();
    let delta = |event: Value| {
        let content = event.pointer("/choices/0/delta/content")?;
        content.as_str().map(str::to_owned)
    };
    let text = answer.text();
    text.lines().filter_map(event).filter_map(delta).collect()
}

fn only_usage(record: &UsageRecord) -> &Usage {
    let attempt = record.attempts.last().expect("an attempt");
    attempt.usage.as_ref().expect("usage")
}

fn assert_open_at_the_crash(stored: &Stored, attempts: usize) {
    let record = &stored.record;
    let id = &record.request_id;
    assert_eq!(record.end(), End::Crash, "{id}");
    assert_eq!(record.attempts.len(), attempts, "{id}");
    let caller = record.caller.as_ref().expect("a caller");
    assert_eq!(caller.team, "demo", "{id}");
    assert!(record.admitted_at_us > 0, "{id}");
}

fn assert_estimated(stored: &Stored, seen: &Answer) {
    let record = &stored.record;
    let id = &record.request_id;
    let attempt = record.attempts.last().expect("an attempt");
    assert_eq!(attempt.verdict(), Verdict::Unknown, "{id}");
    assert_eq!((record.status, attempt.status), (200, 200), "{id}");
    assert!(attempt.first_content_us > 0, "{id}");
    let usage = only_usage(record);
    assert_eq!(usage.source(), UsageSource::Estimated, "{id}");
    assert_eq!(usage.method, "bytes/4", "{id}");
    // All that the client saw was counted, and at most what was on its way to it besides.
    let (seen, counted) = (
        text_of(seen).len(),
        usize::try_from(usage.output * 4).expect("fits"),
    );
    assert!(
        seen > 0 && (seen..=seen + 4 * CHUNK_BYTES).contains(&counted),
        "{id}: {seen} {counted}"
    );
}

/// Every exchange is in exactly one record, as it was when Envoy died.
fn assert_recorded(stack: &Stack, opened: Opened, deadline: Duration) {
    let Opened {
        before_head,
        streaming,
        retried,
        reported,
        settled,
    } = opened;
    let record = |id: &String| stack.record_within(deadline, id);
    for (id, open) in before_head {
        let stored = record(&id);
        assert_open_at_the_crash(&stored, 1);
        let usage = only_usage(&stored.record);
        assert_eq!(usage.source(), UsageSource::Estimated, "{id}");
        let prompt = u64::try_from(PROMPT.len().div_ceil(4)).expect("fits");
        assert_eq!(
            (usage.input, usage.output, stored.record.status),
            (prompt, 0, 0),
            "{id}"
        );
        assert!(open.finish().is_err(), "{id}");
    }
    for (id, open) in streaming {
        let stored = record(&id);
        assert_open_at_the_crash(&stored, 1);
        assert_estimated(&stored, &open.finish().expect("a cut answer"));
        // The test's price book knows this target's prices.
        let costs = &stored.record.attempts.first().expect("an attempt").costs;
        assert!(
            !costs.is_empty() && costs.iter().all(|cost| cost.cost_nusd > Some(0)),
            "{id}"
        );
    }
    for (id, open) in retried {
        let stored = record(&id);
        assert_open_at_the_crash(&stored, 2);
        let first = stored.record.attempts.first().expect("an attempt");
        assert_eq!(
            (first.verdict(), first.status),
            (Verdict::NotBilled, 500),
            "{id}"
        );
        assert_eq!(first.reason, "status", "{id}");
        assert_estimated(&stored, &open.finish().expect("a cut answer"));
    }
    for (id, _) in reported {
        let stored = record(&id);
        assert_open_at_the_crash(&stored, 1);
        let usage = only_usage(&stored.record);
        assert_eq!(usage.source(), UsageSource::Reported, "{id}");
        assert!(usage.input > 0, "{id}");
    }
    for id in settled {
        assert_eq!(record(&id).record.end(), End::Complete, "{id}");
    }
    assert_attempts_match(stack);
}

/// The ledger's attempts are the provider's.
fn assert_attempts_match(stack: &Stack) {
    let mut truth: BTreeMap<String, usize> = BTreeMap::new();
    for served in stack.served() {
        *truth.entry(served.request_id).or_default() += 1;
    }
    let mut ledger: BTreeMap<String, usize> = BTreeMap::new();
    for stored in stack.records() {
        let attempts = stored.record.attempts.len();
        let before = ledger.insert(stored.record.request_id.clone(), attempts);
        assert_eq!(before, None, "{} counts twice", stored.record.request_id);
    }
    assert_eq!(truth, ledger);
}

#[test]
fn an_envoy_that_is_killed_and_started_again_records_what_was_open() {
    let options = Options {
        concurrency: 2,
        ..Options::default()
    };
    let mut stack = Stack::start(&options);
    let key = stack.key("killed");
    let opened = Opened::start(&stack, &key);
    let mut envoy = stack.envoys.remove(0);
    envoy.process.stop(Ask::Kill, Duration::from_secs(5));
    stack
        .envoys
        .push(stack.start_envoy("envoy-0", &options).expect("it starts"));
    assert_recorded(&stack, opened, RECOVERED);

    // Killed once more, with nothing open: nothing is recorded again.
    let before = stack.records().len();
    let mut envoy = stack.envoys.remove(0);
    envoy.process.stop(Ask::Kill, Duration::from_secs(5));
    stack
        .envoys
        .push(stack.start_envoy("envoy-0", &options).expect("it starts"));
    let port = stack.port();
    let answer = request(&key, "small", "afterwards", false, &json!({})).send(port);
    assert_eq!(answer.expect("an answer").status, 200);
    stack.record_within(RECOVERED, "afterwards");
    assert_eq!(stack.records().len(), before + 1);
}

#[test]
fn another_envoy_on_the_same_state_directory_records_what_was_open() {
    let options = Options::default();
    let mut stack = Stack::start(&options);
    let key = stack.key("adopted");
    let shared = stack.envoys.first().expect("an Envoy").state_dir.clone();
    let other = stack.state.envoy("envoy-1");
    std::fs::create_dir_all(&other).expect("made");
    std::os::unix::fs::symlink(&shared, other.join("state")).expect("linked");
    stack
        .envoys
        .push(stack.start_envoy("envoy-1", &options).expect("it starts"));
    let opened = Opened::start(&stack, &key);
    let mut envoy = stack.envoys.remove(0);
    envoy.process.stop(Ask::Kill, Duration::from_secs(5));
    assert_recorded(&stack, opened, ADOPTED);
}
