//! What failures of one request mean for those that follow.

use super::shell::{Play, Seen, Shell};
use crate::fixture::*;

const PAIR: &str = r#"{"model":"pair","messages":[{"role":"user","content":"x"}]}"#;
const ONE: &str = r#"{"model":"small-1","messages":[{"role":"user","content":"x"}]}"#;
const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}"#;

fn fails() -> Play {
    Play::json(503, "{}")
}

fn answers() -> Play {
    Play::json(200, ANSWER)
}

/// The clusters that were asked, by their last letter.
fn asked(seen: &Seen) -> String {
    let clusters = seen.providers.iter();
    clusters
        .filter_map(|(cluster, ..)| cluster.chars().last())
        .collect()
}

#[test]
fn a_target_that_fails_three_times_comes_last_until_it_has_cooled_down() {
    let shell = Shell::new();
    for _ in 0..3 {
        assert_eq!(asked(&shell.chat(PAIR, &[fails(), answers()])), "ab");
    }
    assert_eq!(asked(&shell.chat(PAIR, &[answers()])), "b");
    assert_eq!(asked(&shell.chat(PAIR, &[fails(), answers()])), "ba");
    shell.clock.advance_ms(30_000);
    assert_eq!(asked(&shell.chat(PAIR, &[answers()])), "a");
}

#[test]
fn the_only_target_is_asked_though_it_cools_down() {
    let shell = Shell::new();
    for _ in 0..5 {
        assert_eq!(shell.chat(ONE, &[fails()]).status, 503);
    }
    assert_eq!(shell.chat(ONE, &[answers()]).status, 200);
}

#[test]
fn a_target_is_not_asked_before_its_retry_after_and_the_client_is_told_when() {
    let limited = || Play::json(429, "{}").header("retry-after", "20");
    let shell = Shell::new();
    assert_eq!(asked(&shell.chat(PAIR, &[limited(), answers()])), "ab");
    assert_eq!(asked(&shell.chat(PAIR, &[answers()])), "b");
    assert_eq!(asked(&shell.chat(PAIR, &[limited()])), "b");
    let seen = shell.chat(PAIR, &[]);
    assert_eq!((seen.status, asked(&seen).as_str()), (503, ""));
    assert_eq!(seen.code(), "vendors_unavailable");
    let wait_s: u64 = seen.headers["retry-after"].parse().unwrap();
    assert!((1..=20).contains(&wait_s), "{wait_s}");
    shell.clock.advance_ms(20_000);
    assert_eq!(asked(&shell.chat(PAIR, &[answers()])), "a");
}

#[test]
fn a_rejected_credential_is_followed_by_another_of_its_provider_and_set_aside() {
    let mut resources = resources();
    let other = credential("cred-other", "a", "sk-test-other");
    resources.credentials.insert(other.id.clone(), other);
    let shell = Shell::with(&resources);
    let seen = shell.chat(ONE, &[Play::json(401, "{}"), answers()]);
    assert_eq!((seen.status, asked(&seen).as_str()), (200, "aa"));
    let used = |seen: &Seen, at: usize| seen.providers[at].1["authorization"].clone();
    let (dead, alive) = (used(&seen, 0), used(&seen, 1));
    assert_ne!(dead, alive);
    let seen = shell.chat(ONE, &[answers()]);
    assert_eq!(used(&seen, 0), alive);
}

#[test]
fn what_a_caller_did_wrong_says_nothing_of_a_target() {
    let shell = Shell::new();
    for _ in 0..4 {
        assert_eq!(shell.chat(PAIR, &[Play::json(400, "{}")]).status, 400);
        assert_eq!(asked(&shell.chat(PAIR, &[Play::ClientLeaves])), "a");
    }
    assert_eq!(asked(&shell.chat(PAIR, &[answers()])), "a");
}
