//! What an attempt costs that no provider saw: nothing; and what one costs that may have been seen.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use proto::metering::v1::{Attempt, End, UsageRecord, UsageSource, Verdict};
use serde_json::{Value, json};
use tests::{
    http::{Answer, Request},
    stack::{Options, Stack},
    wait,
};
use xtask::ports::free_port;

/// No client may be left waiting longer; connecting takes 5 s at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// A port on loopback that takes no connection and refuses none.
struct DeafPort {
    address: SocketAddr,
    /// The listener, and the connections that fill its queue.
    _held: (TcpListener, Vec<TcpStream>),
}

impl DeafPort {
    fn open() -> Self {
        let runtime = tests::ledger::runtime().expect("a runtime");
        let listener = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
            socket
                .bind(SocketAddr::from(([127, 0, 0, 1], 0)))
                .expect("a port");
            let listener = socket.listen(1).expect("a listener");
            listener.into_std().expect("a listener")
        });
        let address = listener.local_addr().expect("an address");
        let mut queued = Vec::new();
        while let Ok(one) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
            queued.push(one);
            assert!(queued.len() < 100, "the queue never fills");
        }
        Self {
            address,
            _held: (listener, queued),
        }
    }
}

/// Providers at `url`s, each with a model of its name.
fn apply(stack: &Stack, providers: &[(&str, String)], more: &str) {
    let documents: String = providers
        .iter()
        .map(|(id, url)| {
            format!(
                "kind: Provider\nid: {id}\nspec:\n  baseUrl: {url}\n  credentialPlace: none\n---\n\
                 kind: Model\nid: {id}\nspec:\n  targets:\n  - provider: {id}\n---\n"
            )
        })
        .collect();
    stack.apply(&format!("{documents}{more}"));
}

fn chat(key: &str, model: &str) -> Request {
    let body = json!({"model": model, "messages": [{"role": "user", "content": "Hello"}]});
    Request::chat(key, &body)
}

fn send(stack: &Stack, request: &Request) -> Answer {
    let asked = Instant::now();
    let answer = request.send(stack.port()).expect("an answer");
    assert!(asked.elapsed() < PATIENCE, "the client waits too long");
    assert!(answer.complete, "{}", answer.text());
    answer
}

fn record_of(stack: &Stack, answer: &Answer) -> UsageRecord {
    let id = answer.header("x-request-id").expect("a request id");
    stack.record(id).record
}

fn seen(record: &UsageRecord) -> Vec<(Verdict, UsageSource, u64)> {
    let tokens = |attempt: &Attempt| {
        let usage = attempt.usage.as_ref().expect("usage");
        (
            attempt.verdict(),
            usage.source(),
            usage.input + usage.output,
        )
    };
    record.attempts.iter().map(tokens).collect()
}

/// Requests that wait for a connection to this provider.
fn connecting(stack: &Stack, provider: &str) -> u64 {
    let admin = stack.envoys.first().expect("an Envoy").admin_port;
    let filter =
        format!("/stats?filter=cluster.turnpike-provider-{provider}.upstream_rq_pending_active");
    let stats = Request::new("GET", &filter)
        .send(admin)
        .expect("stats")
        .text();
    let value = stats.trim().rsplit(' ').next().unwrap_or_default();
    value.parse().unwrap_or_default()
}

const FREE: (Verdict, UsageSource, u64) = (Verdict::NotBilled, UsageSource::None, 0);

fn closed_url() -> String {
    format!("http://127.0.0.1:{}/v1", free_port().expect("a port"))
}

#[test]
fn an_attempt_that_no_provider_saw_is_not_billed() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("unconnected");
    let deaf = DeafPort::open();
    // Plain HTTP behind `https`: the connection is made, and TLS never is.
    let no_tls = format!("https://127.0.0.1:{}/v1", stack.provider.port);
    apply(
        &stack,
        &[
            ("closed", closed_url()),
            ("deaf", format!("http://{}/v1", deaf.address)),
            ("no-tls", no_tls),
        ],
        "",
    );
    for (model, status, code) in [
        ("closed", 503, "provider_unreachable"),
        ("no-tls", 503, "provider_unreachable"),
        ("deaf", 503, "provider_unreachable"),
    ] {
        let answer = send(&stack, &chat(&key, model));
        assert_eq!(answer.status, status, "{model}: {}", answer.text());
        assert_eq!(answer.error_code(), code, "{model}");
        let record = record_of(&stack, &answer);
        assert_eq!(seen(&record), [FREE], "{model}");
        assert_eq!(record.end(), End::ProviderFailed, "{model}");
        assert_eq!(record.error_code, code, "{model}");
    }
    let waiting = chat(&key, "deaf")
        .header("x-request-id", "left-while-connecting")
        .open(stack.port())
        .expect("a connection");
    wait::until(PATIENCE, "an attempt to connect", || {
        (connecting(&stack, "deaf") > 0).then_some(())
    });
    waiting.abort();
    let record = stack.record("left-while-connecting").record;
    assert_eq!(seen(&record), [FREE], "a client that left meanwhile");
    assert_eq!(record.end(), End::ClientGone);
    assert!(stack.served().is_empty(), "the provider saw none of them");
}

#[test]
fn a_target_that_cannot_be_reached_is_followed_by_the_next() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("followed");
    apply(
        &stack,
        &[("closed", closed_url())],
        "kind: Model\nid: closed-first\nspec:\n  targets:\n  - provider: closed\n  - provider: demo\n    upstreamModel: second\n---\n\
         kind: Model\nid: closed-last\nspec:\n  targets:\n  - provider: demo\n    upstreamModel: first\n  - provider: closed\n",
    );
    let answer = send(&stack, &chat(&key, "closed-first"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let record = record_of(&stack, &answer);
    let [first, second] = &record.attempts[..] else {
        panic!("{record:#?}");
    };
    assert_eq!(seen(&record)[0], FREE);
    assert_eq!(
        (first.provider.as_str(), first.reason.as_str()),
        ("closed", "unconnected")
    );
    assert_eq!(
        (
            second.verdict(),
            second.usage.as_ref().map(|usage| usage.source())
        ),
        (Verdict::Billed, Some(UsageSource::Reported))
    );
    assert_eq!(record.end(), End::Complete);

    let script = json!({"status": 503, "error_body": {"error": {"message": "full", "type": "server_error"}}});
    let answer = send(&stack, &chat(&key, "closed-last").script(&script));
    assert_eq!((answer.status, message(&answer)), (503, json!("full")));
    assert_eq!(seen(&record_of(&stack, &answer)), [FREE, FREE]);
}

fn message(answer: &Answer) -> Value {
    let json = answer.json();
    json.pointer("/error/message").cloned().unwrap_or_default()
}

#[test]
fn an_attempt_that_a_provider_may_have_seen_is_charged_an_estimate() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("seen");
    apply(
        &stack,
        &[],
        "kind: Model\nid: hasty\nspec:\n  targets:\n  - provider: demo\n    upstreamModel: slow\n    firstTokenTimeoutMs: 300\n",
    );
    let cut = json!({"cut_before_headers": true, "cut": "rst"});
    for (model, script, status, code) in [
        ("small", &cut, 502, "provider_reset"),
        ("hasty", &json!({"delay_ms": 5000}), 504, "provider_timeout"),
    ] {
        let answer = send(&stack, &chat(&key, model).script(script));
        assert_eq!(
            (answer.status, answer.error_code().as_str()),
            (status, code)
        );
        let record = record_of(&stack, &answer);
        let [(verdict, source, tokens)] = seen(&record)[..] else {
            panic!("{record:#?}");
        };
        assert_eq!(
            (verdict, source),
            (Verdict::Unknown, UsageSource::Estimated),
            "{code}"
        );
        assert!(tokens > 0, "{code}");
        assert_eq!(record.end(), End::ProviderFailed);
    }
    // The same on a retry, where another hook learns of it.
    let answer = send(&stack, &chat(&key, "pair").script(&json!([cut, {}])));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let record = record_of(&stack, &answer);
    let verdicts: Vec<Verdict> = record.attempts.iter().map(Attempt::verdict).collect();
    assert_eq!(verdicts, [Verdict::Unknown, Verdict::Billed]);
    wait::until(PATIENCE, "the provider's own account", || {
        (stack.served().len() == 4).then_some(())
    });
}
