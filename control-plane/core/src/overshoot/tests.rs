use proto::config::v1::{
    Enforcement, Limit, LimitSubject, LimitUnit, LimitWindow, Model, OnExceed, OnUnavailable,
    OnUnbounded, OnUnknownPrice, Price, Rates, Target, TierPrice,
};

use super::{Cause, Deployment, Part};

const USD: u64 = 1_000_000_000;

fn money(enforcement: Enforcement) -> Limit {
    Limit {
        id: "budget".into(),
        subject: LimitSubject::Team.into(),
        unit: LimitUnit::Money.into(),
        amount: 25 * USD,
        window: LimitWindow::Month.into(),
        enforcement: enforcement.into(),
        ..Limit::default()
    }
}

fn in_flight(subject: LimitSubject, subject_id: &str, amount: u64) -> Limit {
    Limit {
        id: format!("slots-{amount}"),
        subject: subject.into(),
        subject_id: subject_id.into(),
        unit: LimitUnit::InFlight.into(),
        amount,
        window: LimitWindow::None.into(),
        enforcement: Enforcement::Strict.into(),
        ..Limit::default()
    }
}

/// One model of 100,000 tokens at 2 USD a million in and 10 USD out.
fn deployment(limits: &[Limit]) -> Deployment {
    let target = Target {
        provider: "acme".into(),
        upstream_model: "large-1".into(),
        ..Target::default()
    };
    let model = Model {
        id: "large".into(),
        context_window: 100_000,
        targets: vec![target],
        ..Model::default()
    };
    let mut deployment = Deployment {
        limits: limits.to_vec(),
        models: vec![model],
        nodes: 3,
        now_s: 1_000,
        ..Deployment::default()
    };
    deployment.prices.prices.push(Price {
        provider: "acme".into(),
        upstream_model: "large-1".into(),
        input_pusd: Some(2_000_000),
        output_pusd: Some(10_000_000),
        ..Price::default()
    });
    deployment
}

fn parts(deployment: &Deployment) -> Vec<Part> {
    deployment.overshoot("budget", "blue").unwrap().parts
}

#[test]
fn a_strict_limit_is_not_exceeded() {
    let deployment = deployment(&[money(Enforcement::Strict)]);
    let overshoot = deployment.overshoot("budget", "blue").unwrap();
    assert_eq!((overshoot.amount(), overshoot.parts.len()), (Some(0), 0));
    assert_eq!(deployment.overshoot("nosuch", ""), None);
}

#[test]
fn an_estimate_is_exceeded_by_open_requests_at_the_dearest_rate() {
    let mut deployment = deployment(&[money(Enforcement::Guarded)]);
    let [part] = parts(&deployment).try_into().unwrap();
    assert_eq!((part.cause, part.count), (Cause::Estimates, None));
    // 100,000 tokens at 10 USD a million are 1 USD.
    assert_eq!(part.each, Some(USD + 8));
    let slots = in_flight(LimitSubject::Everything, "", 20);
    deployment.limits.push(slots);
    let overshoot = deployment.overshoot("budget", "blue").unwrap();
    assert_eq!(overshoot.amount(), Some(20 * (USD + 8)));
    // A dearer tier is one that a request may get.
    deployment.prices.prices[0].tiers.push(TierPrice {
        tier: "priority".into(),
        factor_permille: 2500,
        ..TierPrice::default()
    });
    assert_eq!(parts(&deployment)[0].each, Some(5 * USD / 2 + 8));
    // One that is yet to come may hold when it ends, one that was replaced does not.
    let price = deployment.prices.prices[0].clone();
    for (from_s, output_pusd) in [(500, 1_000_000), (2_000, 20_000_000)] {
        deployment.prices.prices.push(Price {
            effective_from_s: from_s,
            output_pusd: Some(output_pusd),
            tiers: vec![],
            ..price.clone()
        });
    }
    assert_eq!(parts(&deployment)[0].each, Some(2 * USD + 8));
}

#[test]
fn only_limits_that_hold_for_every_request_of_the_bucket_count_open_ones() {
    let count = |slots: Limit| {
        let deployment = deployment(&[money(Enforcement::Guarded), slots]);
        parts(&deployment)[0].count
    };
    let selecting = Limit {
        models: vec!["large".into()],
        ..in_flight(LimitSubject::Everything, "", 5)
    };
    let warning = Limit {
        on_exceed: OnExceed::Warn.into(),
        ..in_flight(LimitSubject::Everything, "", 5)
    };
    let lenient = Limit {
        on_unavailable: OnUnavailable::Allow.into(),
        outage_allowance: 2,
        ..in_flight(LimitSubject::Team, "", 5)
    };
    assert_eq!(count(in_flight(LimitSubject::Team, "blue", 5)), Some(5));
    assert_eq!(count(in_flight(LimitSubject::Team, "red", 5)), None);
    assert_eq!(count(in_flight(LimitSubject::Key, "", 5)), None);
    assert_eq!(count(selecting), None);
    assert_eq!(count(warning), None);
    assert_eq!(count(lenient), Some(5 + 2 * 3));
}

#[test]
fn what_lacks_a_window_or_a_price_is_named() {
    let mut deployment = deployment(&[money(Enforcement::Guarded)]);
    deployment.models[0].context_window = 0;
    let [part] = parts(&deployment).try_into().unwrap();
    assert_eq!((part.each, part.missing.as_str()), (None, "models/large"));
    deployment.models[0].context_window = 100;
    deployment.prices.prices.clear();
    // A guarded limit leaves out what has no price; one that estimates lets it through.
    assert_eq!(parts(&deployment)[0].each, Some(0));
    deployment.limits[0].on_unbounded = OnUnbounded::Estimate.into();
    let unpriced = &parts(&deployment)[1];
    assert_eq!(unpriced.cause, Cause::Unpriced);
    assert_eq!(unpriced.missing, "acme/large-1");
    deployment.settings.on_unknown_price = OnUnknownPrice::Deny.into();
    assert_eq!(parts(&deployment).len(), 1);
    deployment.settings.on_unknown_price = OnUnknownPrice::Default.into();
    deployment.settings.default_price = Some(Rates {
        input_pusd: Some(1_000_000),
        output_pusd: Some(1_000_000),
        ..Rates::default()
    });
    // 100 tokens at 1 USD a million.
    assert_eq!(parts(&deployment)[0].each, Some(100_000 + 8));
}

#[test]
fn outages_bursts_and_warnings_have_their_parts() {
    let minute = Limit {
        unit: LimitUnit::Requests.into(),
        amount: 600,
        window: LimitWindow::Minute.into(),
        on_unavailable: OnUnavailable::Allow.into(),
        outage_allowance: 10,
        ..money(Enforcement::Strict)
    };
    let mut deployment = deployment(&[minute]);
    let overshoot = deployment.overshoot("budget", "").unwrap();
    let causes: Vec<Cause> = overshoot.parts.iter().map(|part| part.cause).collect();
    assert_eq!(causes, [Cause::Outage, Cause::Burst]);
    assert_eq!(overshoot.amount(), Some(10 * 3 + 150));
    deployment.limits[0].on_exceed = OnExceed::Warn.into();
    let overshoot = deployment.overshoot("budget", "").unwrap();
    assert_eq!(overshoot.parts[0].cause, Cause::Warning);
    assert_eq!(overshoot.amount(), None);
    deployment.limits[0].disabled = true;
    assert_eq!(parts(&deployment)[0].cause, Cause::Disabled);
}
