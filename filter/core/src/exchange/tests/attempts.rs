//! More than one attempt: fall-over, the stop, and what each costs.

use proto::config::v1::{Model, OnUnknownUsage, Quirk, Settings};
use proto::metering::v1::{Attempt, End, UsageSource, Verdict};

use super::shell::{Play, Seen, Shell};
use crate::fixture::*;

const PAIR: &str = r#"{"model":"pair","messages":[{"role":"user","content":"x"}]}"#;
const PAIR_STREAM: &str = r#"{"model":"pair","stream":true,"messages":[]}"#;
const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}"#;
const HI: &str = r#"{"choices":[{"index":0,"delta":{"content":"hi"}}]}"#;
const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant"}}]}"#;

fn verdicts(seen: &Seen) -> Vec<(u32, Verdict, UsageSource, &str)> {
    let of = |attempt: &Attempt| -> (u32, Verdict, UsageSource) {
        let usage = attempt.usage.as_ref().unwrap();
        (attempt.number, attempt.verdict(), usage.source())
    };
    let attempts = seen.record().attempts.iter();
    attempts
        .map(|attempt| {
            let (number, verdict, source) = of(attempt);
            (number, verdict, source, attempt.reason.as_str())
        })
        .collect()
}

#[test]
fn the_next_target_gets_the_request_as_if_it_were_the_first() {
    let plays = [Play::json(503, "{}"), Play::json(200, ANSWER)];
    let seen = Shell::new().chat(PAIR, &plays);
    assert_eq!((seen.status, seen.text()), (200, ANSWER));
    let [
        (first_cluster, first, first_body),
        (second_cluster, second, second_body),
    ] = &seen.providers[..]
    else {
        panic!("two attempts");
    };
    assert_eq!(first_cluster, "turnpike-provider-a");
    assert_eq!(second_cluster, "turnpike-provider-b");
    assert_eq!(first["authorization"], format!("Bearer {SECRET_A}"));
    assert_eq!(second["api-key"], SECRET_B);
    assert!(
        !second.contains_key("authorization"),
        "one provider's credential is not shown to another"
    );
    assert_eq!(
        (first[":authority"].as_str(), second[":authority"].as_str()),
        ("a.example", "b.example")
    );
    let body = |model: &str| PAIR.replace("\"pair\"", &format!("\"{model}\""));
    assert_eq!(std::str::from_utf8(first_body).unwrap(), body("pair-at-a"));
    assert_eq!(std::str::from_utf8(second_body).unwrap(), body("pair-at-b"));
    assert_eq!(seen.headers["x-turnpike-target"], "b/pair-at-b");
    assert_eq!(seen.headers["x-turnpike-attempts"], "2");
    assert_eq!(
        verdicts(&seen),
        [
            (1, Verdict::NotBilled, UsageSource::None, "status"),
            (2, Verdict::Billed, UsageSource::Reported, "")
        ]
    );
    assert_eq!(seen.record().end, i32::from(End::Complete));
    assert!(!format!("{:?}", seen.logged).contains("sk-test"));
}

#[test]
fn the_length_is_put_right_again_for_a_target_whose_body_is_not_spliced() {
    let mut resources = resources();
    let targets = vec![target("a", "a-much-longer-name"), target("b", "pair")];
    resources.models.insert(
        "pair".into(),
        Model {
            ..model("pair", targets)
        },
    );
    let seen = Shell::with(&resources).chat(PAIR, &[Play::json(500, ""), Play::json(200, ANSWER)]);
    let [(_, first, first_body), (_, second, second_body)] = &seen.providers[..] else {
        panic!("two attempts");
    };
    assert_eq!(first["content-length"], first_body.len().to_string());
    assert_eq!(second["content-length"], PAIR.len().to_string());
    assert_eq!(second_body, PAIR.as_bytes());
}

#[test]
fn a_lost_attempt_is_not_billed_when_nothing_reached_the_provider_and_unknown_otherwise() {
    for (play, verdict, source, reason) in [
        (
            Play::RefuseConnection,
            Verdict::NotBilled,
            UsageSource::None,
            "unconnected",
        ),
        (
            Play::ResetBeforeHead,
            Verdict::Unknown,
            UsageSource::Estimated,
            "reset",
        ),
        (
            Play::TimeOut,
            Verdict::Unknown,
            UsageSource::Estimated,
            "timeout",
        ),
        (
            Play::json(429, "{}"),
            Verdict::NotBilled,
            UsageSource::None,
            "status",
        ),
        (
            Play::json(401, "{}"),
            Verdict::NotBilled,
            UsageSource::None,
            "status",
        ),
    ] {
        let seen = Shell::new().chat(PAIR, &[play, Play::json(200, ANSWER)]);
        assert_eq!(seen.status, 200, "{reason}");
        assert_eq!(verdicts(&seen)[0], (1, verdict, source, reason));
        assert_eq!(seen.record().error_code, "", "the client got no error");
        assert_eq!(seen.settled.sample.reason, "ok");
    }
}

#[test]
fn a_stream_that_fails_before_content_falls_over_and_the_client_sees_one_stream() {
    let good = Play::stream(&[ROLE, HI, "[DONE]"]);
    for bad in [
        Play::stream(&[ROLE, r#"{"error":{"message":"overloaded"}}"#]),
        Play::stream(&[ROLE]),
        Play::stream(&[ROLE]).cut(),
        Play::stream(&[]),
    ] {
        let seen = Shell::new().chat(PAIR_STREAM, &[bad, good.clone()]);
        assert_eq!(seen.status, 200);
        assert_eq!(
            seen.text(),
            format!("data: {ROLE}\n\ndata: {HI}\n\ndata: [DONE]\n\n")
        );
        assert_eq!(seen.record().attempts.len(), 2);
        assert_eq!(seen.record().end, i32::from(End::Complete));
    }
}

#[test]
fn there_is_no_fall_over_after_content() {
    let cut = Play::stream(&[HI]).cut();
    let seen = Shell::new().chat(PAIR_STREAM, &[cut, Play::json(200, ANSWER)]);
    assert_eq!(seen.providers.len(), 1);
    assert_eq!(seen.record().end, i32::from(End::ProviderCut));
}

#[test]
fn the_last_attempts_own_error_reaches_the_client() {
    let words = r#"{"error":{"message":"second","type":"server_error"}}"#;
    let seen = Shell::new().chat(PAIR, &[Play::json(503, "{}"), Play::json(500, words)]);
    assert_eq!((seen.status, seen.text()), (500, words));
    let seen = Shell::new().chat(&PAIR.replace("pair", "fast"), &[Play::json(500, words)]);
    assert_eq!(
        (seen.status, seen.text()),
        (500, words),
        "a plan of one is never replaced by the stop"
    );
}

#[test]
fn a_target_without_hosts_is_passed_over() {
    let mut shell = Shell::new();
    shell.clusters = ["turnpike-provider-b"].into();
    let seen = shell.chat(PAIR, &[Play::json(200, ANSWER)]);
    assert_eq!(
        (seen.status, seen.providers[0].0.as_str()),
        (200, "turnpike-provider-b")
    );
    assert_eq!(verdicts(&seen).len(), 1);
}

#[test]
fn the_stop_gives_the_most_telling_error() {
    let mut shell = Shell::new();
    shell.clusters.clear();
    let seen = shell.chat(PAIR, &[]);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (503, "vendors_unavailable")
    );
    assert_eq!(seen.headers["retry-after"], "5");
    assert_eq!(seen.record().attempts.len(), 0);
    assert_eq!(seen.record().end, i32::from(End::ProviderFailed));

    shell.clusters = ["turnpike-provider-a"].into();
    for play in [Play::ResetBeforeHead, Play::RefuseConnection, Play::TimeOut] {
        let seen = shell.chat(PAIR, &[play]);
        assert_eq!(
            (seen.status, seen.code().as_str()),
            (503, "vendors_unavailable")
        );
        assert_eq!(seen.record().attempts.len(), 1);
    }
}

#[test]
fn the_stop_passes_on_what_the_last_provider_that_answered_said() {
    let alone = || {
        let mut shell = Shell::new();
        shell.clusters = ["turnpike-provider-a"].into();
        shell
    };
    let words = r#"{"error":{"message":"out of CANARY-prov-key-7731","type":"server_error"}}"#;
    for (play, status, code, retry) in [
        (Play::json(500, words), 500, "provider_error", None),
        (
            Play::json(429, words).header("retry-after", "30"),
            429,
            "provider_error",
            Some("30"),
        ),
        (
            Play::json(401, words),
            502,
            "provider_credential_rejected",
            None,
        ),
    ] {
        let seen = alone().chat(PAIR, &[play]);
        assert_eq!(seen.status, status);
        assert_eq!(seen.record().error_code, code);
        assert_eq!(seen.record().attempts.len(), 1);
        assert_eq!(seen.headers.get("retry-after").map(String::as_str), retry);
        let message = seen.error()["message"].as_str().unwrap().to_owned();
        assert!(
            message.starts_with("out of ") || code != "provider_error",
            "{message}"
        );
        assert!(!seen.text().contains("CANARY"), "{}", seen.text());
        assert!(!format!("{:?}", seen.logged).contains("CANARY"));
    }
    let long = "x".repeat(100 << 10);
    let seen = alone().chat(
        PAIR,
        &[Play::frames(500, "text/plain", vec![long.into(); 3])],
    );
    assert_eq!(seen.status, 500);
    assert!(seen.body.len() < 2048, "an error has a bound");
}

#[test]
fn an_unreachable_last_target_does_not_hide_what_the_one_before_said() {
    let words = r#"{"error":{"message":"overloaded","type":"server_error"}}"#;
    let seen = Shell::new().chat(PAIR, &[Play::json(503, words), Play::RefuseConnection]);
    assert_eq!((seen.status, seen.text()), (503, words));
    assert_eq!(
        verdicts(&seen),
        [
            (1, Verdict::NotBilled, UsageSource::None, "status"),
            (2, Verdict::NotBilled, UsageSource::None, "")
        ]
    );
}

#[test]
fn a_client_is_told_not_to_retry_what_a_whole_plan_has_tried() {
    let failed = || Play::json(500, r#"{"error":{"message":"broken"}}"#);
    let seen = Shell::new().chat(PAIR, &[failed(), failed()]);
    assert_eq!((seen.status, seen.record().attempts.len()), (500, 2));
    assert_eq!(seen.headers["x-should-retry"], "false");

    let timed = failed().header("retry-after", "7");
    let seen = Shell::new().chat(PAIR, &[failed(), timed]);
    assert_eq!(seen.headers["retry-after"], "7");
    assert!(!seen.headers.contains_key("x-should-retry"), "it may, then");

    let seen = Shell::new().chat(&PAIR.replace("\"pair\"", "\"small-1\""), &[failed()]);
    assert_eq!((seen.status, seen.record().attempts.len()), (500, 1));
    assert!(!seen.headers.contains_key("x-should-retry"), "nobody has");
}

#[test]
fn unknown_usage_costs_nothing_where_the_settings_say_so() {
    let mut resources = resources();
    let void = OnUnknownUsage::Void.into();
    resources.settings = Some(Settings {
        on_unknown_usage: void,
        ..Default::default()
    });
    let plays = [Play::ResetBeforeHead, Play::json(200, "{}")];
    let seen = Shell::with(&resources).chat(PAIR, &plays);
    assert_eq!(
        verdicts(&seen),
        [
            (1, Verdict::Unknown, UsageSource::None, "reset"),
            (2, Verdict::Billed, UsageSource::None, "")
        ]
    );
    assert_eq!(seen.settled.sample.tokens, Default::default());
}

#[test]
fn targets_without_hosts_use_up_no_attempts() {
    let mut resources = resources();
    let gone = ["x", "y", "z"].map(|upstream| target("a", upstream));
    let targets = gone.into_iter().chain([target("b", "there")]).collect();
    resources
        .models
        .insert("pair".into(), model("pair", targets));
    let mut shell = Shell::with(&resources);
    shell.clusters = ["turnpike-provider-b"].into();
    let seen = shell.chat(PAIR, &[Play::json(200, ANSWER)]);
    assert_eq!((seen.status, seen.providers.len()), (200, 1));
}

#[test]
fn no_more_than_three_attempts_are_made() {
    let mut resources = resources();
    let targets = ["w", "x", "y", "z"].map(|upstream| target("a", upstream));
    resources
        .models
        .insert("pair".into(), model("pair", targets.into()));
    let fails = || Play::json(500, "{}");
    let seen = Shell::with(&resources).chat(PAIR, &[fails(), fails(), fails()]);
    assert_eq!((seen.status, seen.providers.len()), (500, 3));
}

#[test]
fn a_provider_that_knows_max_tokens_alone_is_told_its_bound_there() {
    let mut resources = resources();
    let provider = resources.providers.get_mut("a").unwrap();
    provider.quirks = vec![Quirk::MaxTokensMember.into()];
    let shell = Shell::with(&resources);
    for (bound, told) in [
        (r#""max_completion_tokens":10"#, r#""max_tokens":10"#),
        (r#""max_tokens":10"#, r#""max_tokens":10"#),
        // Either may be kept to, so the larger is reserved.
        (
            r#""max_tokens":90,"max_completion_tokens":10"#,
            r#""max_tokens":90,"max_completion_tokens":10"#,
        ),
    ] {
        let ask = |bound: &str| format!(r#"{{"model":"small-1","messages":[],{bound}}}"#);
        let seen = shell.chat(&ask(bound), &[Play::json(200, ANSWER)]);
        let (.., body) = &seen.providers[0];
        assert_eq!(std::str::from_utf8(body).unwrap(), ask(told));
    }
}

#[test]
fn another_protocol_that_nobody_asked_for_is_no_answer() {
    let switches = || Play::json(101, "");
    let seen = Shell::new().chat(PAIR, &[switches(), Play::json(200, ANSWER)]);
    assert_eq!((seen.status, seen.providers.len()), (200, 2));
    let seen = Shell::new().chat(PAIR, &[Play::json(500, "{}"), switches()]);
    assert_eq!(seen.status, 502);
    let (number, verdict, ..) = verdicts(&seen)[1];
    assert_eq!(
        (number, verdict),
        (2, Verdict::Unknown),
        "it may have been worked on"
    );
}

#[test]
fn an_error_after_targets_without_hosts_is_told_in_the_providers_words() {
    let mut shell = Shell::new();
    shell.clusters = ["turnpike-provider-b"].into();
    let words = r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#;
    let seen = shell.chat(PAIR, &[Play::json(429, words)]);
    assert_eq!((seen.status, seen.providers.len()), (429, 1));
    assert_eq!(seen.error()["message"], "slow down");
}
