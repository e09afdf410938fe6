use proto::config::v1::{
    Credential, CredentialPlace, OnUnknownPrice, Price, PriceBook, Rates, Rule, RuleSet, Settings,
};

use super::*;
use crate::authenticate::authenticate;
use crate::config::Resources;
use crate::fixture::*;
use crate::host::{NodeState, Now};

#[derive(Default)]
struct Ask<'a> {
    key: &'a str,
    model: &'a str,
    effort: Option<&'a str>,
    attributes: &'a [(&'a str, &'a str)],
    needs: Needs,
    text_bytes: u64,
    draw: u64,
    unix_s: u64,
}

/// Rule and targets (`provider/upstream-model`), or the refusal's code.
fn ask(resources: &Resources, ask: &Ask<'_>) -> Result<(String, Vec<String>), &'static str> {
    let config = compiled(resources);
    let key = if ask.key.is_empty() { ALPHA } else { ask.key };
    let node = NodeState {
        in_sync: true,
        stale: false,
    };
    let caller = authenticate(&config, key.as_bytes(), node, Now::default()).unwrap();
    let mut attributes = Attributes::default();
    for (name, value) in ask.attributes {
        attributes.push(name, value);
    }
    let wish = Wish {
        api: Api::ChatCompletions,
        model: ask.model,
        reasoning_effort: ask.effort,
        attributes: &attributes,
        needs: ask.needs,
        text_bytes: ask.text_bytes,
        unix_s: ask.unix_s,
        mono_us: 0,
        health: &Health::new(),
    };
    let route = route(&config, caller, &wish, ask.draw).map_err(|refusal| refusal.code())?;
    let rule = route.rule.and_then(|rule| config.rules.rule(rule));
    let attempts = route.plan.iter().take(route.most_attempts(false));
    let targets = attempts.map(|planned| {
        let target = &config.models[planned.model].targets[planned.target];
        target.label.to_string()
    });
    Ok((
        rule.map(|rule| rule.name.to_string()).unwrap_or_default(),
        targets.collect(),
    ))
}

fn with_rules(rules: Vec<Rule>) -> Resources {
    let mut resources = resources();
    for id in ["m1", "m2", "m3", "m4", "m5"] {
        resources
            .models
            .insert(id.into(), model(id, vec![target("a", "")]));
    }
    resources.rule_set = Some(RuleSet { rules });
    resources
}

fn when(rule: Rule, attributes: &[(&str, &str)]) -> Rule {
    let attributes = attributes
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Rule { attributes, ..rule }
}

fn rule_of(resources: &Resources, one: &Ask<'_>) -> String {
    ask(resources, one).unwrap().0
}

#[test]
fn effort_is_the_suffix_else_reasoning_effort_else_medium() {
    let of = |name: &str| Rule {
        efforts: effort(&[name]),
        ..rule(name, &["m1"])
    };
    let resources = with_rules(vec![of("low"), of("medium"), of("high")]);
    for (model, given, rule) in [
        ("auto", None, "medium"),
        ("auto:low", None, "low"),
        ("auto:medium", None, "medium"),
        ("auto:high", None, "high"),
        ("auto", Some("low"), "low"),
        ("auto", Some("minimal"), "low"),
        ("auto", Some("none"), "low"),
        ("auto", Some("medium"), "medium"),
        ("auto", Some("high"), "high"),
        ("auto", Some("xhigh"), "high"),
        ("auto", Some("of-tomorrow"), "medium"),
        ("auto:low", Some("high"), "low"),
    ] {
        let one = Ask {
            model,
            effort: given,
            ..Default::default()
        };
        assert_eq!(rule_of(&resources, &one), rule, "{model} {given:?}");
    }
}

#[test]
fn each_attribute_that_a_rule_names_must_be_equal() {
    let resources = with_rules(vec![
        when(
            Rule {
                priority: 10,
                ..rule("both", &["m1"])
            },
            &[("app", "chat"), ("tier", "gold")],
        ),
        when(
            Rule {
                priority: 5,
                ..rule("app", &["m2"])
            },
            &[("app", "chat")],
        ),
        when(
            Rule {
                priority: 20,
                ..rule("user", &["m3"])
            },
            &[("user_id", "u1")],
        ),
        rule("all", &["m4"]),
    ]);
    for (attributes, rule) in [
        (&[][..], "all"),
        (&[("app", "chat")], "app"),
        (&[("app", "chat"), ("tier", "gold"), ("more", "x")], "both"),
        (&[("app", "chat"), ("tier", "Gold")], "app"),
        (&[("app", "chat "), ("tier", "gold")], "all"),
        (&[("tier", "gold")], "all"),
        (
            &[("app", "chat"), ("tier", "gold"), ("user_id", "u1")],
            "user",
        ),
        (&[("app", "first"), ("app", "chat")], "all"),
    ] {
        let one = Ask {
            model: "auto",
            attributes,
            ..Default::default()
        };
        assert_eq!(rule_of(&resources, &one), rule, "{attributes:?}");
    }
}

#[test]
fn the_highest_priority_wins_then_the_position_and_disabled_rules_never() {
    let resources = with_rules(vec![
        rule("low", &["m1"]),
        Rule {
            priority: 7,
            disabled: true,
            ..rule("off", &["m2"])
        },
        Rule {
            priority: 3,
            ..rule("first", &["m3"])
        },
        Rule {
            priority: 3,
            ..rule("second", &["m4"])
        },
        Rule {
            priority: -1,
            ..rule("negative", &["m5"])
        },
    ]);
    let one = Ask {
        model: "auto",
        ..Default::default()
    };
    assert_eq!(
        ask(&resources, &one).unwrap(),
        ("first".into(), vec!["a/m3".into()])
    );
}

#[test]
fn a_public_name_skips_the_rules_unless_one_names_it() {
    let resources = with_rules(vec![
        rule("all", &["m1"]),
        Rule {
            match_model: "m2".into(),
            ..rule("moved", &["m3", "m4"])
        },
        when(
            Rule {
                match_model: "m5".into(),
                ..rule("some", &["m1"])
            },
            &[("app", "chat")],
        ),
    ]);
    for (model, attributes, rule, targets) in [
        ("m1", &[][..], "", &["a/m1"][..]),
        ("m2", &[], "moved", &["a/m3", "a/m4"]),
        ("m5", &[], "", &["a/m5"]),
        ("m5", &[("app", "chat")], "some", &["a/m1"]),
        ("pair", &[], "", &["a/pair-at-a", "b/pair-at-b"]),
    ] {
        let (found, plan) = ask(
            &resources,
            &Ask {
                model,
                attributes,
                ..Default::default()
            },
        )
        .unwrap();
        assert_eq!(
            (found.as_str(), plan),
            (rule, targets.iter().map(|&t| t.into()).collect())
        );
    }
}

#[test]
fn auto_without_rules_for_it_is_no_model() {
    let only_named = vec![Rule {
        match_model: "m2".into(),
        ..rule("moved", &["m3"])
    }];
    for resources in [with_rules(Vec::new()), with_rules(only_named)] {
        for model in ["auto", "auto:high"] {
            let one = Ask {
                model,
                ..Default::default()
            };
            assert_eq!(ask(&resources, &one), Err("model_not_found"));
        }
    }
}

#[test]
fn a_plan_has_three_attempts_or_as_many_as_its_rule_says() {
    let resources = with_rules(vec![
        rule("all", &["m1", "m2", "m3", "m4"]),
        when(
            Rule {
                max_attempts: 5,
                priority: 1,
                ..rule("five", &["pair", "m1", "m2", "m3"])
            },
            &[("n", "5")],
        ),
        when(
            Rule {
                max_attempts: 1,
                priority: 1,
                ..rule("one", &["pair", "m1"])
            },
            &[("n", "1")],
        ),
    ]);
    for (n, expected) in [
        ("", &["a/m1", "a/m2", "a/m3"][..]),
        ("5", &["a/pair-at-a", "b/pair-at-b", "a/m1", "a/m2", "a/m3"]),
        ("1", &["a/pair-at-a"]),
    ] {
        let one = Ask {
            model: "auto",
            attributes: &[("n", n)],
            ..Default::default()
        };
        assert_eq!(ask(&resources, &one).unwrap().1, expected);
    }
}

#[test]
fn targets_that_cannot_take_the_request_are_passed_over() {
    let mut resources = with_rules(vec![rule("all", &["m1", "m2", "m3", "m4", "m5"])]);
    let mut change = |id: &str, change: &dyn Fn(&mut proto::config::v1::Model)| {
        change(resources.models.get_mut(id).unwrap());
    };
    change("m1", &|model| model.context_window = 100);
    change("m2", &|model| {
        model.capabilities = vec![Capability::Tools.into()]
    });
    change("m3", &|model| model.disabled = true);
    change("m4", &|model| model.efforts = effort(&["high"]));
    let auto = |needs: Needs, text_bytes: u64, effort| Ask {
        model: "auto",
        needs,
        text_bytes,
        effort,
        ..Default::default()
    };
    let none = Needs::default();
    let tools = Needs {
        tools: true,
        ..none
    };
    for (one, expected) in [
        (auto(none, 0, None), Ok(&["a/m1", "a/m2", "a/m5"][..])),
        (auto(none, 800, None), Ok(&["a/m1", "a/m2", "a/m5"])),
        (auto(none, 816, None), Ok(&["a/m2", "a/m5"])),
        (auto(none, 816, Some("high")), Ok(&["a/m2", "a/m4", "a/m5"])),
        (auto(tools, 0, None), Ok(&["a/m2"])),
        (
            auto(
                Needs {
                    image_input: true,
                    ..tools
                },
                0,
                None,
            ),
            Err("no_capable_model"),
        ),
    ] {
        let plan = ask(&resources, &one).map(|(_, plan)| plan);
        assert_eq!(
            plan,
            expected.map(|plan| plan.iter().map(|&one| one.into()).collect())
        );
    }
}

#[test]
fn each_need_asks_for_its_capability() {
    let none = Needs::default();
    for (needs, capability) in [
        (
            Needs {
                tools: true,
                ..none
            },
            Capability::Tools,
        ),
        (
            Needs {
                image_input: true,
                ..none
            },
            Capability::ImageInput,
        ),
        (
            Needs {
                audio_input: true,
                ..none
            },
            Capability::AudioInput,
        ),
        (
            Needs {
                file_input: true,
                ..none
            },
            Capability::FileInput,
        ),
        (
            Needs {
                json_schema: true,
                ..none
            },
            Capability::JsonSchema,
        ),
    ] {
        let mut resources = resources();
        let one = Ask {
            model: "small-1",
            needs,
            ..Default::default()
        };
        assert_eq!(
            ask(&resources, &one),
            Err("no_capable_model"),
            "{capability:?}"
        );
        resources.models.get_mut("small-1").unwrap().capabilities = vec![capability.into()];
        assert!(ask(&resources, &one).is_ok(), "{capability:?}");
    }
}

#[test]
fn a_named_model_need_serve_only_an_effort_that_was_asked_for() {
    let mut resources = resources();
    resources.models.get_mut("small-1").unwrap().efforts = effort(&["high"]);
    resources.rule_set = None;
    for (given, expected) in [(None, true), (Some("high"), true), (Some("low"), false)] {
        let one = Ask {
            model: "small-1",
            effort: given,
            ..Default::default()
        };
        assert_eq!(ask(&resources, &one).is_ok(), expected, "{given:?}");
    }
}

#[test]
fn a_disabled_model_is_no_model() {
    let mut resources = resources();
    resources.models.get_mut("fast").unwrap().disabled = true;
    let one = Ask {
        model: "fast",
        ..Default::default()
    };
    assert_eq!(ask(&resources, &one), Err("model_not_found"));
}

#[test]
fn a_rule_reaches_no_model_that_the_key_may_not_use() {
    let mut resources = with_rules(vec![
        rule("all", &["m1", "m2"]),
        Rule {
            match_model: "m3".into(),
            ..rule("moved", &["m1", "m2"])
        },
    ]);
    resources.virtual_keys.get_mut("alpha").unwrap().models = vec!["m2".into(), "m3".into()];
    resources.teams.get_mut("blue").unwrap().models = vec!["m5".into()];
    for model in ["auto", "m3"] {
        let one = Ask {
            model,
            ..Default::default()
        };
        assert_eq!(ask(&resources, &one).unwrap().1, ["a/m2"]);
    }
    let one = Ask {
        key: BETA,
        model: "auto",
        ..Default::default()
    };
    assert_eq!(ask(&resources, &one), Err("model_not_allowed"));
}

#[test]
fn the_most_specific_credential_is_taken_and_among_equals_by_weight() {
    let mut resources = resources();
    let owned = |id: &str, team: &str, key: &str, weight: u32| Credential {
        team: team.into(),
        key: key.into(),
        weight,
        ..credential(id, "a", "sk-test-secret")
    };
    let planned = |resources: &Resources, key: &str, draw: u64| -> String {
        let config = compiled(resources);
        let node = NodeState {
            in_sync: true,
            stale: false,
        };
        let caller = authenticate(&config, key.as_bytes(), node, Now::default()).unwrap();
        let chosen = config
            .credentials
            .choose(0, caller.key, caller.team, draw, &|_| true);
        chosen.map_or("none".into(), |at| {
            config.credentials.credential(at).unwrap().id.to_string()
        })
    };
    assert_eq!(planned(&resources, ALPHA, 0), "cred-a");
    resources
        .credentials
        .insert("of-team".into(), owned("of-team", "red", "", 1));
    assert_eq!(planned(&resources, ALPHA, 0), "of-team");
    assert_eq!(
        planned(&resources, BETA, 0),
        "cred-a",
        "another team's credential is not taken"
    );
    for (id, weight) in [("key-1", 1), ("key-2", 3)] {
        resources
            .credentials
            .insert(id.into(), owned(id, "", "alpha", weight));
    }
    let drawn: Vec<String> = (0..4)
        .map(|draw| planned(&resources, ALPHA, draw))
        .collect();
    assert_eq!(drawn, ["key-1", "key-2", "key-2", "key-2"]);
    resources.credentials.remove("cred-a");
    assert_eq!(planned(&resources, BETA, 0), "none");
}

#[test]
fn a_target_without_a_credential_is_passed_over_unless_its_provider_takes_none() {
    let mut resources = resources();
    resources.credentials.remove("cred-a");
    let one = Ask {
        model: "pair",
        ..Default::default()
    };
    assert_eq!(ask(&resources, &one).unwrap().1, ["b/pair-at-b"]);
    resources
        .providers
        .insert("a".into(), provider("a", CredentialPlace::None));
    assert_eq!(
        ask(&resources, &one).unwrap().1,
        ["a/pair-at-a", "b/pair-at-b"]
    );
}

fn with_prices(on_unknown_price: OnUnknownPrice, prices: Vec<Price>) -> Resources {
    let mut resources = resources();
    resources.price_book = Some(PriceBook { version: 1, prices });
    resources.settings = Some(Settings {
        on_unknown_price: on_unknown_price.into(),
        default_price: (on_unknown_price == OnUnknownPrice::Default).then(|| Rates {
            input_pusd: Some(5),
            output_pusd: Some(7),
            ..Rates::default()
        }),
        ..Settings::default()
    });
    resources
}

fn priced(provider: &str, upstream_model: &str, effective_from_s: u64) -> Price {
    Price {
        provider: provider.into(),
        upstream_model: upstream_model.into(),
        effective_from_s,
        input_pusd: Some(1),
        output_pusd: Some(2),
        ..Price::default()
    }
}

#[test]
fn a_target_without_a_price_is_left_out_where_the_settings_deny_it() {
    let pair = |unix_s| Ask {
        model: "pair",
        unix_s,
        ..Ask::default()
    };
    let plan = |on_unknown_price, prices: &[Price], unix_s| {
        let resources = with_prices(on_unknown_price, prices.to_vec());
        ask(&resources, &pair(unix_s)).map(|(_, targets)| targets)
    };
    let both = Ok(vec!["a/pair-at-a".to_owned(), "b/pair-at-b".to_owned()]);
    let only_b = Ok(vec!["b/pair-at-b".to_owned()]);
    let prices = [priced("a", "pair-at-a", 100), priced("b", "pair-at-b", 0)];
    assert_eq!(plan(OnUnknownPrice::Deny, &prices, 100), both);
    // Before its date a price is not known.
    assert_eq!(plan(OnUnknownPrice::Deny, &prices, 99), only_b);
    let half = Price {
        output_pusd: None,
        ..priced("a", "pair-at-a", 0)
    };
    let prices = [half, priced("b", "pair-at-b", 0)];
    assert_eq!(plan(OnUnknownPrice::Deny, &prices, 100), only_b);
    assert_eq!(plan(OnUnknownPrice::Deny, &[], 100), Err("price_unknown"));
    for allowed in [
        OnUnknownPrice::Unspecified,
        OnUnknownPrice::Allow,
        OnUnknownPrice::Default,
    ] {
        assert_eq!(plan(allowed, &[], 100), both);
    }
}

#[test]
fn a_default_price_stands_in_where_input_or_output_is_not_known_and_nowhere_else() {
    let half = Price {
        output_pusd: None,
        ..priced("a", "pair-at-a", 0)
    };
    let prices = vec![half, priced("b", "pair-at-b", 100)];
    let input_of = |on_unknown_price, target: usize, unix_s| {
        let config = compiled(&with_prices(on_unknown_price, prices.clone()));
        let pair = &config.models[config.model_index("pair").unwrap()];
        let price = config.prices.at(&pair.targets[target].prices, unix_s);
        price.and_then(|it| it.price.standard.rates.input_pusd)
    };
    assert_eq!(input_of(OnUnknownPrice::Default, 0, 0), Some(5));
    assert_eq!(input_of(OnUnknownPrice::Default, 1, 99), Some(5));
    assert_eq!(input_of(OnUnknownPrice::Default, 1, 100), Some(1));
    assert_eq!(input_of(OnUnknownPrice::Allow, 0, 0), Some(1));
    assert_eq!(input_of(OnUnknownPrice::Allow, 1, 99), None);
}

#[test]
fn a_default_price_without_output_is_told() {
    let mut resources = with_prices(OnUnknownPrice::Default, vec![]);
    resources.settings.as_mut().unwrap().default_price = None;
    let (config, faults) = crate::config::compile(&resources);
    assert_eq!(
        faults.iter().map(|it| &*it.place).collect::<Vec<_>>(),
        ["default_price"]
    );
    let model = &config.models[config.model_index("small-1").unwrap()];
    assert!(config.prices.at(&model.targets[0].prices, 0).is_none());
}
