//! What clients are told of limits, in OpenAI's words.

use std::{thread, time::Duration};

use proto::config::v1::{LimitUnit, LimitWindow};
use serde_json::json;
use tests::{
    http::Answer,
    stack::{Options, Stack},
};

use super::{chat, limit};

fn number(answer: &Answer, name: &str) -> u64 {
    let value = answer.header(name);
    let value = value.unwrap_or_else(|| panic!("no {name} in {:?}", answer.headers));
    value.parse().unwrap_or_else(|_| panic!("{name}: {value}"))
}

#[test]
fn answers_tell_how_the_limits_stand_and_refusals_when_to_come_again() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("headers");
    stack.limit(
        "three",
        limit(LimitUnit::Requests, LimitWindow::Lifetime, 3),
    );
    stack.limit(
        "tokens",
        limit(LimitUnit::Tokens, LimitWindow::Day, 1_000_000),
    );
    let ask = |at: usize| {
        let answer = chat(&key, &format!("headers-{at}"), at).send(stack.port());
        answer.expect("an answer")
    };
    for at in 0..3_usize {
        let answer = ask(at);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(number(&answer, "x-ratelimit-limit-requests"), 3);
        let left = u64::try_from(2 - at).expect("fits");
        assert_eq!(number(&answer, "x-ratelimit-remaining-requests"), left);
        assert_eq!(answer.header("x-ratelimit-reset-requests"), None, "never");
        assert_eq!(number(&answer, "x-ratelimit-limit-tokens"), 1_000_000);
        assert!(number(&answer, "x-ratelimit-remaining-tokens") < 1_000_000);
        let reset = answer
            .header("x-ratelimit-reset-tokens")
            .expect("a day ends");
        assert!(reset.ends_with('s'), "{reset}");
    }
    // Until the last one is in the ledger, it may still turn out to cost nothing.
    let mut refusals = (3..10).map(ask);
    let spent = refusals.find(|refused| {
        assert_eq!(refused.status, 429, "{}", refused.text());
        let is_spent = refused.error_code() == "insufficient_quota";
        if !is_spent {
            assert_eq!(refused.error_code(), "rate_limit_exceeded");
            assert_ne!(refused.header("x-should-retry"), Some("false"));
            thread::sleep(Duration::from_secs(number(refused, "retry-after")));
        }
        is_spent
    });
    let spent = spent.expect("a refusal for good");
    assert_eq!(spent.header("x-should-retry"), Some("false"));
    assert_eq!(number(&spent, "x-ratelimit-remaining-requests"), 0);
    let error = spent.json();
    let field = |name: &str| error.pointer(&format!("/error/{name}")).cloned();
    assert_eq!(field("type"), Some(json!("insufficient_quota")), "{error}");
    assert_eq!(field("code"), Some(json!("insufficient_quota")), "{error}");
    assert_eq!(field("param"), Some(json!(null)), "{error}");
    let message = field("message").expect("a message").to_string();
    assert!(message.contains("three"), "it names the limit: {message}");
}

#[test]
fn a_rate_that_is_exceeded_says_when_to_come_again_and_then_lets_through() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("rate");
    let mut values = limit(LimitUnit::Requests, LimitWindow::Minute, 30);
    values.burst = 2;
    stack.limit("rate", values);
    let ask = |at: usize| {
        let answer = chat(&key, &format!("rate-{at}"), at).send(stack.port());
        answer.expect("an answer")
    };
    let refused = (0..10).map(ask).find(|answer| answer.status != 200);
    let refused = refused.expect("ten at once are too many");
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.error_code(), "rate_limit_exceeded");
    assert_ne!(refused.header("x-should-retry"), Some("false"));
    let retry_after = number(&refused, "retry-after");
    assert!((1..=4).contains(&retry_after), "{retry_after} s");
    thread::sleep(Duration::from_secs(retry_after));
    let answer = ask(99);
    assert_eq!(answer.status, 200, "{}", answer.text());
}
