//! A guarded limit cuts a stream that outgrows it: the client gets a proper end in its dialect, and
//! the provider's connection is closed.

use std::time::{Duration, Instant};

use proto::{
    config::v1::{Enforcement, Limit, LimitSubject, LimitUnit, LimitWindow, OnUnavailable},
    metering::v1::{End, Verdict},
};
use serde_json::{Value, json};
use tests::{
    http::{Answer, Request},
    stack::{Options, Stack},
};

/// The estimate for a target of which nothing was learned, so that one request fits.
const AMOUNT: u64 = 1_024;

fn guarded() -> Limit {
    Limit {
        subject: LimitSubject::Everything.into(),
        unit: LimitUnit::OutputTokens.into(),
        window: LimitWindow::Lifetime.into(),
        amount: AMOUNT,
        enforcement: Enforcement::Guarded.into(),
        on_unavailable: OnUnavailable::Reject.into(),
        ..Limit::default()
    }
}

/// A stream of 40 events, a tenth of a second apart, of 640 bytes and so about 160 tokens each.
fn long_stream(key: &str) -> Request {
    let body = json!({
        "model": "small", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "go on and on"}],
    });
    let script = json!({
        "text": "twenty bytes of text", "text_times": 1_280, "chunks": 40, "chunk_delay_ms": 100,
    });
    Request::chat(key, &body).script(&script)
}

/// The tokens of output that a stream's closing events tell.
fn told_tokens(answer: &Answer) -> u64 {
    let text = answer.text();
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let events = answer.events();
    let [.., finish, usage] = events.as_slice() else {
        panic!("{text}");
    };
    let reason = finish.pointer("/choices/0/finish_reason");
    assert_eq!(reason, Some(&json!("length")));
    let tokens = usage.pointer("/usage/completion_tokens");
    tokens.and_then(Value::as_u64).expect("tokens")
}

#[test]
fn a_stream_that_outgrows_a_guarded_limit_ends_with_length_and_its_provider_is_left() {
    let stack = Stack::start(&Options::default());
    stack.limit("output", guarded());
    let key = stack.key("cut");
    let began = Instant::now();
    let request = long_stream(&key).header("x-request-id", "cut-1");
    let answer = request.send(stack.port()).expect("an answer");
    assert!(began.elapsed() < Duration::from_secs(3), "not to its end");
    assert_eq!(answer.status, 200);
    let told = told_tokens(&answer);
    assert!((AMOUNT..AMOUNT + 400).contains(&told), "{told}");
    assert!(answer.complete, "the body has a proper end");
    let record = stack.record("cut-1").record;
    assert_eq!(
        (record.end(), record.finish.as_str()),
        (End::Complete, "length")
    );
    assert_eq!(record.error_code, "limit_cut");
    assert_eq!(record.attempts[0].verdict(), Verdict::Unknown);
    assert_eq!(record.charges[0].settled, told);
    let [served] = stack.served().try_into().expect("one attempt");
    assert_eq!(served.ended, "client_closed", "the provider was left");
    let refused = long_stream(&key).send(stack.port()).expect("an answer");
    assert_eq!(
        (refused.status, refused.error_code().as_str()),
        (429, "insufficient_quota")
    );
}
