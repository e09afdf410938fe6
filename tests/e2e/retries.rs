//! A plan of several attempts goes on to the next target, and its one record has them all.

use proto::metering::v1::Verdict;
use serde_json::json;
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
