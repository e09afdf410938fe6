//! Limits: reserved before each attempt, waited for, refused, settled, and always given back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;
use proto::config::v1::*;
use proto::metering::v1::{Charge, End, UsageRecord};

use super::shell::*;
use crate::config::Resources;
use crate::credit::{Account, Denial, Lease, Refusal, Span};
use crate::exchange::{Begin, Exchange, Head, Step};
use crate::fixture::*;
use crate::limits::NodeLimits;

const ONE: &str = r#"{"model":"small-1","max_tokens":100,"user":"ann","messages":[{"role":"user","content":"Hello there"}]}"#;
const PAIR: &str =
    r#"{"model":"pair","max_tokens":100,"messages":[{"role":"user","content":"x"}]}"#;
const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}"#;
const SECOND: u64 = 1_000_000;

fn limit(id: &str, unit: LimitUnit) -> Limit {
    let window = if unit == LimitUnit::InFlight {
        LimitWindow::None
    } else {
        LimitWindow::Day
    };
    Limit {
        id: id.into(),
        subject: LimitSubject::Everything.into(),
        unit: unit.into(),
        amount: 1_000_000,
        window: window.into(),
        enforcement: Enforcement::Strict.into(),
        ..Limit::default()
    }
}

fn with_limits(limits: impl IntoIterator<Item = Limit>) -> Shell {
    let mut all = resources();
    priced(&mut all);
    for limit in limits {
        all.limits.insert(limit.id.clone(), limit);
    }
    let shell = Shell::with(&all);
    shell.limits.accounts.usable_until(u64::MAX);
    shell
}

/// One micro-USD for each token of `pair`, whoever serves it; twice as much at `b`.
fn priced(all: &mut Resources) {
    let book = all.price_book.as_mut().unwrap();
    for (provider, upstream_model, pusd) in
        [("a", "pair-at-a", 1_000_000), ("b", "pair-at-b", 2_000_000)]
    {
        book.prices.push(Price {
            provider: provider.into(),
            upstream_model: upstream_model.into(),
            input_pusd: Some(pusd),
            output_pusd: Some(pusd),
            ..Price::default()
        });
    }
}

fn account(shell: &Shell, id: &str, subject: &str) -> Arc<Account> {
    let limits = &shell.config.limits;
    let terms = (0..)
        .map_while(|at| limits.limit(at))
        .find(|limit| *limit.terms.id == *id);
    shell
        .limits
        .accounts
        .account(&terms.unwrap().terms, subject)
}

/// Credit for a bucket, as if the agent had been granted it.
fn fund(shell: &Shell, id: &str, subject: &str, granted: u64) -> Arc<Lease> {
    let lease = Arc::new(Lease::new(Span {
        epoch: 3,
        window_start_s: 1_749_945_600,
        starts_at_us: 0,
        ends_at_us: u64::MAX,
    }));
    lease.raise(granted, 0);
    let account = account(shell, id, subject);
    account.set_current(Some(Arc::clone(&lease)));
    account.follow_share(0);
    account.tell(1_000_000, 0);
    lease
}

fn deny(shell: &Shell, id: &str, kind: Refusal) {
    let denial = Denial {
        kind,
        asked: 1,
        retry_at_us: 3 * SECOND,
        valid_until_us: u64::MAX,
        left: 0,
        resets_at_us: Some(600 * SECOND),
    };
    account(shell, id, "").deny(denial, 0);
}

fn charge(limit: &str, subject: &str, reserved: u64, settled: u64) -> Charge {
    Charge {
        limit: limit.into(),
        subject: subject.into(),
        window_start_s: 1_749_945_600,
        epoch: 3,
        reserved,
        settled,
    }
}

fn charged(record: &UsageRecord) -> Vec<(&str, u64)> {
    let charges = record.charges.iter();
    charges
        .map(|charge| (charge.limit.as_str(), charge.settled))
        .collect()
}

/// What the ledger says that it cost.
fn ledger_nusd(record: &UsageRecord) -> u64 {
    let costs = record.attempts.iter().flat_map(|attempt| &attempt.costs);
    costs.map(|cost| cost.cost_nusd.unwrap()).sum()
}

/// What a lease has after it: available and reserved.
fn state(lease: &Lease) -> (i64, u64) {
    (lease.available(), lease.reserved())
}

/// Postgres keeps no NUL in a text: one in a subject would stop the ledger at that record.
#[test]
fn end_users_with_long_names_or_a_nul_have_buckets_of_their_own() {
    let long = "x".repeat(1000);
    let names = [
        r"a\u0000b".to_owned(),
        "a\u{fffd}b".to_owned(),
        long.clone() + "0",
        long + "1",
    ];
    let subjects = names.map(|name| {
        let shell = with_limits([Limit {
            subject: LimitSubject::EndUser.into(),
            ..limit("user-output", LimitUnit::OutputTokens)
        }]);
        shell.chat(&ONE.replace("ann", &name), &[Play::json(200, ANSWER)]);
        let accounts = shell.limits.accounts.all();
        accounts[0].subject().to_string()
    });
    assert_eq!(subjects[1], "red/a\u{fffd}b");
    let different: std::collections::BTreeSet<_> = subjects.iter().collect();
    assert_eq!(different.len(), subjects.len(), "{subjects:?}");
    assert!(
        subjects
            .iter()
            .all(|subject| subject.len() <= 4 + 256 && !subject.contains('\0'))
    );
}

#[test]
fn every_limit_that_applies_is_reserved_on_and_charged_what_was_used() {
    let subject = |kind: LimitSubject, limit| Limit {
        subject: kind.into(),
        ..limit
    };
    let shell = with_limits([
        limit("all-tokens", LimitUnit::Tokens),
        subject(LimitSubject::Team, limit("team-money", LimitUnit::Money)),
        subject(
            LimitSubject::Key,
            limit("key-requests", LimitUnit::Requests),
        ),
        subject(
            LimitSubject::EndUser,
            limit("user-output", LimitUnit::OutputTokens),
        ),
    ]);
    let leases = [
        fund(&shell, "all-tokens", "", 1_000),
        fund(&shell, "team-money", "red", 1_000_000),
        fund(&shell, "key-requests", "alpha", 10),
        fund(&shell, "user-output", "red/ann", 1_000),
    ];
    let seen = shell.chat(ONE, &[Play::json(200, ANSWER)]);
    assert_eq!(seen.status, 200);
    let bytes = ONE.len() as u64;
    let money = bytes * 1_000 + 100 * 2_000 + 8;
    assert_eq!(
        seen.record().charges,
        [
            charge("all-tokens", "", bytes + 100, 6),
            charge("key-requests", "alpha", 1, 1),
            charge("team-money", "red", money, 5 * 1_000 + 2_000),
            charge("user-output", "red/ann", 100, 1),
        ]
    );
    let states = leases.each_ref().map(|lease| state(lease));
    assert_eq!(states, [(994, 0), (993_000, 0), (9, 0), (999, 0)]);
}

#[test]
fn a_request_that_one_limit_refuses_holds_nothing_of_the_others() {
    let shell = with_limits([
        limit("a", LimitUnit::Requests),
        limit("b", LimitUnit::Tokens),
    ]);
    let lease = fund(&shell, "a", "", 10);
    deny(&shell, "b", Refusal::Spent);
    let seen = shell.chat(ONE, &[]);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (429, "insufficient_quota")
    );
    assert_eq!(seen.headers["x-should-retry"], "false");
    assert_eq!(seen.headers["retry-after"], "600");
    assert_eq!(seen.headers["x-ratelimit-remaining-requests"], "10");
    assert_eq!(seen.headers["x-ratelimit-remaining-tokens"], "0");
    assert!(seen.error()["message"].as_str().unwrap().contains("`b`"));
    assert!(seen.settled.record.is_none(), "it was never admitted");
    assert_eq!(state(&lease), (10, 0));
}

#[test]
fn at_the_edge_a_request_waits_and_is_admitted_when_credit_comes() {
    let mut shell = with_limits([limit("l", LimitUnit::Requests)]);
    let lease = fund(&shell, "l", "", 0);
    let (granted, bell) = (Arc::clone(&lease), account(&shell, "l", ""));
    shell.agent = Box::new(move |limits: &NodeLimits| {
        assert_eq!(limits.accounts.take_needy().len(), 1, "the agent was told");
        assert_eq!(limits.accounts.waiting(), 1);
        granted.raise(1, 0);
        bell.wake_waiters(0);
    });
    let seen = shell.chat(ONE, &[Play::json(200, ANSWER)]);
    assert_eq!(seen.status, 200);
    assert_eq!(charged(seen.record()), [("l", 1)]);
    assert_eq!(state(&lease), (0, 0));
    assert_eq!(shell.limits.accounts.waiting(), 0);
}

#[test]
fn a_request_that_waited_in_vain_is_answered_by_what_is_known_then() {
    for (kind, status, code) in [
        (None, 503, "limits_unavailable"),
        (Some(Refusal::Reserved), 429, "rate_limit_exceeded"),
        (Some(Refusal::Spent), 429, "insufficient_quota"),
    ] {
        let mut shell = with_limits([limit("l", LimitUnit::Requests)]);
        fund(&shell, "l", "", 0);
        let asked = account(&shell, "l", "");
        shell.agent = Box::new(move |_| {
            let Some(kind) = kind else { return };
            let denial = Denial {
                kind,
                asked: 1,
                retry_at_us: 3 * SECOND,
                valid_until_us: 3 * SECOND,
                left: 0,
                resets_at_us: None,
            };
            asked.deny(denial, 0);
        });
        let seen = shell.chat(ONE, &[]);
        assert_eq!((seen.status, seen.code().as_str()), (status, code));
        let may_retry = code != "insufficient_quota";
        assert_eq!(seen.headers.contains_key("retry-after"), may_retry);
        assert_eq!(seen.headers.contains_key("retry-after-ms"), may_retry);
        assert!(seen.settled.record.is_none());
        assert_eq!(shell.limits.accounts.waiting(), 0);
    }
}

#[test]
fn an_outage_lets_requests_through_as_far_as_its_allowance_goes() {
    let shell = with_limits([Limit {
        on_unavailable: OnUnavailable::Allow.into(),
        outage_allowance: 2,
        ..limit("l", LimitUnit::Requests)
    }]);
    shell.limits.accounts.usable_until(0);
    let statuses = [0; 3].map(|_| {
        let seen = shell.chat(ONE, &[Play::json(200, ANSWER)]);
        seen.status
    });
    assert_eq!(statuses, [200, 200, 503]);
}

#[test]
fn whoever_leaves_while_it_waits_owns_nothing() {
    let shell = with_limits([limit("l", LimitUnit::Requests)]);
    let lease = fund(&shell, "l", "", 0);
    let (mut exchange, bell) = (waiting(&shell), Arc::new(Bell::default()));
    assert!(matches!(
        exchange.wait(Arc::clone(&bell) as _, &shell.clock),
        Step::Wait {
            max_us: 1..=2_000_000
        }
    ));
    assert_eq!(shell.limits.accounts.waiting(), 1);
    lease.raise(1, 0);
    account(&shell, "l", "").wake_waiters(0);
    assert_eq!(bell.0.load(Ordering::SeqCst), 1);
    drop(exchange);
    assert_eq!(shell.limits.accounts.waiting(), 0);
    assert_eq!(state(&lease), (1, 0));
}

/// A request that was told to wait.
fn waiting(shell: &Shell) -> Exchange {
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
    let head = Head {
        headers: &pairs,
        end_of_stream: false,
    };
    let (mut exchange, _) = Exchange::begin(&begin, &head);
    let step = exchange.on_request_body(ONE.as_bytes(), &shell.clock);
    assert!(matches!(step, Step::Wait { .. }), "{step:?}");
    exchange
}

#[test]
fn one_that_is_woken_in_vain_keeps_its_place_and_its_deadline() {
    let shell = with_limits([limit("l", LimitUnit::Requests)]);
    let lease = fund(&shell, "l", "", 0);
    let (mut exchange, bell) = (waiting(&shell), Arc::new(Bell::default()));
    exchange.wait(Arc::clone(&bell) as _, &shell.clock);
    let until_us = exchange.waits_until_us().unwrap();
    let step = exchange.on_credit(&shell.clock).unwrap();
    assert!(matches!(step, Step::Wait { .. }), "{step:?}");
    exchange.wait(Arc::clone(&bell) as _, &shell.clock);
    assert_eq!(exchange.waits_until_us(), Some(until_us));
    assert_eq!(shell.limits.accounts.waiting(), 1);
    shell.clock.advance_ms(5_000);
    let step = exchange.on_credit(&shell.clock).unwrap();
    assert!(matches!(step, Step::Reply(_)), "its time is over: {step:?}");
    lease.raise(1, 0);
    assert!(exchange.on_credit(&shell.clock).is_none());
    assert!(exchange.on_wait_over(&shell.clock).is_none());
    assert_eq!(state(&lease), (1, 0));
}

#[test]
fn a_limit_may_send_a_request_to_the_next_target_that_fits() {
    let shell = with_limits([Limit {
        providers: vec!["a".into()],
        on_exceed: OnExceed::SkipTarget.into(),
        ..limit("l", LimitUnit::Requests)
    }]);
    deny(&shell, "l", Refusal::Spent);
    let seen = shell.chat(PAIR, &[Play::json(200, ANSWER)]);
    assert_eq!(seen.status, 200);
    assert_eq!(seen.providers[0].0, "turnpike-provider-b");
    assert_eq!(seen.record().charges, []);
    let seen = shell.chat(ONE, &[]);
    assert_eq!(seen.status, 429, "nothing else fits");
}

#[test]
fn a_warning_lets_through_and_charges() {
    let shell = with_limits([Limit {
        on_exceed: OnExceed::Warn.into(),
        ..limit("l", LimitUnit::Money)
    }]);
    deny(&shell, "l", Refusal::Spent);
    let seen = shell.chat(ONE, &[Play::json(200, ANSWER)]);
    assert_eq!(seen.status, 200);
    assert_eq!(charged(seen.record()), [("l", 7_000)]);
    assert_eq!(seen.record().charges[0].epoch, 0, "on no lease");
}

#[test]
fn a_request_without_a_bound_is_refused_by_the_field_that_lacks() {
    let shell = with_limits([limit("l", LimitUnit::OutputTokens)]);
    let lease = fund(&shell, "l", "", 1_000);
    let seen = shell.chat(&ONE.replace(r#""max_tokens":100,"#, ""), &[]);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (400, "unbounded_request")
    );
    assert_eq!(seen.error()["param"], "max_tokens");
    assert_eq!(state(&lease), (1_000, 0));
}

#[test]
fn slots_and_rates_come_back_and_make_no_charge() {
    let shell = with_limits([
        limit("slots", LimitUnit::InFlight),
        Limit {
            window: LimitWindow::Minute.into(),
            burst: 2,
            amount: 60,
            ..limit("rate", LimitUnit::Requests)
        },
    ]);
    let slots = fund(&shell, "slots", "", 1);
    fund(&shell, "rate", "", 60);
    let statuses = [0; 3].map(|_| shell.chat(ONE, &[Play::json(200, ANSWER)]).status);
    assert_eq!(statuses, [200, 200, 429]);
    let seen = shell.chat(ONE, &[]);
    assert_eq!(seen.code(), "rate_limit_exceeded");
    assert_eq!(seen.headers["retry-after"], "1");
    assert_eq!(state(&slots), (1, 0));
    shell.clock.advance_ms(1_000);
    let seen = shell.chat(ONE, &[Play::json(200, ANSWER)]);
    assert_eq!((seen.status, seen.record().charges.len()), (200, 0));
}

#[test]
fn what_is_left_is_told_on_success() {
    let shell = with_limits([
        limit("requests", LimitUnit::Requests),
        limit("tokens-wide", LimitUnit::Tokens),
        limit("tokens-tight", LimitUnit::OutputTokens),
    ]);
    fund(&shell, "requests", "", 5);
    fund(&shell, "tokens-wide", "", 5_000);
    fund(&shell, "tokens-tight", "", 500);
    let play = Play::json(200, ANSWER).header("x-ratelimit-limit-requests", "99");
    let seen = shell.chat(ONE, &[play]);
    let header = |name: &str| seen.headers.get(name).map(String::as_str);
    assert_eq!(header("x-ratelimit-limit-requests"), Some("1000000"));
    assert_eq!(header("x-ratelimit-remaining-requests"), Some("4"));
    assert_eq!(header("x-ratelimit-remaining-tokens"), Some("400"));
    assert_eq!(
        header("x-ratelimit-reset-tokens"),
        None,
        "of no end is known"
    );
}

#[test]
fn a_retry_gives_back_what_was_not_billed_and_counts_the_request_once() {
    let shell = with_limits([
        limit("money", LimitUnit::Money),
        limit("requests", LimitUnit::Requests),
        limit("slots", LimitUnit::InFlight),
    ]);
    let bytes = PAIR.len() as u64;
    // As much as the dearer target needs, and no more.
    let money = fund(&shell, "money", "", (bytes + 100) * 2_000 + 8);
    let requests = fund(&shell, "requests", "", 1);
    let slots = fund(&shell, "slots", "", 1);
    let seen = shell.chat(PAIR, &[Play::json(503, "{}"), Play::json(200, ANSWER)]);
    assert_eq!(seen.status, 200);
    assert_eq!(charged(seen.record()), [("requests", 1), ("money", 12_000)]);
    assert_eq!(state(&requests), (0, 0));
    assert_eq!(state(&slots), (1, 0));
    assert_eq!(money.reserved(), 0);
    assert_eq!(
        money.available().unsigned_abs(),
        (bytes + 100) * 2_000 + 8 - 12_000
    );
}

#[test]
fn a_retry_keeps_what_the_attempt_before_may_have_cost() {
    let shell = with_limits([limit("money", LimitUnit::Money)]);
    let bytes = PAIR.len() as u64;
    let granted = (bytes + 100) * 2_000 + 8;
    let money = fund(&shell, "money", "", granted);
    let seen = shell.chat(PAIR, &[Play::ResetBeforeHead]);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (429, "rate_limit_exceeded")
    );
    // A strict limit counts on the worst that the provider may bill, and so does the ledger.
    let bound = (bytes + 100) * 1_000;
    assert_eq!(charged(seen.record()), [("money", bound)]);
    assert_eq!(ledger_nusd(seen.record()), bound);
    let usage = seen.record().attempts[0].usage.as_ref().unwrap();
    assert_eq!((usage.input, usage.output), (bytes, 100));
    assert_eq!(usage.method, "bound");
    assert_eq!(seen.record().end, i32::from(End::ProviderFailed));
    let left = i64::try_from(granted - bound).unwrap();
    assert_eq!(state(&money), (left, 0));
}

/// The shell compares what a crash would have left with what was settled.
#[test]
fn each_attempt_is_charged_by_its_own_limits_and_prices() {
    let shell = with_limits([
        Limit {
            providers: vec!["a".into()],
            ..limit("money-a", LimitUnit::Money)
        },
        Limit {
            providers: vec!["b".into()],
            ..limit("money-b", LimitUnit::Money)
        },
        Limit {
            providers: vec!["b".into()],
            ..limit("requests-b", LimitUnit::Requests)
        },
        limit("requests", LimitUnit::Requests),
    ]);
    for id in ["money-a", "money-b", "requests-b", "requests"] {
        fund(&shell, id, "", 1_000_000);
    }
    let bytes = PAIR.len() as u64;
    let bound = |nusd: u64| (bytes + 100) * nusd;
    let seen = shell.chat(PAIR, &[Play::ResetBeforeHead, Play::ResetBeforeHead]);
    let expected = [
        ("money-a", bound(1_000)),
        ("requests", 1),
        ("money-b", bound(2_000)),
        ("requests-b", 1),
    ];
    assert_eq!(charged(seen.record()), expected);
    assert_eq!(ledger_nusd(seen.record()), bound(3_000));
    let seen = shell.chat(PAIR, &[Play::json(503, "{}"), Play::ResetBeforeHead]);
    assert_eq!(charged(seen.record()), expected[1..]);
    assert_eq!(ledger_nusd(seen.record()), bound(2_000));
}

#[test]
fn what_nobody_said_is_priced_as_the_tier_that_was_asked_for_or_the_dearest() {
    let mut all = resources();
    let tier = |tier: &str, factor_permille| TierPrice {
        tier: tier.into(),
        factor_permille,
        ..TierPrice::default()
    };
    all.price_book.as_mut().unwrap().prices[0].tiers =
        vec![tier("flex", 500), tier("priority", 2_000)];
    let shell = Shell::with(&all);
    let priced = |asked: &str| {
        let body = ONE.replace(r#""max_tokens""#, &format!("{asked}\"max_tokens\""));
        let seen = shell.chat(&body, &[Play::ClientLeaves]);
        let usage = seen.record().attempts[0].usage.clone().unwrap();
        let of_standard = usage.input * 1_000 + usage.output * 2_000;
        (
            usage.service_tier,
            ledger_nusd(seen.record()) * 10 / of_standard,
        )
    };
    assert_eq!(priced(""), ("priority".into(), 20));
    assert_eq!(priced(r#""service_tier":"auto","#), ("priority".into(), 20));
    assert_eq!(priced(r#""service_tier":"flex","#), ("flex".into(), 5));
    assert_eq!(
        priced(r#""service_tier":"default","#),
        ("default".into(), 10)
    );
}

#[test]
fn a_limit_that_stops_a_retry_is_told_unless_a_provider_said_more() {
    let shell = with_limits([Limit {
        providers: vec!["b".into()],
        ..limit("l", LimitUnit::Requests)
    }]);
    deny(&shell, "l", Refusal::Spent);
    let seen = shell.chat(PAIR, &[Play::json(503, "{}")]);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (429, "insufficient_quota")
    );
    assert_eq!(seen.record().error_code, "insufficient_quota");
    account(&shell, "l", "").clear_denial();
    let words = r#"{"error":{"message":"overloaded","type":"server_error"}}"#;
    let seen = shell.chat(PAIR, &[Play::json(503, words)]);
    assert_eq!(
        (seen.status, seen.text()),
        (503, words),
        "nobody has refused"
    );
}

#[test]
fn a_target_without_hosts_holds_nothing_of_its_limits() {
    let mut shell = with_limits([
        Limit {
            providers: vec!["a".into()],
            ..limit("of-a", LimitUnit::Requests)
        },
        limit("of-both", LimitUnit::Requests),
    ]);
    shell.clusters = ["turnpike-provider-b"].into();
    let of_a = fund(&shell, "of-a", "", 1);
    let of_both = fund(&shell, "of-both", "", 1);
    let seen = shell.chat(PAIR, &[Play::json(200, ANSWER)]);
    assert_eq!(seen.status, 200);
    assert_eq!(charged(seen.record()), [("of-both", 1)]);
    assert_eq!((state(&of_a), state(&of_both)), ((1, 0), (0, 0)));
}

#[test]
fn a_request_that_no_attempt_was_made_for_is_charged_nothing() {
    let mut shell = with_limits([limit("l", LimitUnit::Requests)]);
    shell.clusters.clear();
    let lease = fund(&shell, "l", "", 1);
    let seen = shell.chat(PAIR, &[]);
    assert_eq!(seen.code(), "vendors_unavailable");
    assert_eq!(charged(seen.record()), [("l", 0)]);
    assert_eq!(state(&lease), (1, 0));
}

#[test]
fn what_providers_report_is_learned_and_the_next_estimate_follows() {
    let shell = with_limits([Limit {
        enforcement: Enforcement::Estimated.into(),
        ..limit("l", LimitUnit::OutputTokens)
    }]);
    fund(&shell, "l", "", 1_000_000);
    let body = ONE.replace(r#""max_tokens":100,"#, "");
    let reserved = |_| {
        let seen = shell.chat(&body, &[Play::json(200, ANSWER)]);
        seen.record().charges[0].reserved
    };
    let reserved: Vec<u64> = (0..17).map(reserved).collect();
    assert_eq!((reserved[0], reserved[15], reserved[16]), (1_024, 1_024, 1));
}

#[test]
fn output_is_clamped_to_what_is_left_where_the_limit_says_so() {
    let clamping = |max: u64| {
        let shell = with_limits([Limit {
            clamp: true,
            ..limit("l", LimitUnit::OutputTokens)
        }]);
        let lease = fund(&shell, "l", "", 300);
        deny(&shell, "l", Refusal::Spent);
        // What was refused is what the whole request would have needed.
        let refused = account(&shell, "l", "");
        let denial = refused.denial().unwrap();
        refused.clear_denial();
        refused.deny(
            Denial {
                asked: 301,
                ..denial
            },
            0,
        );
        let body = ONE.replace(":100,", &format!(":{max},"));
        (shell.chat(&body, &[Play::json(200, ANSWER)]), lease)
    };
    let (seen, lease) = clamping(1_000);
    assert_eq!(seen.status, 200);
    assert_eq!(seen.headers["x-turnpike-max-tokens"], "300");
    let (_, head, sent) = &seen.providers[0];
    let sent = std::str::from_utf8(sent).unwrap();
    assert_eq!(sent, ONE.replace(":100,", ":300,"));
    assert_eq!(head["content-length"], sent.len().to_string());
    assert_eq!(seen.record().charges, [charge("l", "", 300, 1)]);
    assert_eq!(state(&lease), (299, 0));
    let (seen, _) = clamping(200);
    assert!(
        !seen.headers.contains_key("x-turnpike-max-tokens"),
        "it fits"
    );
}

#[test]
fn output_is_not_clamped_to_less_than_an_answer_is_worth() {
    let shell = with_limits([Limit {
        clamp: true,
        ..limit("l", LimitUnit::OutputTokens)
    }]);
    fund(&shell, "l", "", 255);
    deny(&shell, "l", Refusal::Spent);
    let seen = shell.chat(&ONE.replace(":100,", ":1000,"), &[]);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (429, "insufficient_quota")
    );
}

/// A stream of events with 256 bytes of content each, so about 64 tokens.
fn long_stream(events: usize) -> Play {
    let text = "x".repeat(256);
    let event = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let mut all = vec![event.as_str(); events];
    all.push("[DONE]");
    Play::stream(&all)
}

fn guarded(granted: u64) -> (Shell, Arc<Lease>) {
    let shell = with_limits([Limit {
        enforcement: Enforcement::Guarded.into(),
        ..limit("l", LimitUnit::OutputTokens)
    }]);
    let lease = fund(&shell, "l", "", granted);
    (shell, lease)
}

const STREAMED: &str = r#"{"model":"small-1","stream":true,"stream_options":{"include_usage":true},"max_tokens":200,"messages":[]}"#;

#[test]
fn a_guarded_stream_is_extended_while_there_is_credit() {
    let (shell, lease) = guarded(2_000);
    let seen = shell.chat(STREAMED, &[long_stream(10)]);
    assert!(!seen.text().contains("\"length\""));
    let record = seen.record();
    assert_eq!(record.charges, [charge("l", "", 1_012, 640)]);
    assert_eq!(state(&lease), (1_360, 0));
    assert_eq!(record.end, i32::from(End::Complete));
}

#[test]
fn a_guarded_stream_is_cut_when_there_is_no_more() {
    let (shell, lease) = guarded(200);
    let seen = shell.chat(STREAMED, &[long_stream(10)]);
    let (content, closing) = seen.text().split_once(r#"data: {"id":"chatcmpl-"#).unwrap();
    assert_eq!(
        content.matches("data: ").count(),
        4,
        "and none after the cut"
    );
    assert!(closing.contains(r#""finish_reason":"length""#));
    assert!(
        closing.contains(r#""completion_tokens":256"#),
        "it was asked for"
    );
    assert!(closing.ends_with("data: [DONE]\n\n"));
    let record = seen.record();
    assert_eq!(record.charges, [charge("l", "", 200, 256)]);
    assert_eq!(
        (record.finish.as_str(), record.error_code.as_str()),
        ("length", "limit_cut")
    );
    assert_eq!(record.end, i32::from(End::Complete));
    assert_eq!(seen.settled.sample.reason, "limit_cut");
    assert_eq!(state(&lease), (-56, 0));
    assert_eq!(
        shell.limits.accounts.take_needy().len(),
        1,
        "more was asked for"
    );
}

#[test]
fn a_stream_is_not_cut_by_what_is_merely_estimated_or_not_streamed() {
    let shell = with_limits([Limit {
        enforcement: Enforcement::Estimated.into(),
        ..limit("l", LimitUnit::OutputTokens)
    }]);
    fund(&shell, "l", "", 200);
    let seen = shell.chat(STREAMED, &[long_stream(10)]);
    assert!(seen.text().ends_with("data: [DONE]\n\n") && !seen.text().contains("length"));
    assert_eq!(charged(seen.record()), [("l", 640)]);
}

fn play() -> impl Strategy<Value = Play> {
    prop_oneof![
        3 => Just(Play::json(200, ANSWER)),
        1 => Just(Play::json(200, ANSWER).cut()),
        1 => Just(Play::json(503, "{}")),
        1 => Just(Play::json(429, "{}")),
        1 => Just(Play::RefuseConnection),
        1 => Just(Play::ResetBeforeHead),
        1 => Just(Play::TimeOut),
        1 => Just(Play::ClientLeaves),
    ]
}

proptest! {
    #[test]
    fn every_path_closes_what_it_reserved_exactly_once(
        runs in vec(vec(play(), 2), 1..6),
        grants in (0..400_000_u64, 0..4_u64, 0..2_u64),
        on_exceed in prop_oneof![Just(OnExceed::Reject), Just(OnExceed::SkipTarget), Just(OnExceed::Warn)],
        enforcement in prop_oneof![Just(Enforcement::Strict), Just(Enforcement::Guarded), Just(Enforcement::Estimated)],
        hosts in 0..3_usize,
        later in 0..100_000_u64,
    ) {
        let policy = |limit: Limit| Limit { on_exceed: on_exceed.into(), enforcement: enforcement.into(), ..limit };
        let mut shell = with_limits([
            policy(limit("money", LimitUnit::Money)),
            policy(limit("requests", LimitUnit::Requests)),
            policy(limit("slots", LimitUnit::InFlight)),
            Limit { providers: vec!["b".into()], ..policy(limit("tokens-b", LimitUnit::Tokens)) },
        ]);
        if hosts > 0 {
            shell.clusters = [["turnpike-provider-a", "turnpike-provider-b"][hosts - 1]].into();
        }
        let money = fund(&shell, "money", "", grants.0);
        let requests = fund(&shell, "requests", "", grants.1);
        let slots = fund(&shell, "slots", "", grants.2);
        let tokens = fund(&shell, "tokens-b", "", 10_000);
        let (granted, woken) = (Arc::clone(&money), account(&shell, "money", ""));
        let before = granted.granted();
        shell.agent = Box::new(move |_| {
            granted.raise(before + later, 0);
            woken.wake_waiters(0);
        });
        let mut settled = [0; 4];
        for plays in &runs {
            let seen = shell.chat(PAIR, plays);
            let charges = seen.settled.record.iter().flat_map(|record| &record.charges);
            let of_money = charges.clone().filter(|charge| charge.limit == "money");
            let charged: u64 = of_money.map(|charge| charge.settled).sum();
            let booked: u64 = seen.settled.record.iter().map(ledger_nusd).sum();
            prop_assert_eq!(charged, booked, "the ledger's money is the counter's");
            for charge in charges.filter(|charge| charge.epoch == 3) {
                let at = ["money", "requests", "slots", "tokens-b"].iter().position(|id| charge.limit == *id);
                settled[at.unwrap()] += charge.settled;
            }
            for lease in [&money, &requests, &slots, &tokens] {
                prop_assert_eq!(lease.reserved(), 0);
            }
            prop_assert_eq!(shell.limits.accounts.waiting(), 0);
        }
        for (lease, settled) in [&money, &requests, &slots, &tokens].into_iter().zip(settled) {
            let kept = i64::try_from(lease.granted()).unwrap() - i64::try_from(settled).unwrap();
            prop_assert_eq!(lease.available(), kept);
        }
        prop_assert_eq!(settled[2], 0, "slots come back");
    }
}
