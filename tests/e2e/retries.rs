//! A plan of several attempts goes on to the next target, and its one record has them all.

use proto::metering::v1::Verdict;
use serde_json::{Value, json};
use tests::{
    http::Request,
    stack::{Options, Stack},
};

#[test]
fn a_failed_target_is_followed_by_the_next_in_one_record() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("retries");
    for stream in [false, true] {
        let body = json!({
            "model": "pair", "stream": stream,
            "messages": [{"role": "user", "content": "Hello"}],
        });
        let answer = Request::chat(&key, &body)
            .script(&json!([{"status": 503}, {}]))
            .send(stack.port())
            .expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-turnpike-attempts"), Some("2"));
        assert_eq!(answer.header("x-turnpike-target"), Some("demo/second"));
        let id = answer.header("x-request-id").expect("a request id");
        let record = stack.record(id).record;
        let seen: Vec<_> = record
            .attempts
            .iter()
            .map(|attempt| {
                (
                    attempt.upstream_model.as_str(),
                    attempt.status,
                    attempt.verdict(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("first", 503, Verdict::NotBilled),
                ("second", 200, Verdict::Billed)
            ]
        );
    }
}

#[test]
fn a_plan_without_a_live_target_ends_at_the_stop_with_our_own_error() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("stop");
    stack.apply(
        "kind: Provider\nid: gone\nspec:\n  baseUrl: http://nothing.invalid/v1\n  credentialPlace: none\n---\n\
         kind: Model\nid: gone\nspec:\n  targets:\n  - provider: gone\n  - provider: gone\n    upstreamModel: other\n",
    );
    let body = json!({"model": "gone", "messages": [{"role": "user", "content": "Hello"}]});
    let answer = Request::chat(&key, &body)
        .send(stack.port())
        .expect("an answer");
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.error_code(), "vendors_unavailable");
    assert!(answer.header("retry-after").is_some());
    assert!(stack.served().is_empty());
}

#[test]
fn when_every_target_fails_the_client_gets_the_last_error() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("all-fail");
    let body = json!({"model": "pair", "messages": [{"role": "user", "content": "Hello"}]});
    let answer = Request::chat(&key, &body)
        .script(&json!({"status": 500}))
        .send(stack.port())
        .expect("an answer");
    assert_eq!(answer.status, 500, "{}", answer.text());
    assert!(answer.json().pointer("/error/message").is_some());
    let id = answer.header("x-request-id").expect("a request id");
    assert_eq!(stack.record(id).record.attempts.len(), 2);
    assert_eq!(stack.served().len(), 2);
}

#[test]
fn the_stop_passes_on_what_the_provider_before_it_said() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("stop-on-retry");
    stack.apply(
        "kind: Provider\nid: gone\nspec:\n  baseUrl: http://nothing.invalid/v1\n  credentialPlace: none\n---\n\
         kind: Model\nid: half\nspec:\n  targets:\n  - provider: demo\n    upstreamModel: first\n  - provider: gone\n",
    );
    let body = json!({"model": "half", "messages": [{"role": "user", "content": "Hello"}]});
    let full = json!({"error": {"message": "all seats are taken", "type": "server_error"}});
    for (script, status, code, words) in [
        (
            json!({"status": 503, "error_body": full}),
            503,
            "provider_error",
            "all seats are taken",
        ),
        (
            json!({"status": 401}),
            502,
            "provider_credential_rejected",
            "credential",
        ),
        // The last: the target is not asked again before it says.
        (
            json!({"status": 429, "error_body": "slow down", "retry_after": "7"}),
            429,
            "provider_error",
            "slow down",
        ),
    ] {
        let answer = Request::chat(&key, &body)
            .script(&script)
            .send(stack.port())
            .expect("an answer");
        assert!(answer.complete);
        assert_eq!(answer.status, status, "{}", answer.text());
        let json = answer.json();
        let message = json.pointer("/error/message").and_then(Value::as_str);
        assert!(message.is_some_and(|text| text.contains(words)), "{json}");
        assert_eq!(
            answer.header("retry-after"),
            (status == 429).then_some("7"),
            "{status}"
        );
        let id = answer.header("x-request-id").expect("a request id");
        let record = stack.record(id).record;
        assert_eq!(record.error_code, code);
        let [attempt] = &record.attempts[..] else {
            panic!("{record:#?}");
        };
        assert_eq!(attempt.verdict(), Verdict::NotBilled);
        assert_eq!(attempt.reason, "status");
    }
}

#[test]
fn an_error_is_left_for_the_next_target_whatever_its_body_looks_like() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("leaving");
    // More of it than is kept.
    let long = "x".repeat(200 << 10);
    for first in [
        json!({"status": 503}),
        json!({"status": 503, "error_body": ""}),
        json!({"status": 500, "error_body": long}),
        json!({"status": 529, "transfer": "close"}),
        json!({"status": 429, "chunk_delay_ms": 20}),
        json!({"status": 401, "error_body": ""}),
    ] {
        for _ in 0..20 {
            // In the body: the long one is too long for a header.
            let body = json!({
                "model": "pair",
                "messages": [{"role": "user", "content": "Hello"}],
                "metadata": {"provider_script": json!([first, {}]).to_string()},
            });
            let answer = Request::chat(&key, &body)
                .send(stack.port())
                .expect("an answer");
            let what = first.get("status");
            assert_eq!(answer.status, 200, "{what:?}: {}", answer.text());
            assert!(answer.complete, "{what:?}");
            assert_eq!(answer.header("x-turnpike-attempts"), Some("2"), "{what:?}");
        }
    }
    let envoy = stack.envoys.first().expect("an Envoy").process.pid();
    let alive = std::fs::exists(format!("/proc/{envoy}")).expect("a look at /proc");
    assert!(alive, "the same Envoy serves");
}
