use proto::config::v1::TierPrice;
use proto::metering::v1::{Caller, UsageSource};

use super::*;

fn terms() -> OpenTerms<'static> {
    OpenTerms {
        text_bytes: 400,
        estimates: true,
        units: &[],
    }
}

fn sent() -> CrashedAttempt {
    CrashedAttempt {
        attempt: Attempt {
            number: 1,
            ..Attempt::default()
        },
        is_sent: true,
        visible_bytes: 80,
        reasoning_bytes: 20,
        price: Some(Price {
            input_pusd: Some(1_000_000),
            output_pusd: Some(2_000_000),
            ..Price::default()
        }),
        ..CrashedAttempt::default()
    }
}

fn settled_one(terms: &OpenTerms<'_>, crashed: CrashedAttempt) -> Attempt {
    let mut record = UsageRecord::default();
    settle(&mut record, terms, vec![crashed]);
    assert_eq!(record.end(), End::Crash);
    record.attempts.remove(0)
}

fn source(attempt: &Attempt) -> UsageSource {
    attempt.usage.as_ref().unwrap().source()
}

#[test]
fn an_attempt_of_unknown_fate_is_an_estimate_of_what_was_seen() {
    let attempt = settled_one(&terms(), sent());
    assert_eq!(attempt.verdict(), Verdict::Unknown);
    let usage = attempt.usage.as_ref().unwrap();
    assert_eq!(usage.source(), UsageSource::Estimated);
    assert_eq!(usage.method, "bytes/4");
    assert_eq!((usage.input, usage.output, usage.reasoning), (100, 20, 5));
    let cost: u64 = attempt.costs.iter().filter_map(|cost| cost.cost_nusd).sum();
    assert_eq!(cost, 140_000);
}

#[test]
fn half_a_request_is_not_billed() {
    let unsent = CrashedAttempt {
        is_sent: false,
        ..sent()
    };
    let attempt = settled_one(&terms(), unsent);
    assert_eq!(attempt.verdict(), Verdict::NotBilled);
    assert_eq!(source(&attempt), UsageSource::None);
    assert!(attempt.costs.is_empty());
}

#[test]
fn a_deployment_that_voids_unknown_usage_charges_nothing_for_it() {
    let void = OpenTerms {
        estimates: false,
        ..terms()
    };
    let attempt = settled_one(&void, sent());
    assert_eq!(attempt.verdict(), Verdict::Unknown);
    assert_eq!(source(&attempt), UsageSource::None);
}

#[test]
fn what_was_reported_is_not_estimated_and_an_unknown_price_is_null() {
    let reported = Usage {
        input: 7,
        output: 3,
        ..Usage::default()
    };
    let crashed = CrashedAttempt {
        reported: Some(reported),
        price: None,
        ..sent()
    };
    let attempt = settled_one(&terms(), crashed);
    assert_eq!(source(&attempt), UsageSource::Reported);
    let costs: Vec<_> = attempt
        .costs
        .iter()
        .map(|cost| (cost.tokens, cost.cost_nusd))
        .collect();
    assert_eq!(costs, [(7, None), (3, None)]);
}

#[test]
fn what_was_known_at_admission_stays() {
    let mut record = UsageRecord {
        exchange_id: vec![1; 16],
        caller: Some(Caller {
            key: "key".to_owned(),
            ..Caller::default()
        }),
        admitted_at_us: 5,
        ..UsageRecord::default()
    };
    let expected = UsageRecord {
        end: End::Crash.into(),
        ..record.clone()
    };
    settle(&mut record, &terms(), Vec::new());
    assert_eq!(record, expected);
}

/// Charges in these units, each with 110 reserved on a lease, or on none.
fn charged(units: &[LimitUnit], epoch: u64, crashed: CrashedAttempt) -> Vec<u64> {
    let charge = Charge {
        epoch,
        reserved: 110,
        ..Charge::default()
    };
    let mut record = UsageRecord {
        charges: vec![charge; 7],
        ..UsageRecord::default()
    };
    settle(&mut record, &OpenTerms { units, ..terms() }, vec![crashed]);
    record.charges.iter().map(|charge| charge.settled).collect()
}

const UNITS: [LimitUnit; 6] = [
    LimitUnit::Requests,
    LimitUnit::Tokens,
    LimitUnit::InputTokens,
    LimitUnit::UncachedInputTokens,
    LimitUnit::OutputTokens,
    LimitUnit::Money,
];

#[test]
fn a_charge_is_what_the_record_says_whatever_was_reserved() {
    let expected = [1, 120, 100, 100, 20, 140_000, 110];
    assert_eq!(charged(&UNITS, 1, sent()), expected);
    assert_eq!(charged(&UNITS, 0, sent()), expected);
}

#[test]
fn what_never_began_is_charged_nothing() {
    let mut record = UsageRecord {
        charges: vec![Charge {
            reserved: 1,
            ..Charge::default()
        }],
        ..UsageRecord::default()
    };
    let units = &[LimitUnit::Requests];
    settle(&mut record, &OpenTerms { units, ..terms() }, Vec::new());
    assert_eq!(record.charges[0].settled, 0);
}

#[test]
fn where_a_strict_limit_counts_the_record_has_the_bound_and_its_cost() {
    let bounded = CrashedAttempt {
        most: Most {
            input: Some(500),
            output: Some(60),
        },
        ..sent()
    };
    let attempt = settled_one(&terms(), bounded.clone());
    let usage = attempt.usage.as_ref().unwrap();
    assert_eq!((usage.input, usage.output), (500, 60));
    assert_eq!(usage.method, "bound");
    assert_eq!(known_nusd(&attempt.costs), 620_000);
    let charges = charged(&UNITS, 1, bounded);
    assert_eq!(charges, [1, 560, 500, 500, 60, 620_000, 110]);
}

#[test]
fn a_crash_is_priced_as_the_dearest_tier_unless_one_was_asked_for_or_served() {
    let tier = |tier: &str, factor_permille| TierPrice {
        tier: tier.to_owned(),
        factor_permille,
        ..TierPrice::default()
    };
    let price = sent().price.map(|price| Price {
        tiers: vec![tier("flex", 500), tier("priority", 2_000)],
        ..price
    });
    for (said, asked, expected, cost_nusd) in [
        ("", "", "priority", 280_000),
        ("", "flex", "flex", 70_000),
        ("default", "", "default", 140_000),
    ] {
        let mut crashed = CrashedAttempt {
            asked_tier: asked.to_owned(),
            price: price.clone(),
            ..sent()
        };
        let usage = crashed.attempt.usage.get_or_insert_default();
        said.clone_into(&mut usage.service_tier);
        let attempt = settled_one(&terms(), crashed);
        assert_eq!(attempt.usage.unwrap().service_tier, expected);
        assert_eq!(known_nusd(&attempt.costs), cost_nusd);
    }
}

#[test]
fn attempts_that_became_one_are_each_as_large_as_it_could_be() {
    let several = CrashedAttempt { more: 2, ..sent() };
    let attempt = settled_one(&terms(), several.clone());
    let usage = attempt.usage.as_ref().unwrap();
    assert_eq!((usage.input, usage.output), (300, 20));
    assert_eq!(usage.source(), UsageSource::Estimated);
    let bounded = CrashedAttempt {
        most: Most {
            input: Some(500),
            output: Some(60),
        },
        ..several.clone()
    };
    let usage = settled_one(&terms(), bounded).usage.unwrap();
    assert_eq!((usage.input, usage.output), (1_500, 180));
    let unbilled = CrashedAttempt {
        attempt: Attempt {
            verdict: Verdict::NotBilled.into(),
            ..several.attempt.clone()
        },
        ..several
    };
    assert_eq!(settled_one(&terms(), unbilled).verdict(), Verdict::Unknown);
}

#[test]
fn each_attempt_is_charged_for_what_it_held() {
    let charge = |limit: &str, reserved| Charge {
        limit: limit.to_owned(),
        epoch: 1,
        reserved,
        ..Charge::default()
    };
    let mut record = UsageRecord {
        charges: vec![charge("requests", 1), charge("money", 150_000)],
        ..UsageRecord::default()
    };
    let open = |same_as, charge: Charge, unit| OpenCharge {
        same_as,
        charge,
        unit,
    };
    let second = CrashedAttempt {
        charges: Some(vec![
            open(Some(1), charge("", 150_000), LimitUnit::Money),
            open(None, charge("output", 64), LimitUnit::OutputTokens),
            open(Some(9), charge("", 5), LimitUnit::Tokens),
        ]),
        ..sent()
    };
    let units = &[LimitUnit::Requests, LimitUnit::Money];
    let terms = OpenTerms { units, ..terms() };
    settle(&mut record, &terms, vec![sent(), second]);
    let charges: Vec<_> = record
        .charges
        .iter()
        .map(|charge| (charge.limit.as_str(), charge.reserved, charge.settled))
        .collect();
    assert_eq!(
        charges,
        [
            ("requests", 1, 1),
            ("money", 300_000, 280_000),
            ("output", 64, 20)
        ]
    );
}

#[test]
fn what_was_reported_is_charged_in_full() {
    let reported = Usage {
        input: 300,
        cached_input: 100,
        output: 50,
        ..Usage::default()
    };
    let crashed = CrashedAttempt {
        reported: Some(reported),
        ..sent()
    };
    let charges = charged(&UNITS, 1, crashed);
    assert_eq!(charges, [1, 350, 300, 200, 50, 400_000, 110]);
}

#[test]
fn money_without_a_price_is_charged_as_the_ledger_has_it() {
    let unpriced = CrashedAttempt {
        price: None,
        ..sent()
    };
    assert_eq!(charged(&[LimitUnit::Money], 1, unpriced)[0], 0);
}
