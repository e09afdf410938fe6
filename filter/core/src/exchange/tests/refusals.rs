//! Each refusal of a request, by status, code and shape.

use proto::config::v1::{KeySecret, Settings};

use super::shell::{HELD, Play, Seen, Shell, chat_head};
use crate::config::Resources;
use crate::fixture::*;
use crate::host::NodeState;
use crate::key;

const BODY: &str = r#"{"model":"small-1","messages":[{"role":"user","content":"x"}]}"#;

fn refused(shell: &Shell, head: &[(&str, &str)], body: &str) -> Seen {
    let seen = shell.run(head, body.as_bytes(), &[]);
    assert!(
        seen.providers.is_empty(),
        "a refused request reaches no provider"
    );
    assert!(
        seen.settled.record.is_none(),
        "a refused request makes no record"
    );
    assert_eq!(seen.headers["content-type"], "application/json");
    assert!(!seen.headers["x-request-id"].is_empty());
    let error = seen.error();
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty())
    );
    assert!(error["type"].is_string());
    assert_eq!(
        seen.settled.sample.reason,
        seen.settled.log.value("error").unwrap()
    );
    let is_retryable = seen.headers.contains_key("retry-after");
    assert_eq!(is_retryable, matches!(seen.status, 503), "{}", seen.status);
    assert_ne!(
        is_retryable,
        seen.headers
            .get("x-should-retry")
            .is_some_and(|no| no == "false")
    );
    seen
}

#[track_caller]
fn assert_refused(shell: &Shell, head: &[(&str, &str)], body: &str, status: u16, code: &str) {
    let seen = refused(shell, head, body);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (status, code),
        "{}",
        seen.text()
    );
}

#[test]
fn what_is_not_an_endpoint_is_404_and_a_wrong_method_405() {
    let shell = Shell::new();
    for path in [
        "/",
        "/v1",
        "/v1/chat/completions/",
        "/v1//chat/completions",
        "/v1/Chat/completions",
        "/v1/chat%2Fcompletions",
        "/v1/audio/speech",
        "/v1/models/",
        "/healthz/",
        "",
    ] {
        assert_refused(
            &shell,
            &chat_head(&[(":path", path)]),
            BODY,
            404,
            "unknown_url",
        );
    }
    for (method, path, allow) in [
        ("GET", "/v1/chat/completions", "POST"),
        ("OPTIONS", "/v1/chat/completions", "POST"),
        ("POST", "/v1/models", "GET"),
        ("DELETE", "/v1/models/small-1", "GET"),
        ("POST", "/healthz", "GET"),
    ] {
        let head = chat_head(&[(":method", method), (":path", path)]);
        let seen = refused(&shell, &head, BODY);
        assert_eq!(
            (seen.status, seen.code().as_str()),
            (405, "method_not_allowed"),
            "{path}"
        );
        assert_eq!(seen.headers["allow"], allow);
    }
}

#[test]
fn a_missing_key_and_several_different_keys_are_401() {
    let shell = Shell::new();
    for value in [
        "",
        "Bearer ",
        "Basic dXNlcjpwYXNz",
        "vk-test-alpha",
        "Bearer",
    ] {
        let head = chat_head(&[("authorization", value)]);
        assert_refused(&shell, &head, BODY, 401, "missing_api_key");
    }
    let head = chat_head(&[("x-api-key", "vk-test-beta")]);
    assert_refused(&shell, &head, BODY, 401, "several_api_keys");
    let head = chat_head(&[(":path", "/v1/chat/completions?key=vk-test-beta")]);
    assert_refused(&shell, &head, BODY, 401, "several_api_keys");
}

#[test]
fn an_unknown_key_is_401_in_sync_and_503_otherwise() {
    let mut shell = Shell::new();
    let head = chat_head(&[("authorization", "Bearer CANARY-client-key-9f2")]);
    let seen = refused(&shell, &head, BODY);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (401, "invalid_api_key")
    );
    assert!(!seen.text().contains("CANARY"), "a wrong key is not echoed");
    assert!(!format!("{:?}", seen.settled).contains("CANARY"));
    shell.node = NodeState {
        in_sync: false,
        stale: false,
    };
    assert_refused(&shell, &head, BODY, 503, "config_unavailable");
    assert_eq!(
        shell.chat(BODY, &[Play::json(200, "{}")]).status,
        200,
        "a known key still works"
    );
}

#[test]
fn a_stale_node_refuses_every_key_but_one_that_was_never_minted() {
    let mut shell = Shell::new();
    shell.node = NodeState {
        in_sync: false,
        stale: true,
    };
    assert_refused(&shell, &chat_head(&[]), BODY, 503, "config_unavailable");
    let bad = format!("Bearer {}x", key::mint("k7f3a9q2", &[9; 32]));
    let head = chat_head(&[("authorization", &bad)]);
    assert_refused(&shell, &head, BODY, 401, "invalid_api_key");
}

fn with_alpha(change: impl FnOnce(&mut Resources)) -> Shell {
    let mut resources = resources();
    change(&mut resources);
    Shell::with(&resources)
}

#[test]
fn disabled_and_expired_keys_are_401() {
    // The shell's clock starts at 1,750,000,000.
    let past = 1_749_999_999;
    let alpha = "alpha";
    for shell in [
        with_alpha(|all| all.virtual_keys.get_mut(alpha).unwrap().disabled = true),
        with_alpha(|all| all.virtual_keys.get_mut(alpha).unwrap().expires_at_s = past),
        with_alpha(|all| {
            all.virtual_keys.get_mut(alpha).unwrap().secrets[0].expires_at_s = past;
        }),
        with_alpha(|all| all.teams.get_mut("red").unwrap().disabled = true),
    ] {
        assert_refused(&shell, &chat_head(&[]), BODY, 401, "invalid_api_key");
    }
    let rotated = with_alpha(|all| {
        let secrets = &mut all.virtual_keys.get_mut(alpha).unwrap().secrets;
        secrets[0].expires_at_s = past + 100;
        secrets.push(KeySecret {
            expires_at_s: past,
            ..secret("vk-test-old")
        });
    });
    assert_eq!(rotated.chat(BODY, &[Play::json(200, "{}")]).status, 200);
    let old = chat_head(&[("authorization", "Bearer vk-test-old")]);
    assert_refused(&rotated, &old, BODY, 401, "invalid_api_key");
}

#[test]
fn a_body_that_could_not_be_read_is_refused_before_it_comes() {
    let shell = Shell::new();
    for (name, value, status, code) in [
        (
            "content-type",
            "text/plain",
            415,
            "unsupported_content_type",
        ),
        (
            "content-type",
            "multipart/form-data; boundary=x",
            415,
            "unsupported_content_type",
        ),
        (
            "content-encoding",
            "gzip",
            415,
            "unsupported_content_encoding",
        ),
        ("content-length", "33554433", 413, "request_too_large"),
        (
            "x-turnpike-attributes",
            "no-equals-sign",
            400,
            "invalid_attributes",
        ),
        ("x-turnpike-attributes", "=value", 400, "invalid_attributes"),
        ("x-turnpike-attributes", "a=%zz", 400, "invalid_attributes"),
    ] {
        assert_refused(&shell, &chat_head(&[(name, value)]), BODY, status, code);
    }
    let many = (0..17)
        .map(|at| format!("a{at}=v"))
        .collect::<Vec<_>>()
        .join(",");
    let long = format!("a={}", "v".repeat(1024));
    for attributes in [&many, &long] {
        let head = chat_head(&[("x-turnpike-attributes", attributes)]);
        assert_refused(&shell, &head, BODY, 400, "invalid_attributes");
    }
    for content_type in ["application/json; charset=utf-8", "Application/JSON"] {
        let head = chat_head(&[
            ("content-type", content_type),
            ("content-encoding", "identity"),
        ]);
        let seen = shell.run(&head, BODY.as_bytes(), &[Play::json(200, "{}")]);
        assert_eq!(seen.status, 200, "{content_type}");
    }
}

#[test]
fn a_body_over_the_limit_is_413_when_its_length_was_not_announced() {
    let mut resources = resources();
    let limits = Settings {
        max_request_body_bytes: 100,
        ..Default::default()
    };
    resources.settings = Some(limits);
    let shell = Shell::with(&resources);
    let long = format!("{BODY}{}", " ".repeat(200));
    assert_refused(&shell, &chat_head(&[]), &long, 413, "request_too_large");
    let brim = format!("{BODY}{}", " ".repeat(100 - BODY.len()));
    assert_eq!(shell.chat(&brim, &[Play::json(200, "{}")]).status, 200);
    let over = format!("{brim} ");
    assert_refused(&shell, &chat_head(&[]), &over, 413, "request_too_large");
}

#[test]
fn bodies_over_the_process_cap_are_503() {
    let mut resources = resources();
    resources.settings = Some(Settings {
        max_held_body_bytes: 20,
        ..Default::default()
    });
    let shell = Shell::with(&resources);
    assert_refused(
        &shell,
        &chat_head(&[]),
        BODY,
        503,
        "request_memory_exhausted",
    );
    let _ = HELD.bytes();
}

#[test]
fn a_request_that_is_none_is_400_and_names_the_field() {
    let shell = Shell::new();
    for (body, param) in [
        (r#"{"messages":[]}"#, Some("model")),
        (r#"{"model":null,"messages":[]}"#, Some("model")),
        (r#"{"model":"","messages":[]}"#, Some("model")),
        ("{", None),
        ("[]", None),
        ("", None),
    ] {
        let seen = refused(&shell, &chat_head(&[]), body);
        assert_eq!(seen.status, 400, "{body}");
        assert_eq!(seen.error()["type"], "invalid_request_error");
        assert_eq!(seen.error()["param"].as_str(), param, "{body}");
        assert_eq!(seen.settled.sample.reason, "invalid_request");
    }
}

#[test]
fn an_unknown_model_is_404_and_one_not_allowed_is_403_whether_it_exists_or_not() {
    let shell = with_alpha(|all| {
        all.virtual_keys.get_mut("alpha").unwrap().models = vec!["small-1".into(), "x/*".into()];
    });
    let body = |model: &str| BODY.replace("small-1", model);
    assert_refused(
        &shell,
        &chat_head(&[]),
        &body("pair"),
        403,
        "model_not_allowed",
    );
    assert_refused(
        &shell,
        &chat_head(&[]),
        &body("no-such"),
        403,
        "model_not_allowed",
    );
    assert_refused(
        &shell,
        &chat_head(&[]),
        &body("x/no-such"),
        404,
        "model_not_found",
    );
    let beta = chat_head(&[("authorization", "Bearer vk-test-beta")]);
    for model in ["no-such", "auto:extreme", "AUTO", "x/../small-1"] {
        assert_refused(&shell, &beta, &body(model), 404, "model_not_found");
    }
    let seen = refused(&shell, &beta, &body("no-such"));
    for secret in ["pair", "fast", "vendor-7b", "provider"] {
        assert!(
            !seen.text().contains(secret),
            "an error names no other model"
        );
    }
}

#[test]
fn no_capable_model_is_400_and_a_missing_credential_503() {
    let shell = Shell::new();
    let tools = r#"{"model":"small-1","messages":[],"tools":[{"type":"function","function":{"name":"f"}}]}"#;
    assert_refused(&shell, &chat_head(&[]), tools, 400, "no_capable_model");
    let shell = with_alpha(|all| all.credentials.clear());
    assert_refused(&shell, &chat_head(&[]), BODY, 503, "vendors_unavailable");
}
