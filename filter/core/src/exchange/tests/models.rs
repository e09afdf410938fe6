//! `GET /v1/models`, `GET /v1/models/{id}` and `GET /healthz`.

use super::shell::{Seen, Shell, chat_head};
use crate::fixture::*;
use crate::host::NodeState;

#[test]
fn the_model_list_shows_what_the_key_may_use() {
    let mut resources = resources();
    resources.virtual_keys.get_mut("alpha").unwrap().models = vec!["pair".into(), "acme/*".into()];
    resources.teams.get_mut("red").unwrap().models = vec!["acme/*".into(), "small-1".into()];
    for id in ["acme/small", "acme/deep/er"] {
        resources
            .models
            .insert(id.into(), model(id, vec![target("a", "")]));
    }
    resources.models.get_mut("acme/deep/er").unwrap().disabled = true;
    let shell = Shell::with(&resources);
    let ids = |seen: &Seen| -> Vec<String> {
        let list: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
        assert_eq!(list["object"], "list");
        let data = list["data"].as_array().unwrap();
        data.iter()
            .map(|entry| entry["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let list = chat_head(&[(":method", "GET"), (":path", "/v1/models")]);
    let seen = shell.run(&list, b"", &[]);
    assert_eq!(
        (seen.status, ids(&seen)),
        (200, vec!["acme/small".to_owned()])
    );
    assert_eq!(
        (seen.settled.sample.client_api, seen.settled.sample.reason),
        ("openai.models", "ok")
    );
    let beta = chat_head(&[
        (":method", "GET"),
        (":path", "/v1/models?limit=1"),
        ("authorization", "Bearer vk-test-beta"),
    ]);
    assert_eq!(
        ids(&shell.run(&beta, b"", &[])),
        ["acme/small", "fast", "pair", "small-1"]
    );

    for (path, status, code) in [
        ("/v1/models/acme/small", 200, ""),
        ("/v1/models/acme%2Fsmall", 200, ""),
        ("/v1/models/acme%2fdeep/er", 404, "model_not_found"),
        ("/v1/models/pair", 403, "model_not_allowed"),
        ("/v1/models/no-such", 403, "model_not_allowed"),
        ("/v1/models/%zz", 404, "unknown_url"),
    ] {
        let seen = shell.run(&chat_head(&[(":method", "GET"), (":path", path)]), b"", &[]);
        assert_eq!(
            (seen.status, seen.code().as_str()),
            (status, code),
            "{path}"
        );
    }
}

#[test]
fn health_needs_no_key_and_no_config() {
    let mut shell = Shell::with(&Default::default());
    shell.node = NodeState {
        in_sync: false,
        stale: true,
    };
    let seen = shell.run(&[(":method", "GET"), (":path", "/healthz")], b"", &[]);
    assert_eq!((seen.status, seen.text()), (200, "ok"));
    assert!(seen.settled.record.is_none());
}
