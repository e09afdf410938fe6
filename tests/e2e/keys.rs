//! A key works everywhere as soon as `--wait` has returned, and nowhere once it is revoked.

use serde_json::json;
use tests::{
    http::Request,
    stack::{Options, Stack},
};

const KEYS: usize = 100;

#[test]
fn a_new_key_is_answered_on_each_envoy_and_a_revoked_one_is_refused() {
    let stack = Stack::start(&Options {
        envoys: 2,
        ..Options::default()
    });
    let body = json!({"model": "small", "messages": [{"role": "user", "content": "Hello"}]});
    let mut keys = Vec::new();
    for at in 0..KEYS {
        let key = stack.key(&format!("new-{at}"));
        for envoy in &stack.envoys {
            let answer = Request::chat(&key, &body)
                .send(envoy.gateway_port)
                .expect("an answer");
            assert_eq!(answer.status, 200, "key {at}: {}", answer.text());
        }
        keys.push(key);
    }
    for (at, key) in keys.iter().enumerate().take(10) {
        let output = stack
            .turnpike_command(&["keys", "delete", &format!("new-{at}"), "--wait=1"])
            .output()
            .expect("turnpike runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "not on both within 1 s: {said}");
        assert!(said.contains("2 of 2"), "{said}");
        assert!(said.contains(" ms"), "no time in {said}");
        for envoy in &stack.envoys {
            let answer = Request::chat(key, &body)
                .send(envoy.gateway_port)
                .expect("an answer");
            assert_eq!(answer.status, 401, "{}", answer.text());
            assert_eq!(answer.error_code(), "invalid_api_key");
        }
    }
}
