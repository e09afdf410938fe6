use proto::config::v1::*;

use super::*;
use crate::fixture::*;

/// The faults of a changed fixture, as they print.
fn faults(change: impl FnOnce(&mut Resources)) -> Vec<String> {
    let mut resources = resources();
    change(&mut resources);
    compile(&resources)
        .1
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[track_caller]
fn assert_fault(change: impl FnOnce(&mut Resources), expected: &str) {
    let told = faults(change);
    assert!(
        told.iter().any(|fault| fault.starts_with(expected)),
        "{expected} not in {told:#?}"
    );
}

#[test]
fn a_sound_config_has_no_fault_and_tells_its_version_and_clusters() {
    let config = compiled(&resources());
    assert_eq!(config.version(), 42);
    let clusters: Vec<&str> = config.expected_clusters().collect();
    assert_eq!(clusters, ["turnpike-provider-a", "turnpike-provider-b"]);
    assert_eq!(*config.settings(), super::super::Settings::default());
    assert_eq!(compile(&Resources::default()).1, []);
}

#[test]
fn faults_of_keys_and_teams_name_their_place() {
    fn alpha(all: &mut Resources) -> &mut VirtualKey {
        all.virtual_keys.get_mut("alpha").unwrap()
    }
    assert_fault(
        |all| alpha(all).team = "green".into(),
        "virtual_key alpha: team:",
    );
    assert_fault(
        |all| alpha(all).secrets.clear(),
        "virtual_key alpha: secrets:",
    );
    assert_fault(
        |all| alpha(all).secrets = vec![secret("x"); 4],
        "virtual_key alpha: secrets:",
    );
    assert_fault(
        |all| alpha(all).secrets[0].sha256.truncate(31),
        "virtual_key alpha: secrets[0].sha256:",
    );
    assert_fault(
        |all| alpha(all).models = vec!["a".into(), "*".into()],
        "virtual_key alpha: models[1]:",
    );
    assert_fault(
        |all| alpha(all).id = "other".into(),
        "virtual_key alpha: id:",
    );
    assert_fault(
        |all| all.virtual_keys.get_mut("beta").unwrap().secrets = vec![secret(ALPHA)],
        "virtual_key beta: secrets: is in use already",
    );
    let upper = Team {
        id: "Red Team".into(),
        ..Default::default()
    };
    assert_fault(
        |all| drop(all.teams.insert("Red Team".into(), upper)),
        "team Red Team: id:",
    );
}

#[test]
fn faults_of_providers_and_credentials_name_their_place() {
    fn a(all: &mut Resources) -> &mut Provider {
        all.providers.get_mut("a").unwrap()
    }
    assert_fault(|all| a(all).dialect = 0, "provider a: dialect:");
    assert_fault(|all| a(all).dialect = 99, "provider a: dialect:");
    assert_fault(
        |all| a(all).credential_place = 0,
        "provider a: credential_place:",
    );
    assert_fault(
        |all| a(all).authority = "a b".into(),
        "provider a: authority:",
    );
    assert_fault(
        |all| a(all).authority = String::new(),
        "provider a: authority:",
    );
    for prefix in ["v1", "/v1/", "/", "/v1?x", "/v 1"] {
        assert_fault(
            |all| a(all).path_prefix = prefix.into(),
            "provider a: path_prefix:",
        );
    }
    assert_fault(
        |all| a(all).cluster_name = String::new(),
        "provider a: cluster_name:",
    );
    fn cred(all: &mut Resources) -> &mut Credential {
        all.credentials.get_mut("cred-a").unwrap()
    }
    assert_fault(
        |all| cred(all).provider = "z".into(),
        "credential cred-a: provider:",
    );
    assert_fault(
        |all| cred(all).team = "z".into(),
        "credential cred-a: team:",
    );
    assert_fault(|all| cred(all).key = "z".into(), "credential cred-a: key:");
    assert_fault(
        |all| (cred(all).team, cred(all).key) = ("red".into(), "alpha".into()),
        "credential cred-a: key:",
    );
    assert_fault(|all| cred(all).weight = 0, "credential cred-a: weight:");
    assert_fault(|all| cred(all).weight = 1001, "credential cred-a: weight:");
    for bad in ["", " \n", "two words", "line\nbreak"] {
        assert_fault(
            |all| cred(all).secret = bad.into(),
            "credential cred-a: secret:",
        );
    }
    assert_eq!(
        faults(|all| cred(all).secret.push('\n')),
        Vec::<String>::new()
    );
    for told in faults(|all| cred(all).secret.push(' ')) {
        assert!(!told.contains("CANARY"), "{told}");
    }
}

#[test]
fn faults_of_models_name_their_place() {
    fn small(all: &mut Resources) -> &mut Model {
        all.models.get_mut("small-1").unwrap()
    }
    assert_fault(|all| small(all).targets.clear(), "model small-1: targets:");
    assert_fault(
        |all| small(all).targets.push(target("z", "")),
        "model small-1: targets[1].provider:",
    );
    assert_fault(
        |all| small(all).targets[0].upstream_model = "a\nb".into(),
        "model small-1: targets[0].upstream_model:",
    );
    assert_fault(
        |all| small(all).capabilities = vec![1, 0],
        "model small-1: capabilities[1]:",
    );
    assert_fault(
        |all| small(all).efforts = vec![9],
        "model small-1: efforts[0]:",
    );
    for name in ["auto", "auto:low", "auto:x", "a*", "a\tb", &"x".repeat(129)] {
        let bad = model(name, vec![target("a", "")]);
        assert_fault(
            |all| drop(all.models.insert(name.into(), bad)),
            &format!("model {name}: id:"),
        );
    }
    let fine = model("automatic", vec![target("a", "")]);
    assert_eq!(
        faults(|all| drop(all.models.insert("automatic".into(), fine))),
        Vec::<String>::new()
    );
}

#[test]
fn faults_of_rules_name_their_place() {
    let set = |rules: Vec<Rule>| move |all: &mut Resources| all.rule_set = Some(RuleSet { rules });
    let all = rule("all", &["small-1"]);
    assert_fault(
        set(vec![all.clone(), all.clone()]),
        "rule_set default: rules[1].name:",
    );
    assert_fault(
        set(vec![rule("", &["small-1"])]),
        "rule_set default: rules[0].name:",
    );
    assert_fault(
        set(vec![all.clone(), rule("x", &[])]),
        "rule_set default: rules[1].models:",
    );
    assert_fault(
        set(vec![all.clone(), rule("x", &["no"])]),
        "rule_set default: rules[1].models[0]:",
    );
    let bad = Rule {
        max_attempts: 11,
        ..rule("x", &["small-1"])
    };
    assert_fault(
        set(vec![all.clone(), bad]),
        "rule_set default: rules[1].max_attempts:",
    );
    let bad = Rule {
        match_model: "no".into(),
        ..rule("x", &["small-1"])
    };
    assert_fault(
        set(vec![all.clone(), bad]),
        "rule_set default: rules[1].match_model:",
    );
    let bad = Rule {
        efforts: vec![0],
        ..rule("x", &["small-1"])
    };
    assert_fault(
        set(vec![all, bad]),
        "rule_set default: rules[1].efforts[0]:",
    );
}

#[test]
fn each_effort_needs_a_catch_all_as_soon_as_there_is_a_rule_for_auto() {
    let low = Rule {
        efforts: effort(&["low"]),
        ..rule("low", &["small-1"])
    };
    let with_attribute = Rule {
        attributes: [("a".to_owned(), "b".to_owned())].into(),
        ..rule("some", &["small-1"])
    };
    let off = Rule {
        disabled: true,
        ..rule("off", &["small-1"])
    };
    let rules = vec![low.clone(), with_attribute, off];
    let told = faults(|all| all.rule_set = Some(RuleSet { rules }));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("EFFORT_MEDIUM") && told[1].contains("EFFORT_HIGH"),
        "{told:?}"
    );
    let high = Rule {
        efforts: effort(&["medium", "high"]),
        ..rule("rest", &["small-1"])
    };
    let rules = vec![low, high];
    assert_eq!(
        faults(|all| all.rule_set = Some(RuleSet { rules })),
        Vec::<String>::new()
    );
    let named = Rule {
        match_model: "fast".into(),
        ..rule("named", &["small-1"])
    };
    let rules = vec![named];
    assert_eq!(
        faults(|all| all.rule_set = Some(RuleSet { rules })),
        Vec::<String>::new()
    );
}

#[test]
fn one_bad_rule_does_not_freeze_the_rest() {
    let mut resources = resources();
    let bad = Rule {
        max_attempts: 99,
        priority: 9,
        ..rule("bad", &["small-1"])
    };
    let partly = Rule {
        priority: 5,
        ..rule("partly", &["no-such", "fast"])
    };
    resources.rule_set = Some(RuleSet {
        rules: vec![bad, partly, rule("all", &["small-1"])],
    });
    let (config, faults) = compile(&resources);
    assert_eq!(faults.len(), 2);
    let found = config.rules.find(None, Effort::Medium, |_| None).unwrap();
    let rule = config.rules.rule(found).unwrap();
    assert_eq!((&*rule.name, rule.models.len()), ("partly", 1));
}

#[test]
fn prices_are_chosen_by_date_and_faults_of_the_book_told() {
    let price = |from: u64, input: u64| Price {
        provider: "a".into(),
        upstream_model: "small-1".into(),
        effective_from_s: from,
        input_pusd: Some(input),
        ..Default::default()
    };
    let book = |version, prices| {
        move |all: &mut Resources| {
            all.price_book = Some(PriceBook { version, prices });
        }
    };
    assert_fault(book(0, vec![]), "price_book default: version:");
    assert_fault(
        book(1, vec![price(1, 1), price(1, 2)]),
        "price_book default: prices:",
    );
    let nameless = Price {
        provider: String::new(),
        ..price(1, 1)
    };
    assert_fault(
        book(1, vec![price(1, 1), nameless]),
        "price_book default: prices[1]:",
    );

    let mut resources = resources();
    let other = Price {
        upstream_model: "small-0".into(),
        ..price(0, 9)
    };
    book(3, vec![price(200, 2), price(100, 1), other])(&mut resources);
    let config = compiled(&resources);
    let target = &config.models[config.model_index("small-1").unwrap()].targets[0];
    let at = |unix_s| {
        config
            .prices
            .at(&target.prices, unix_s)
            .and_then(|it| it.price.standard.rates.input_pusd)
    };
    assert_eq!(
        [99, 100, 199, 200, 9999].map(at),
        [None, Some(1), Some(1), Some(2), Some(2)]
    );
    // What soon takes its place is known to who reserves.
    let next = |unix_s| {
        let price = config.prices.at(&target.prices, unix_s);
        price.and_then(|it| it.next?.standard.rates.input_pusd)
    };
    assert_eq!([100, 200].map(next), [Some(2), None]);
}

#[test]
fn settings_of_zero_mean_the_defaults() {
    let mut resources = resources();
    resources.settings = Some(Settings {
        max_stale_s: 7,
        ..Default::default()
    });
    let defaults = super::super::Settings::default();
    let config = compiled(&resources);
    assert_eq!(
        *config.settings(),
        super::super::Settings {
            max_stale_s: 7,
            ..defaults
        }
    );
    let odd = Settings {
        on_unknown_usage: 9,
        ..Default::default()
    };
    assert_fault(
        |all| all.settings = Some(odd),
        "settings default: on_unknown_usage:",
    );
}

#[test]
fn nothing_that_prints_a_config_shows_a_secret() {
    let resources = resources();
    let printed = format!("{resources:?} {:?}", compiled(&resources));
    assert!(
        !printed.contains("CANARY") && !printed.contains("sk-test"),
        "{printed}"
    );
    assert!(printed.contains("virtual_keys: 2"), "{printed}");
}

#[test]
fn kinds_and_type_urls_are_one_to_one() {
    for kind in ResourceKind::ALL {
        assert_eq!(ResourceKind::from_type_url(kind.type_url()), Some(kind));
        assert!(!kind.message_name().is_empty() && !kind.word().is_empty());
    }
    assert_eq!(
        ResourceKind::from_type_url("type.googleapis.com/other.v1.Model"),
        None
    );
}
