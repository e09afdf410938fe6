use proto::metering::v1::Caller;

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
fn an_estimate_is_charged_no_more_than_was_reserved_for_it() {
    assert_eq!(charged(&UNITS, 1, sent()), [1, 110, 100, 100, 20, 110, 110]);
}

#[test]
fn what_was_let_through_without_credit_is_charged_as_it_is() {
    let charges = charged(&UNITS, 0, sent());
    assert_eq!(charges, [1, 120, 100, 100, 20, 140_000, 110]);
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
fn money_without_a_price_is_charged_as_it_was_reserved() {
    let unpriced = CrashedAttempt {
        price: None,
        ..sent()
    };
    assert_eq!(charged(&[LimitUnit::Money], 1, unpriced)[0], 110);
}
