//! Configs for the tests.

use proto::config::v1::*;

use crate::config::{Compiled, Fault, Resources, compile};
use crate::key;

pub(crate) const ALPHA: &str = "vk-test-alpha";
pub(crate) const BETA: &str = "vk-test-beta";
pub(crate) const SECRET_A: &str = "CANARY-prov-key-7731";
pub(crate) const SECRET_B: &str = "sk-test-provider-b-0001";

pub(crate) fn effort(words: &[&str]) -> Vec<i32> {
    let of = |word: &&str| match *word {
        "low" => Effort::Low.into(),
        "medium" => Effort::Medium.into(),
        "high" => Effort::High.into(),
        _ => 0,
    };
    words.iter().map(of).collect()
}

pub(crate) fn secret(text: &str) -> KeySecret {
    KeySecret {
        sha256: key::hash(text.as_bytes()).to_vec(),
        expires_at_s: 0,
    }
}

pub(crate) fn virtual_key(id: &str, team: &str, text: &str) -> VirtualKey {
    VirtualKey {
        id: id.into(),
        team: team.into(),
        secrets: vec![secret(text)],
        ..Default::default()
    }
}

pub(crate) fn provider(id: &str, place: CredentialPlace) -> Provider {
    Provider {
        id: id.into(),
        dialect: Dialect::Openai.into(),
        authority: format!("{id}.example"),
        path_prefix: "/v1".into(),
        cluster_name: format!("turnpike-provider-{id}"),
        cluster: Vec::new(),
        credential_place: place.into(),
        stream_usage_option: true,
        ..Provider::default()
    }
}

pub(crate) fn credential(id: &str, provider: &str, text: &str) -> Credential {
    Credential {
        id: id.into(),
        provider: provider.into(),
        weight: 1,
        secret: text.into(),
        ..Default::default()
    }
}

pub(crate) fn target(provider: &str, upstream_model: &str) -> Target {
    Target {
        provider: provider.into(),
        upstream_model: upstream_model.into(),
        first_token_timeout_ms: 0,
    }
}

pub(crate) fn model(id: &str, targets: Vec<Target>) -> Model {
    Model {
        id: id.into(),
        targets,
        ..Default::default()
    }
}

pub(crate) fn rule(name: &str, models: &[&str]) -> Rule {
    Rule {
        name: name.into(),
        models: models.iter().map(|&model| model.into()).collect(),
        ..Default::default()
    }
}

/// Providers `a` (bearer) and `b` (api-key); `small-1` at `a` under its own name, `pair` at both,
/// `fast` renamed; a catch-all rule; a price for `a`'s `small-1`.
pub(crate) fn resources() -> Resources {
    let mut all = Resources::default();
    for id in ["red", "blue"] {
        all.teams.insert(
            id.into(),
            Team {
                id: id.into(),
                ..Default::default()
            },
        );
    }
    for one in [
        virtual_key("alpha", "red", ALPHA),
        virtual_key("beta", "blue", BETA),
    ] {
        all.virtual_keys.insert(one.id.clone(), one);
    }
    for one in [
        provider("a", CredentialPlace::Bearer),
        provider("b", CredentialPlace::ApiKey),
    ] {
        all.providers.insert(one.id.clone(), one);
    }
    for one in [
        credential("cred-a", "a", SECRET_A),
        credential("cred-b", "b", SECRET_B),
    ] {
        all.credentials.insert(one.id.clone(), one);
    }
    let pair = vec![target("a", "pair-at-a"), target("b", "pair-at-b")];
    for one in [
        model("small-1", vec![target("a", "")]),
        model("pair", pair),
        model("fast", vec![target("b", "vendor-7b")]),
    ] {
        all.models.insert(one.id.clone(), one);
    }
    all.rule_set = Some(RuleSet {
        rules: vec![rule("all", &["small-1"])],
    });
    all.price_book = Some(PriceBook {
        version: 7,
        prices: vec![Price {
            provider: "a".into(),
            upstream_model: "small-1".into(),
            effective_from_s: 0,
            input_pusd: Some(1_000_000),
            output_pusd: Some(2_000_000),
            ..Default::default()
        }],
    });
    all.checkpoint = Some(Checkpoint {
        version: 42,
        nonce: "n".into(),
    });
    all
}

/// The config, which must be without fault.
pub(crate) fn compiled(resources: &Resources) -> Compiled {
    let (compiled, faults) = compile(resources);
    assert_eq!(faults, Vec::<Fault>::new());
    compiled
}
