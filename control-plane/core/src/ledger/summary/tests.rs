use proto::metering::v1::{Attempt, Caller, ClassCost, Decision, Usage};

use super::*;

const NOW_US: i64 = 1_800_000_000_000_000;

fn attempt(provider: &str, input: u64, cost_nusd: Option<u64>, source: UsageSource) -> Attempt {
    Attempt {
        provider: provider.into(),
        upstream_model: "large-1".into(),
        model: "large".into(),
        usage: Some(Usage {
            input,
            output: 10,
            source: source.into(),
            ..Default::default()
        }),
        costs: vec![ClassCost {
            token_class: 1,
            tokens: input,
            cost_nusd,
        }],
        ..Default::default()
    }
}

fn record(attempts: Vec<Attempt>) -> UsageRecord {
    UsageRecord {
        request_id: "r-1".into(),
        admitted_at_us: NOW_US,
        caller: Some(Caller {
            key: "k".into(),
            team: "t".into(),
            end_user: String::new(),
        }),
        decision: Some(Decision {
            model: "planned".into(),
            rule: "fast".into(),
            ..Default::default()
        }),
        attempts,
        price_version: 3,
        ..Default::default()
    }
}

fn read(record: &UsageRecord) -> (Summary, Vec<(RollupKey, RollupSums)>) {
    let mut rollups = Rollups::default();
    let summary = Summary::read(&record.encode_to_vec(), NOW_US, &mut rollups).unwrap();
    let rows = rollups.iter().map(|(k, s)| (k.clone(), *s)).collect();
    (summary, rows)
}

#[test]
fn each_attempt_is_filed_where_it_happened_and_the_request_with_the_last() {
    let (summary, rows) = read(&record(vec![
        attempt("first", 5, Some(7), UsageSource::Estimated),
        attempt("second", 8, None, UsageSource::Reported),
    ]));
    assert_eq!(
        (summary.provider.as_str(), summary.model.as_str()),
        ("second", "large")
    );
    let told: Vec<_> = rows
        .iter()
        .map(|(k, s)| {
            (
                k.provider.as_str(),
                k.estimated,
                s.requests,
                s.attempts,
                s.input_tokens,
                s.cost_nusd,
                s.unpriced_attempts,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("first", true, 0, 1, 5, 7, 0),
            ("second", false, 1, 1, 8, 0, 1)
        ]
    );
    let mut total = RollupSums::default();
    rows.iter().for_each(|(_, sums)| total.add(sums));
    assert_eq!(total, summary.sums);
}

#[test]
fn an_exchange_that_reached_no_provider_counts_as_a_request() {
    let (summary, rows) = read(&record(vec![]));
    assert_eq!(
        (summary.model.as_str(), summary.provider.as_str()),
        ("planned", "")
    );
    assert_eq!((rows[0].1.requests, rows[0].1.attempts), (1, 0));
}

#[test]
fn slots_start_every_quarter_of_an_hour() {
    for (at_us, slot_s) in [(0, 0), (899_999_999, 0), (900_000_000, 900), (-1, -900)] {
        assert_eq!(super::super::rollup::slot_of(at_us), slot_s, "{at_us}");
    }
}

#[test]
fn a_clock_that_is_off_is_kept_within_bounds() {
    for (admitted, kept) in [
        (i64::MAX, NOW_US + MAX_AHEAD_US),
        (i64::MIN, NOW_US - MAX_LATE_US),
    ] {
        let mut wrong = record(vec![]);
        wrong.admitted_at_us = admitted;
        assert_eq!(read(&wrong).0.admitted_at_us, kept);
    }
}

#[test]
fn texts_and_numbers_that_postgres_cannot_hold_are_made_fit() {
    let mut odd = record(vec![
        attempt(
            "p",
            u64::MAX,
            Some(u64::MAX),
            UsageSource::Reported
        );
        2
    ]);
    odd.request_id = "a\0b".into();
    odd.caller = Some(Caller {
        end_user: "ü".repeat(200),
        ..Default::default()
    });
    let (summary, _) = read(&odd);
    assert_eq!(summary.request_id, "a\u{fffd}b");
    assert_eq!(summary.end_user.len(), 256);
    assert_eq!(
        (summary.sums.input_tokens, summary.sums.cost_nusd),
        (i64::MAX, i64::MAX)
    );
}

#[test]
fn bytes_that_are_no_record_add_nothing() {
    let mut rollups = Rollups::default();
    assert_eq!(
        Summary::read(&[0xff; 9], NOW_US, &mut rollups),
        Err(Undecodable)
    );
    assert!(rollups.is_empty());
}
