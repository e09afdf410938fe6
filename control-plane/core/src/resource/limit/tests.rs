use super::*;

fn daily() -> Limit {
    Limit {
        id: "daily".into(),
        display_name: String::new(),
        subject: LimitSubject::Key,
        subject_id: String::new(),
        models: vec![],
        providers: vec![],
        rules: vec![],
        unit: LimitUnit::Money,
        amount: 5_000_000_000,
        window: LimitWindow::Day,
        time_zone: "Europe/Berlin".into(),
        enforcement: None,
        on_exceed: None,
        on_unavailable: None,
        outage_allowance: 0,
        on_unbounded: None,
        burst: 0,
        clamp: true,
        thresholds: vec![50, 80, 100],
        disabled: false,
    }
}

fn fields(limit: &Limit) -> Vec<String> {
    match limit.validate() {
        Ok(()) => vec![],
        Err(faults) => faults.into_iter().map(|fault| fault.field).collect(),
    }
}

#[test]
fn a_limit_and_its_wire_form_are_two_forms_of_one_thing() {
    let limit = daily();
    limit.validate().unwrap();
    assert_eq!(Limit::from_wire(limit.to_wire(), String::new()), Ok(limit));
}

#[test]
fn nodes_are_sent_every_default() {
    let published = daily().to_config();
    assert_eq!(published.enforcement, Enforcement::Guarded.to_wire());
    assert_eq!(published.on_exceed, OnExceed::Reject.to_wire());
    assert_eq!(published.on_unavailable, OnUnavailable::Reject.to_wire());
    assert_eq!(published.on_unbounded, OnUnbounded::Reject.to_wire());
    let tokens = Limit {
        unit: LimitUnit::Tokens,
        ..daily()
    };
    assert_eq!(
        tokens.to_config().enforcement,
        Enforcement::Estimated.to_wire()
    );
}

#[test]
fn what_does_not_fit_together_is_refused_at_its_place() {
    type Break = fn(&mut Limit);
    let cases: [(&str, Break); 14] = [
        ("limit_id", |l| l.id = "Daily".into()),
        ("values.subject_id", |l| l.subject_id = "a/b".into()),
        ("values.subject_id", |l| {
            l.subject = LimitSubject::Everything;
            l.subject_id = "t".into();
        }),
        ("values.subject_id", |l| {
            l.subject = LimitSubject::EndUser;
            l.subject_id = "ann".into();
        }),
        ("models[0]", |l| l.models = vec!["auto".into()]),
        ("values.providers[0]", |l| l.providers = vec![String::new()]),
        ("values.rules[0]", |l| l.rules = vec![String::new()]),
        ("values.window", |l| {
            l.window = LimitWindow::None;
            l.time_zone = String::new();
            l.thresholds = vec![];
        }),
        ("values.time_zone", |l| l.time_zone = "Mars/Olympus".into()),
        ("values.amount", |l| l.amount = MAX_AMOUNT + 1),
        ("values.burst", |l| l.burst = 1),
        ("values.thresholds", |l| l.thresholds = vec![80, 50]),
        ("values.enforcement", |l| {
            l.unit = LimitUnit::Requests;
            l.clamp = false;
            l.enforcement = Some(Enforcement::Estimated);
        }),
        ("values.outage_allowance", |l| {
            l.on_unavailable = Some(OnUnavailable::Allow);
        }),
    ];
    for (field, break_it) in cases {
        let mut limit = daily();
        break_it(&mut limit);
        assert_eq!(fields(&limit), [field]);
    }
}

#[test]
fn an_end_user_is_named_with_its_team() {
    let mut limit = daily();
    limit.subject = LimitSubject::EndUser;
    limit.subject_id = "team-a/ann/home".into();
    limit.validate().unwrap();
}

#[test]
fn a_kind_that_is_missing_or_not_known_is_refused() {
    let wire = config::Limit {
        unit: 0,
        on_exceed: 99,
        ..daily().to_wire()
    };
    let faults = Limit::from_wire(wire, String::new()).unwrap_err();
    let fields: Vec<_> = faults.into_iter().map(|fault| fault.field).collect();
    assert_eq!(fields, ["values.unit", "values.on_exceed"]);
}
