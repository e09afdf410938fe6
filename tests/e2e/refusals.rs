//! What cannot be answered is refused in the client's own format, and makes no record.

use serde_json::{Value, json};
use tests::{
    http::Request,
    stack::{Options, Stack},
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
