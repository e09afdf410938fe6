//! What cannot be answered is refused in the client's own format, and makes no record.

use std::time::{Duration, Instant};

use proto::metering::v1::Verdict;
use serde_json::{Value, json};
use tests::{
    http::{Answer, Request},
    stack::{Options, Stack},
};
use xtask::{
    http,
    ports::free_port,
    stack::{Envoy, EnvoyOptions, Tokens, Variation},
};

fn chat(model: &Value) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
}

/// What is asked, how, and the status it gets.
fn refused(key: &str, narrow: &str) -> Vec<(&'static str, Request, u16)> {
    let small = chat(&json!("small"));
    let mut wrong = key.to_owned();
    let last = if wrong.pop() == Some('0') { '1' } else { '0' };
    wrong.push(last);
    vec![
        (
            "no key",
            Request::new("POST", "/v1/chat/completions").json(&small),
            401,
        ),
        ("a key with a typo", Request::chat(&wrong, &small), 401),
        (
            "an unknown key",
            Request::chat("sk-test-unknown-key", &small),
            401,
        ),
        (
            "a model that is not allowed",
            Request::chat(narrow, &small),
            403,
        ),
        (
            "an unknown model",
            Request::chat(key, &chat(&json!("none"))),
            404,
        ),
        ("an empty model", Request::chat(key, &chat(&json!(""))), 400),
        (
            "null for a model",
            Request::chat(key, &chat(&Value::Null)),
            400,
        ),
        (
            "an unknown path",
            Request::new("POST", "/v1/files").key(key).json(&small),
            404,
        ),
        (
            "broken JSON",
            Request::chat(key, &small).body(b"{\"model\": "),
            400,
        ),
    ]
}

#[test]
fn refusals_have_the_status_and_code_that_clients_expect() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("any");
    let narrow = stack.turnpike(&[
        "keys", "create", "narrow", "--team", "demo", "--models", "pair", "--wait",
    ]);
    let narrow = narrow.trim();
    let port = stack.port();
    for (what, request, status) in refused(&key, narrow) {
        let answer = request.send(port).expect("an answer");
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        let error = answer.json();
        for field in ["message", "type", "param", "code"] {
            assert!(
                error.pointer(&format!("/error/{field}")).is_some(),
                "{what}: {error}"
            );
        }
        assert!(
            answer.header("x-request-id").is_some(),
            "{what} has no request id"
        );
        assert!(
            !answer.text().contains("sk-test-unknown-key"),
            "{what} shows a key"
        );
    }
    assert!(
        stack.served().is_empty(),
        "nothing of it reaches the provider"
    );
    assert!(stack.records().is_empty(), "and nothing is in the ledger");
}

/// Longer than any answer takes here; a client that waits for a body that never comes waits longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// An error in OpenAI's shape, whole and in time.
fn send_and_check(stack: &Stack, what: &str, request: &Request) -> Answer {
    let asked = Instant::now();
    let answer = request.send(stack.port()).expect("an answer");
    assert!(
        asked.elapsed() < PATIENCE,
        "{what} leaves the client waiting"
    );
    assert!(answer.complete, "{what}");
    assert_eq!(
        answer.header("content-type"),
        Some("application/json"),
        "{what}"
    );
    let error = answer.json();
    let message = error.pointer("/error/message").and_then(Value::as_str);
    assert!(
        message.is_some_and(|text| !text.is_empty()),
        "{what}: {error}"
    );
    answer
}

#[test]
fn an_error_without_a_body_reaches_the_client_with_one() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("bodiless");
    for (model, given, status) in [
        ("small", 503, 503),
        ("small", 429, 429),
        ("small", 401, 502),
        ("small", 404, 502),
        ("pair", 500, 500),
    ] {
        let what = format!("{model}, {given}");
        let request = Request::chat(&key, &chat(&json!(model)))
            .script(&json!({"status": given, "error_body": ""}));
        let answer = send_and_check(&stack, &what, &request);
        assert_eq!(answer.status, status, "{what}");
        let id = answer.header("x-request-id").expect("a request id");
        let record = stack.record(id).record;
        assert_eq!(record.status, u32::from(status), "{what}");
        assert!(
            record
                .attempts
                .iter()
                .all(|attempt| attempt.verdict() == Verdict::NotBilled),
            "{what}"
        );
    }
    let streamed = json!({"model": "small", "stream": true, "messages": []});
    let request = Request::chat(&key, &streamed).script(&json!({"status": 503, "error_body": ""}));
    assert_eq!(send_and_check(&stack, "a stream", &request).status, 503);
}

/// A stack whose one Envoy does not know the cluster where plans end.
fn stack_without_the_stop() -> Stack {
    let mut stack = Stack::start(&Options {
        envoys: 0,
        ..Options::default()
    });
    let forget_the_stop = |bootstrap: &mut Value| {
        let clusters = bootstrap.pointer_mut("/static_resources/clusters");
        let clusters = clusters.and_then(Value::as_array_mut).expect("clusters");
        clusters.retain(|cluster| cluster.get("name") != Some(&json!("turnpike_stop")));
    };
    let options = EnvoyOptions {
        name: "envoy-0".to_owned(),
        gateway_port: free_port().expect("a port"),
        admin_port: free_port().expect("a port"),
        control_plane: stack.control_plane.access.url(),
        tokens: Tokens::open(&stack.state).expect("tokens"),
        concurrency: 1,
        start_deadline_ms: 15_000,
        log_level: "info".to_owned(),
    };
    let variation = Variation {
        bootstrap: Some(&forget_the_stop),
        ..Variation::default()
    };
    let mut envoy =
        Envoy::spawn(&stack.programs, &stack.state, &options, &variation).expect("Envoy starts");
    let port = envoy.gateway_port;
    let ready = envoy
        .process
        .wait_ready(Duration::from_secs(30), || http::is_ok(port, "/healthz"));
    stack.envoys.push(envoy);
    ready.expect("Envoy serves");
    stack
}

#[test]
fn a_reply_of_envoys_without_a_body_reaches_the_client_with_ours() {
    let stack = stack_without_the_stop();
    let key = stack.key("no-cluster");
    stack.apply(
        "kind: Provider\nid: gone\nspec:\n  baseUrl: http://nothing.invalid/v1\n  credentialPlace: none\n---\n\
         kind: Model\nid: gone\nspec:\n  targets:\n  - provider: gone\n",
    );
    // To a cluster that it does not know Envoy has nothing to say but 503.
    let request = Request::chat(&key, &chat(&json!("gone")));
    let answer = send_and_check(&stack, "no cluster", &request);
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.error_code(), "vendors_unavailable");
    let next = Request::chat(&key, &chat(&json!("small"))).send(stack.port());
    assert_eq!(next.expect("an answer").status, 200, "and goes on");
}

#[test]
fn where_a_request_comes_from_does_not_reach_the_provider() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("hops");
    for model in ["small", "pair"] {
        let request = Request::chat(&key, &chat(&json!(model)))
            .script(&json!([{"status": if model == "pair" { 503 } else { 200 }}, {}]))
            .header("x-request-id", &format!("hops-{model}"))
            .header("x-forwarded-for", "203.0.113.7")
            .header("x-forwarded-host", "gateway.example")
            .header("forwarded", "for=203.0.113.7")
            .header("via", "1.1 office")
            .header("x-real-ip", "203.0.113.7")
            .header("x-envoy-max-retries", "7")
            .header("x-turnpike-anything", "1");
        let answer = request.send(stack.port()).expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let served = stack.served();
    assert_eq!(served.len(), 3, "one, and two attempts of the pair");
    for one in served {
        let headers = one.entry.get("headers").and_then(Value::as_array);
        let mut names: Vec<&str> = headers
            .expect("headers")
            .iter()
            .filter_map(|pair| pair.get(0).and_then(Value::as_str))
            .filter(|name| *name != "transfer-encoding")
            .collect();
        names.sort_unstable();
        // The whole list: what is new in it must be meant for providers.
        assert_eq!(
            names,
            [
                "accept-encoding",
                "content-length",
                "content-type",
                "host",
                "x-provider-script",
                "x-request-id"
            ],
            "{}",
            one.request_id
        );
    }
}
