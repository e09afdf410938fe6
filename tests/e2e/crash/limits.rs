//! Envoy is killed during a second attempt: what strict limits are charged is what the ledger says.

use std::time::Duration;

use proto::{
    config::v1::{LimitUnit, LimitWindow},
    metering::v1::{End, UsageSource, Verdict},
};
use serde_json::json;
use tests::{
    http::Request,
    stack::{Options, Stack},
    wait,
};
use xtask::process::Ask;

use super::{RECOVERED, endless, has};
use crate::limits::limit;

/// The second target costs twice as much.
const PRICES: &str = "\
kind: PriceBook
spec:
  prices:
  - provider: demo
    upstreamModel: first
    input: 2.50
    output: 10.00
  - provider: demo
    upstreamModel: second
    input: 5.00
    output: 20.00
";
const INPUT_NUSD: u64 = 5_000;
const OUTPUT_NUSD: u64 = 20_000;
const MAX_TOKENS: u64 = 700;
const AMOUNT_NUSD: u64 = 1_000_000_000;

#[test]
fn a_crash_in_the_second_attempt_charges_strict_limits_what_the_ledger_says() {
    let options = Options::default();
    let mut stack = Stack::start(&options);
    stack.apply(PRICES);
    let key = stack.key("second");
    for (id, unit, amount) in [
        ("money", LimitUnit::Money, AMOUNT_NUSD),
        ("output", LimitUnit::OutputTokens, 1_000_000),
        ("requests", LimitUnit::Requests, 100),
    ] {
        stack.limit(id, limit(unit, LimitWindow::Lifetime, amount));
    }
    let body = json!({
        "model": "pair", "stream": true, "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": "some words"}],
    });
    let mut open = Request::chat(&key, &body)
        .header("x-request-id", "second")
        .script(&json!([{"status": 503}, endless()]))
        .open(stack.port())
        .expect("sent");
    open.read_until(|seen| has(seen, "\"content\""))
        .expect("content");
    assert_eq!(stack.served().len(), 2, "both attempts at the provider");
    stack
        .envoys
        .remove(0)
        .process
        .stop(Ask::Kill, Duration::from_secs(5));
    stack
        .envoys
        .push(stack.start_envoy("envoy-0", &options).expect("it starts"));

    let record = stack.record_within(RECOVERED, "second").record;
    assert_eq!(record.end(), End::Crash);
    let [first, second] = record.attempts.as_slice() else {
        panic!("two attempts: {record:?}");
    };
    assert_eq!((first.number, second.number), (1, 2));
    assert_eq!((first.verdict(), first.status), (Verdict::NotBilled, 503));
    assert_eq!(first.upstream_model, "first");
    assert!(first.costs.is_empty(), "{first:?}");
    assert_eq!((second.verdict(), second.status), (Verdict::Unknown, 200));
    assert_eq!(second.upstream_model, "second");
    let usage = second.usage.as_ref().expect("usage");
    let bytes = u64::try_from(body.to_string().len()).expect("fits");
    assert_eq!(usage.source(), UsageSource::Estimated);
    assert_eq!(usage.method, "bound");
    assert_eq!((usage.input, usage.output), (bytes, MAX_TOKENS));

    let costs = second.costs.iter().filter_map(|cost| cost.cost_nusd);
    let cost_nusd: u64 = costs.sum();
    assert_eq!(cost_nusd, bytes * INPUT_NUSD + MAX_TOKENS * OUTPUT_NUSD);
    for (id, settled) in [
        ("money", cost_nusd),
        ("output", MAX_TOKENS),
        ("requests", 1),
    ] {
        let charged = record.charges.iter().filter(|charge| charge.limit == id);
        assert_eq!(
            charged.map(|charge| charge.settled).sum::<u64>(),
            settled,
            "{id}: {record:?}"
        );
        let settled = i64::try_from(settled).expect("fits");
        wait::until(RECOVERED, &format!("the counter of {id}"), || {
            (stack.bucket(id).settled == settled).then_some(())
        });
    }
}
