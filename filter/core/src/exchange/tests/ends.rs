//! How exchanges end: aborts, cuts, local replies, shutdown.

use proto::metering::v1::{End, UsageSource, Verdict};

use super::shell::*;
use crate::exchange::*;
use crate::host::HeldBodies;

const PLAIN: &str = r#"{"model":"small-1","messages":[{"role":"user","content":"hello there"}]}"#;
const STREAM: &str =
    r#"{"model":"small-1","stream":true,"messages":[{"role":"user","content":"hello there"}]}"#;
const HI: &str = r#"{"choices":[{"index":0,"delta":{"content":"0123456789"}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#;

fn only_attempt(seen: &Seen) -> (Verdict, UsageSource, u64, u64) {
    let [attempt] = &seen.record().attempts[..] else {
        panic!("one attempt");
    };
    let usage = attempt.usage.as_ref().unwrap();
    (attempt.verdict(), usage.source(), usage.input, usage.output)
}

#[test]
fn a_client_that_leaves_before_the_head_is_charged_an_estimate_of_its_prompt() {
    let seen = Shell::new().chat(PLAIN, &[Play::ClientLeaves]);
    let record = seen.record();
    assert_eq!((record.end, record.status), (i32::from(End::ClientGone), 0));
    assert_eq!(seen.settled.sample.reason, "client_gone");
    let (verdict, source, input, output) = only_attempt(&seen);
    assert_eq!(
        (verdict, source),
        (Verdict::Unknown, UsageSource::Estimated)
    );
    assert!(input >= 2 && output == 0, "{input} {output}");
    assert!(
        !format!("{:?}", seen.logged).contains("CANARY"),
        "abort before headers leaks nothing"
    );
}

#[test]
fn a_client_that_leaves_midway_is_charged_what_it_saw() {
    let mut shell = Shell::new();
    shell.client_reads_frames = Some(3);
    let seen = shell.chat(STREAM, &[Play::stream(&[HI, HI, HI, HI, STOP, "[DONE]"])]);
    assert_eq!(seen.record().end, i32::from(End::ClientGone));
    let (verdict, source, _, output) = only_attempt(&seen);
    assert_eq!(
        (verdict, source),
        (Verdict::Unknown, UsageSource::Estimated)
    );
    assert_eq!(output, 8, "thirty visible bytes");
}

#[test]
fn a_client_that_leaves_after_the_last_event_has_its_answer() {
    let mut shell = Shell::new();
    shell.client_reads_frames = Some(3);
    let seen = shell.chat(STREAM, &[Play::stream(&[HI, STOP, "[DONE]", ": late"])]);
    assert_eq!(seen.record().end, i32::from(End::Complete));
    assert_eq!(only_attempt(&seen).0, Verdict::Billed);
}

#[test]
fn a_stream_cut_midway_is_still_charged_and_the_client_is_told() {
    let frames = vec![
        format!("data: {HI}\n\n").into_bytes(),
        b"data: {\"cho".to_vec(),
    ];
    let seen = Shell::new().chat(
        STREAM,
        &[Play::frames(200, "text/event-stream", frames).cut()],
    );
    let record = seen.record();
    assert_eq!(
        (record.end, record.status),
        (i32::from(End::ProviderCut), 200)
    );
    assert_eq!(record.error_code, "provider_cut");
    let (verdict, source, _, output) = only_attempt(&seen);
    assert_eq!(
        (verdict, source, output),
        (Verdict::Unknown, UsageSource::Estimated, 3)
    );
    let events: Vec<&str> = seen
        .text()
        .split("\n\n")
        .filter(|event| !event.is_empty())
        .collect();
    let error = events.last().unwrap().strip_prefix("data: ").unwrap();
    let error: serde_json::Value = serde_json::from_str(error).unwrap();
    assert_eq!(error["error"]["code"], "provider_cut");
}

#[test]
fn the_error_event_never_lands_inside_a_line() {
    let asks = STREAM.replace(
        "\"messages\"",
        "\"stream_options\":{\"include_usage\":true},\"messages\"",
    );
    let whole = format!("data: {HI}\n\n");
    for cut in 1..whole.len() + 1 {
        let frames = vec![whole.clone().into_bytes(), whole.as_bytes()[..cut].to_vec()];
        for body in [STREAM, &asks] {
            let play = Play::frames(200, "text/event-stream", frames.clone()).cut();
            let seen = Shell::new().chat(body, &[play]);
            let (before, error) = seen.text().rsplit_once("data: {\"error\"").unwrap();
            assert!(before.ends_with("\n\n"), "cut at {cut}: {before:?}");
            assert!(error.contains("provider_cut") && error.ends_with("\n\n"));
        }
    }
}

#[test]
fn usage_reported_before_a_cut_is_what_is_charged() {
    let seen = Shell::new().chat(STREAM, &[Play::stream(&[HI, USAGE]).cut()]);
    assert_eq!(
        only_attempt(&seen),
        (Verdict::Unknown, UsageSource::Reported, 9, 2)
    );
}

#[test]
fn a_stream_that_ends_cleanly_without_its_marker_is_complete() {
    let seen = Shell::new().chat(STREAM, &[Play::stream(&[HI])]);
    assert_eq!(seen.record().end, i32::from(End::Complete));
    assert_eq!(only_attempt(&seen).0, Verdict::Billed);
}

#[test]
fn a_plain_answer_cut_midway_is_left_as_it_is() {
    let seen = Shell::new().chat(PLAIN, &[Play::json(200, r#"{"choices":[{"mess"#).cut()]);
    assert_eq!((seen.status, seen.text()), (200, r#"{"choices":[{"mess"#));
    assert_eq!(seen.record().end, i32::from(End::ProviderCut));
    assert_eq!(seen.record().error_code, "provider_cut");
}

#[test]
fn envoys_own_replies_take_the_clients_shape() {
    for (play, status, code) in [
        (Play::RefuseConnection, 503, "provider_unreachable"),
        (Play::ResetBeforeHead, 502, "provider_reset"),
        (Play::TimeOut, 504, "provider_timeout"),
    ] {
        let seen = Shell::new().chat(PLAIN, &[play]);
        assert_eq!((seen.status, seen.code().as_str()), (status, code));
        assert_eq!(seen.headers["content-type"], "application/json");
        assert_eq!(seen.record().end, i32::from(End::ProviderFailed));
        assert_eq!(seen.record().error_code, code);
        let (verdict, ..) = only_attempt(&seen);
        let reached = code != "provider_unreachable";
        assert_eq!(
            verdict,
            if reached {
                Verdict::Unknown
            } else {
                Verdict::NotBilled
            }
        );
    }
}

#[test]
fn an_error_without_a_body_gets_one_in_the_clients_shape() {
    let shell = Shell::new();
    for (status, expected) in [("503", "said no more"), ("401", "credential")] {
        let mut exchange = begun(&shell);
        exchange.on_request_body(PLAIN.as_bytes(), &shell.clock);
        exchange.select(0, &shell.clusters, &shell.clock);
        exchange.begin_attempt(&mut Sink(&mut Headers::new()));
        assert_eq!(
            exchange.on_response_head(&[(b":status", status.as_bytes())], true, &shell.clock),
            ResponseStep::Pass
        );
        let body = exchange.take_missing_body().expect("a body");
        let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let message = json["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
        assert_eq!(exchange.take_missing_body(), None, "once");
    }
}

fn begun(shell: &Shell) -> Exchange {
    let head = chat_head(&[]);
    let pairs: Vec<_> = head
        .iter()
        .map(|(n, v)| (n.as_bytes(), v.as_bytes()))
        .collect();
    let begin = Begin {
        config: &shell.config,
        clock: &shell.clock,
        entropy: shell.entropy,
        node: shell.node,
        held: &HELD,
        limits: shell.limits,
        health: shell.health,
    };
    Exchange::begin(
        &begin,
        &Head {
            headers: &pairs,
            end_of_stream: false,
        },
    )
    .0
}

#[test]
fn local_replies_before_any_attempt_say_what_happened() {
    let shell = Shell::new();
    for (status, details, expected, code) in [
        (413, "request_payload_too_large", 413, "request_too_large"),
        (408, "request_overall_timeout", 408, "request_timeout"),
        (503, "no_healthy_upstream", 503, "vendors_unavailable"),
        (503, "cluster_not_found", 503, "vendors_unavailable"),
        (400, "http1.invalid_header", 400, "proxy_refused"),
        (500, "filter_chain_not_found", 500, "proxy_failed"),
    ] {
        let LocalReply::Replace(reply) = begun(&shell).on_local_reply(status, details.as_bytes())
        else {
            panic!("{details}");
        };
        assert_eq!(reply.status, expected, "{details}");
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(body["error"]["code"], code);
        assert_eq!(reply.details, format!("turnpike_{code}"));
    }
    let ours = begun(&shell).on_local_reply(401, b"turnpike_invalid_api_key");
    assert_eq!(ours, LocalReply::Leave);
}

#[test]
fn an_exchange_open_at_shutdown_says_so() {
    let shell = Shell::new();
    let mut exchange = begun(&shell);
    assert!(matches!(
        exchange.on_request_body(PLAIN.as_bytes(), &shell.clock),
        Step::Forward
    ));
    exchange.select(0, &shell.clusters, &shell.clock);
    exchange.begin_attempt(&mut Sink(&mut Headers::new()));
    exchange.on_request_sent();
    let details = b"downstream_local_disconnect(purging_socket)";
    let end = StreamEnd {
        response_code: 0,
        details,
        flags: 0x4000,
        shutdown: true,
    };
    let settled = exchange.settle(&end, &shell.clock);
    assert_eq!(settled.record.unwrap().end, i32::from(End::Shutdown));
    assert_eq!(settled.sample.reason, "shutdown");
}

#[test]
fn an_attempt_that_never_began_is_in_no_record() {
    let shell = Shell::new();
    let mut exchange = begun(&shell);
    exchange.on_request_body(PLAIN.as_bytes(), &shell.clock);
    exchange.select(0, &shell.clusters, &shell.clock);
    let details = b"downstream_remote_disconnect";
    let end = StreamEnd {
        response_code: 0,
        details,
        flags: 0,
        shutdown: false,
    };
    let record = exchange.settle(&end, &shell.clock).record.unwrap();
    assert!(record.attempts.is_empty());
    assert_eq!(record.end, i32::from(End::ClientGone));
}

#[test]
fn a_client_that_cancels_its_http_2_stream_has_left_and_its_provider_has_not_failed() {
    let shell = Shell::new();
    for _ in 0..4 {
        let mut exchange = begun(&shell);
        exchange.on_request_body(PLAIN.as_bytes(), &shell.clock);
        exchange.select(0, &shell.clusters, &shell.clock);
        exchange.begin_attempt(&mut Sink(&mut Headers::new()));
        exchange.on_request_sent();
        let end = StreamEnd {
            response_code: 0,
            details: b"http2.remote_reset",
            flags: 0,
            shutdown: false,
        };
        let record = exchange.settle(&end, &shell.clock).record.unwrap();
        assert_eq!(record.end, i32::from(End::ClientGone));
    }
    assert!(shell.health.is_all_well());
}

#[test]
fn a_settlement_that_is_used_again_is_as_a_new_one() {
    let shell = Shell::new();
    let mut reused = Settled::default();
    let bodies = [
        PLAIN.replace("small-1", "pair"),
        PLAIN.replace(r#"{"model""#, r#"{"metadata":{"a":"b"},"user":"u","model""#),
        PLAIN.to_owned(),
    ];
    for body in bodies {
        let settle = |settled: Option<&mut Settled>| {
            let clock = Ticks::default();
            let mut exchange = begun(&Shell {
                clock,
                ..Shell::new()
            });
            exchange.on_request_body(body.as_bytes(), &shell.clock);
            let details = b"downstream_remote_disconnect";
            let end = StreamEnd {
                response_code: 0,
                details,
                flags: 0,
                shutdown: false,
            };
            let fixed = Ticks::default();
            fixed.advance_ms(60_000);
            match settled {
                Some(settled) => {
                    exchange.settle_into(&end, &fixed, settled);
                    None
                }
                None => Some(exchange.settle(&end, &fixed)),
            }
        };
        let mut fresh = settle(None).unwrap();
        settle(Some(&mut reused));
        // The two exchanges were admitted at different ticks of the shared clock.
        for record in [
            fresh.record.as_mut().unwrap(),
            reused.record.as_mut().unwrap(),
        ] {
            (record.admitted_at_us, record.duration_us) = (0, 0);
        }
        assert_eq!(fresh.record, reused.record);
        let fields = |settled: &Settled| -> Vec<(&str, String)> {
            settled
                .log
                .iter()
                .map(|(name, value)| (name, value.to_owned()))
                .collect()
        };
        assert_eq!(fields(&fresh), fields(&reused));
    }
}

#[test]
fn held_bytes_are_given_back_when_the_answer_begins_and_at_the_end() {
    static POOL: HeldBodies = HeldBodies::new();
    let shell = Shell::new();
    let head = chat_head(&[]);
    let pairs: Vec<_> = head
        .iter()
        .map(|(n, v)| (n.as_bytes(), v.as_bytes()))
        .collect();
    let begin = Begin {
        config: &shell.config,
        clock: &shell.clock,
        entropy: shell.entropy,
        node: shell.node,
        held: &POOL,
        limits: shell.limits,
        health: shell.health,
    };
    let head = Head {
        headers: &pairs,
        end_of_stream: false,
    };
    let (mut exchange, _) = Exchange::begin(&begin, &head);
    assert!(exchange.on_request_bytes(20).is_none());
    assert_eq!(POOL.bytes(), 20);
    exchange.on_request_body(PLAIN.as_bytes(), &shell.clock);
    assert_eq!(POOL.bytes(), PLAIN.len() as u64);
    exchange.select(0, &shell.clusters, &shell.clock);
    exchange.begin_attempt(&mut Sink(&mut Headers::new()));
    exchange.on_response_head(&[(b":status", b"200")], false, &shell.clock);
    assert_eq!(POOL.bytes(), 0);
    let (mut left, _) = Exchange::begin(&begin, &head);
    left.on_request_body(PLAIN.as_bytes(), &shell.clock);
    drop(left);
    assert_eq!(POOL.bytes(), 0);
}
