use super::*;
use crate::fixture::*;

const IN_SYNC: NodeState = NodeState {
    in_sync: true,
    stale: false,
};
const NOW: Now = Now {
    mono_us: 0,
    unix_us: 1_750_000_000_000_000,
};

#[test]
fn a_minted_key_finds_its_caller() {
    let text = key::mint("k7f3a9q2", &[3; 32]);
    let mut resources = resources();
    resources
        .virtual_keys
        .insert("minted".into(), virtual_key("minted", "blue", &text));
    let config = compiled(&resources);
    let caller = authenticate(&config, text.as_bytes(), IN_SYNC, NOW).unwrap();
    assert_eq!(&*config.keys.key(caller.key).unwrap().id, "minted");
    assert_eq!(&*config.keys.team(caller.team).unwrap().id, "blue");
}

#[test]
fn a_key_expires_at_its_second_and_not_before() {
    let mut resources = resources();
    resources
        .virtual_keys
        .get_mut("alpha")
        .unwrap()
        .expires_at_s = 1_750_000_000;
    let config = compiled(&resources);
    let before = Now {
        unix_us: NOW.unix_us - 1,
        ..NOW
    };
    assert!(authenticate(&config, ALPHA.as_bytes(), IN_SYNC, before).is_ok());
    let at = authenticate(&config, ALPHA.as_bytes(), IN_SYNC, NOW);
    assert!(matches!(at, Err(Refusal::InvalidApiKey)));
}

#[test]
fn the_teams_list_and_the_keys_must_both_admit() {
    let mut resources = resources();
    resources.virtual_keys.get_mut("alpha").unwrap().models = vec!["a/*".into(), "b".into()];
    resources.teams.get_mut("red").unwrap().models = vec!["a/x".into(), "c".into()];
    let config = compiled(&resources);
    let caller = authenticate(&config, ALPHA.as_bytes(), IN_SYNC, NOW).unwrap();
    for (name, may) in [("a/x", true), ("a/y", false), ("b", false), ("c", false)] {
        assert_eq!(caller.may_use(&config, name), may, "{name}");
    }
}
