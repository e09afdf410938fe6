use super::*;
use crate::config::{Compiled, Fault, compile};

fn limit(id: &str, subject: LimitSubject, subject_id: &str) -> wire::Limit {
    wire::Limit {
        id: id.to_owned(),
        subject: subject.into(),
        subject_id: subject_id.to_owned(),
        unit: LimitUnit::Money.into(),
        amount: 1_000,
        window: LimitWindow::Day.into(),
        ..wire::Limit::default()
    }
}

/// Teams `a` and `b` with keys `a-1`, `b-1`; providers `one`, `two`; models `m`, `x/n`.
fn compiled(limits: impl IntoIterator<Item = wire::Limit>) -> (Compiled, Vec<Fault>) {
    let mut resources = Resources::default();
    for id in ["a", "b"] {
        let team = wire::Team {
            id: id.to_owned(),
            ..wire::Team::default()
        };
        resources.teams.insert(id.to_owned(), team);
        let key = wire::VirtualKey {
            id: format!("{id}-1"),
            team: id.to_owned(),
            secrets: vec![wire::KeySecret {
                sha256: vec![id.as_bytes()[0]; 32],
                expires_at_s: 0,
            }],
            ..wire::VirtualKey::default()
        };
        resources.virtual_keys.insert(key.id.clone(), key);
    }
    for id in ["one", "two"] {
        let provider = wire::Provider {
            id: id.to_owned(),
            dialect: wire::Dialect::Openai.into(),
            authority: "provider.test".to_owned(),
            cluster_name: format!("turnpike-provider-{id}"),
            credential_place: wire::CredentialPlace::None.into(),
            ..wire::Provider::default()
        };
        resources.providers.insert(id.to_owned(), provider);
    }
    for id in ["m", "x/n"] {
        let model = wire::Model {
            id: id.to_owned(),
            targets: vec![wire::Target {
                provider: "one".to_owned(),
                ..wire::Target::default()
            }],
            ..wire::Model::default()
        };
        resources.models.insert(id.to_owned(), model);
    }
    resources.rule_set = Some(wire::RuleSet {
        rules: vec![wire::Rule {
            name: "claim".to_owned(),
            match_model: "m".to_owned(),
            models: vec!["m".to_owned()],
            ..wire::Rule::default()
        }],
    });
    for limit in limits {
        resources.limits.insert(limit.id.clone(), limit);
    }
    compile(&resources)
}

fn applying(config: &Compiled, key: &str, user: Option<&str>, to: Tried<'_>) -> Vec<String> {
    let key = config.keys.key_index(key).expect("a key");
    let team = config.keys.key(key).expect("a key").team;
    let mut indexes = Vec::new();
    let who = Subjects {
        key,
        team,
        end_user: user,
    };
    config.limits.applying(who, to, &mut indexes);
    let id = |&index: &usize| {
        config
            .limits
            .limit(index)
            .expect("a limit")
            .terms
            .id
            .to_string()
    };
    indexes.iter().map(id).collect()
}

const TO_M: Tried<'_> = Tried {
    model: "m",
    provider: 0,
    rule: None,
};

#[test]
fn a_request_falls_under_the_limits_of_its_own_subjects_in_the_order_of_ids() {
    let (config, faults) = compiled([
        limit("f-all", LimitSubject::Everything, ""),
        limit("e-each-key", LimitSubject::Key, ""),
        limit("d-team-a", LimitSubject::Team, "a"),
        limit("c-team-b", LimitSubject::Team, "b"),
        limit("b-key-a", LimitSubject::Key, "a-1"),
        limit("a-user", LimitSubject::EndUser, "a/u"),
        limit("a-each-user", LimitSubject::EndUser, ""),
    ]);
    assert_eq!(faults, []);
    let of_a = ["b-key-a", "d-team-a", "e-each-key", "f-all"];
    assert_eq!(applying(&config, "a-1", None, TO_M), of_a);
    let with_user = [
        "a-each-user",
        "a-user",
        "b-key-a",
        "d-team-a",
        "e-each-key",
        "f-all",
    ];
    assert_eq!(applying(&config, "a-1", Some("a/u"), TO_M), with_user);
    let of_b = ["a-each-user", "c-team-b", "e-each-key", "f-all"];
    assert_eq!(applying(&config, "b-1", Some("b/u"), TO_M), of_b);
}

#[test]
fn selectors_narrow_a_limit_to_models_providers_and_rules() {
    let (config, faults) = compiled([
        wire::Limit {
            models: vec!["x/*".to_owned()],
            ..limit("models", LimitSubject::Everything, "")
        },
        wire::Limit {
            providers: vec!["two".to_owned()],
            ..limit("providers", LimitSubject::Everything, "")
        },
        wire::Limit {
            rules: vec!["claim".to_owned()],
            ..limit("rules", LimitSubject::Everything, "")
        },
    ]);
    assert_eq!(faults, []);
    assert!(applying(&config, "a-1", None, TO_M).is_empty());
    let x = Tried {
        model: "x/n",
        ..TO_M
    };
    assert_eq!(applying(&config, "a-1", None, x), ["models"]);
    let two = Tried {
        provider: 1,
        ..TO_M
    };
    assert_eq!(applying(&config, "a-1", None, two), ["providers"]);
    let claimed = Tried {
        rule: Some(0),
        ..TO_M
    };
    assert_eq!(applying(&config, "a-1", None, claimed), ["rules"]);
}

#[test]
fn a_selector_of_unknown_names_selects_nothing_and_is_told() {
    let (config, faults) = compiled([wire::Limit {
        providers: vec!["gone".to_owned()],
        ..limit("l", LimitSubject::Everything, "")
    }]);
    assert_eq!(
        faults[0].to_string(),
        "limit l: providers[0]: there is none"
    );
    assert!(applying(&config, "a-1", None, TO_M).is_empty());
}

#[test]
fn a_limit_that_cannot_mean_what_it_says_is_left_out_and_told() {
    let cases = [
        (
            "window",
            wire::Limit {
                window: LimitWindow::None.into(),
                ..limit("l", LimitSubject::Everything, "")
            },
        ),
        (
            "window",
            wire::Limit {
                unit: LimitUnit::InFlight.into(),
                ..limit("l", LimitSubject::Everything, "")
            },
        ),
        (
            "amount",
            wire::Limit {
                amount: MAX_AMOUNT + 1,
                ..limit("l", LimitSubject::Everything, "")
            },
        ),
        (
            "subject",
            wire::Limit {
                subject: 0,
                ..limit("l", LimitSubject::Everything, "")
            },
        ),
        ("subject_id", limit("l", LimitSubject::Team, "gone")),
        ("subject_id", limit("l", LimitSubject::Everything, "a")),
    ];
    for (place, wire) in cases {
        let (config, faults) = compiled([wire]);
        assert_eq!(faults[0].place, place);
        assert!(config.limits.is_empty());
    }
}

#[test]
fn defaults_are_guarded_for_money_estimated_for_tokens_and_a_quarter_of_burst() {
    let tokens = wire::Limit {
        unit: LimitUnit::Tokens.into(),
        window: LimitWindow::Minute.into(),
        ..limit("tokens", LimitSubject::Key, "")
    };
    let (config, _) = compiled([limit("money", LimitSubject::Key, ""), tokens]);
    let money = config.limits.limit(0).expect("money");
    assert_eq!(money.enforcement, Enforcement::Guarded);
    assert_eq!(money.on_exceed, OnExceed::Reject);
    assert_eq!(money.terms.kind, Kind::Credit);
    let tokens = config.limits.limit(1).expect("tokens");
    assert_eq!(tokens.enforcement, Enforcement::Estimated);
    let rate = Kind::Rate {
        window_us: MINUTE_US,
        burst: 250,
        amount: 1_000,
    };
    assert_eq!(tokens.terms.kind, rate);
}
