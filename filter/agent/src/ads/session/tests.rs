//! Transcripts: the test plays the control plane, and a small compiler that knows references.

use proto::config::v1::{
    Credential, KeySecret, Model, Provider, RuleSet, Target, Team, VirtualKey,
};

use super::*;
use crate::ads::{Resource, WireResource};

// === a new node ===

#[test]
fn the_first_stream_subscribes_to_every_type_and_names_nothing() {
    let mut node = TestNode::new();
    let requests = node.session.connected();
    let urls: Vec<&str> = requests
        .iter()
        .map(|request| request.type_url.as_str())
        .collect();
    assert_eq!(urls, Kind::ALL.map(Kind::type_url));
    for (at, request) in requests.iter().enumerate() {
        assert_eq!(request.node.is_some(), at == 0);
        assert_eq!(request.resource_names_subscribe, ["*"]);
        assert!(request.initial_resource_versions.is_empty());
    }
}

#[test]
fn a_full_sync_is_in_force_at_its_checkpoint_and_not_before() {
    let mut node = TestNode::connected();
    let responses = push(
        "full 1/ab",
        vec![team("t"), provider("p"), model("m", "p")],
        vec![],
    );
    let (last, parts) = responses.split_last().unwrap();
    for part in parts {
        assert_eq!(node.send(part.clone()), Heard::default());
        assert_eq!(node.session.current(), &Resources::default());
    }
    assert!(!node.session.in_sync());
    let heard = node.send(last.clone());
    assert_eq!(
        heard.answers,
        ["ack Team", "ack Provider", "ack Model", "ack Checkpoint"]
    );
    assert_eq!(heard.applied, ["1/ab changed"]);
    assert_eq!(node.names(), ["Team/t", "Provider/p", "Model/m"]);
    assert!(node.session.in_sync());
    assert!(node.session.snapshot().whole);
}

#[test]
fn a_delta_that_a_new_node_did_not_ask_for_is_a_violation() {
    let mut node = TestNode::connected();
    let first = push("delta 0..1/ab", vec![team("t")], vec![]).remove(0);
    assert!(matches!(
        node.session.on_response(numbered(first, 1)),
        Err(Violation::Base(_))
    ));
}

// === reconnects ===

#[test]
fn a_reconnect_names_its_checkpoint_and_no_other_version() {
    let mut node = TestNode::synced();
    let requests = node.session.connected();
    let (checkpoint, others) = requests.split_last().unwrap();
    assert!(
        others
            .iter()
            .all(|request| request.initial_resource_versions.is_empty())
    );
    assert_eq!(
        checkpoint.initial_resource_versions,
        BTreeMap::from([("default".to_owned(), "1/ab".to_owned())])
    );
    assert!(!node.session.in_sync());
}

#[test]
fn an_empty_delta_confirms_what_the_node_has() {
    let mut node = TestNode::synced();
    node.reconnect();
    let heard = node.push("delta 1..1/ab", vec![], vec![]);
    assert_eq!(heard.answers, ["ack Checkpoint"]);
    assert_eq!(heard.applied, ["1/ab same"]);
    assert_eq!(heard.compiled, 0);
    assert!(node.session.in_sync());
}

#[test]
fn what_was_removed_meanwhile_is_gone_after_a_reconnect() {
    let mut node = TestNode::synced();
    node.reconnect();
    node.push("delta 1..4/ab", vec![], vec![name(Kind::Model, "m")]);
    assert!(!node.names().contains(&"Model/m".to_owned()));
    assert!(node.names().contains(&"Provider/p".to_owned()));
}

#[test]
fn a_full_sync_after_a_reconnect_drops_what_it_does_not_name() {
    let mut node = TestNode::synced();
    node.reconnect();
    node.push("full 1/cd", vec![team("t"), provider("q")], vec![]);
    assert_eq!(node.names(), ["Team/t", "Provider/q"]);
    assert_eq!(node.session.checkpoint().unwrap().nonce, "cd");
}

#[test]
fn an_interrupted_full_sync_drops_nothing() {
    let mut node = TestNode::synced();
    let before = node.session.current().clone();
    node.reconnect();
    for part in push("full 9/cd", vec![provider("q"), model("n", "q")], vec![]).drain(..2) {
        node.send(part);
        assert_eq!(node.session.current(), &before);
    }
    let requests = node.session.connected();
    assert_eq!(
        requests.last().unwrap().initial_resource_versions["default"],
        "1/ab"
    );
    assert_eq!(node.session.current(), &before);
    node.nonce = 0;
    node.push("delta 1..2/ab", vec![team("u")], vec![]);
    assert!(
        !node.names().contains(&"Model/n".to_owned()),
        "nothing of the lost push is left"
    );
}

#[test]
fn an_empty_full_sync_removes_everything_at_its_checkpoint_only() {
    let mut node = TestNode::synced();
    node.reconnect();
    node.push("full 2/ab", vec![], vec![]);
    assert_eq!(node.names(), [""; 0]);
}

#[test]
fn a_new_process_goes_on_from_its_snapshot() {
    let stored = TestNode::synced().session.snapshot();
    let stored = Snapshot::decode(&stored.encode()).unwrap();
    let mut node = TestNode::starting_from(stored);
    let requests = node.session.connected();
    assert_eq!(
        requests.last().unwrap().initial_resource_versions["default"],
        "1/ab"
    );
    node.push("delta 1..2/ab", vec![model("n", "p")], vec![]);
    assert!(node.names().contains(&"Model/n".to_owned()));
    assert!(node.names().contains(&"Model/m".to_owned()));
}

#[test]
fn a_snapshot_without_credentials_asks_for_everything() {
    let stored = TestNode::synced().session.snapshot().without_credentials();
    let mut node = TestNode::starting_from(stored);
    let requests = node.session.connected();
    assert!(
        requests
            .iter()
            .all(|request| request.initial_resource_versions.is_empty())
    );
    let first = push("delta 1..2/ab", vec![team("u")], vec![]).remove(0);
    assert!(matches!(
        node.session.on_response(numbered(first, 1)),
        Err(Violation::Base(_))
    ));
}

// === versions ===

#[test]
fn an_older_version_of_the_same_lineage_is_refused_and_changes_nothing() {
    let mut node = TestNode::synced();
    node.push(
        "delta 1..5/ab",
        vec![credential("c", "sk-test-new")],
        vec![],
    );
    let before = node.session.current().clone();
    node.reconnect();
    let heard = node.push(
        "full 3/ab",
        vec![team("old"), credential("c", "sk-test-old")],
        vec![],
    );
    assert_eq!(
        heard.answers,
        ["nack Checkpoint: Checkpoint/default: version 3 is behind 5, which this node runs on"]
    );
    assert_eq!(heard.applied, [""; 0]);
    assert_eq!(node.session.current(), &before);
    assert!(!node.session.in_sync());
    node.push("delta 3..6/ab", vec![team("new")], vec![]);
    assert_eq!(node.session.checkpoint().unwrap().version, 6);
}

#[test]
fn a_lower_version_of_another_lineage_is_applied() {
    let mut node = TestNode::synced();
    node.push("delta 1..105/ab", vec![team("u")], vec![]);
    node.reconnect();
    node.push("full 103/cd", vec![team("t")], vec![]);
    assert_eq!(node.names(), ["Team/t"]);
}

#[test]
fn a_delta_from_a_version_that_the_node_lacks_is_a_violation() {
    let mut node = TestNode::synced();
    let parts = push("delta 2..3/ab", vec![team("u")], vec![]);
    let response = numbered(parts[0].clone(), node.nonce + 1);
    assert!(matches!(
        node.session.on_response(response),
        Err(Violation::Base(_))
    ));
}

#[test]
fn pushes_do_not_mix_and_end_with_their_own_checkpoint() {
    let mut node = TestNode::synced();
    node.send(push("delta 1..2/ab", vec![team("u")], vec![])[0].clone());
    let other = push("delta 1..3/ab", vec![team("v")], vec![]);
    let response = numbered(other[0].clone(), node.nonce + 1);
    assert!(matches!(
        node.session.on_response(response),
        Err(Violation::MixedPush { .. })
    ));

    node.reconnect();
    let mut end = push("delta 1..2/ab", vec![], vec![]).remove(0);
    end.resources = push("delta 1..3/ab", vec![], vec![]).remove(0).resources;
    assert!(matches!(
        node.session.on_response(numbered(end, 1)),
        Err(Violation::Checkpoint(_))
    ));
}

#[test]
fn a_nonce_that_does_not_rise_is_ignored() {
    let mut node = TestNode::synced();
    let first = numbered(
        push("delta 1..2/ab", vec![team("u")], vec![])[0].clone(),
        100,
    );
    assert_eq!(node.session.on_response(first).unwrap(), Outcome::wait());
    for nonce in [100, 99, 1] {
        let stray = push("delta 1..9/ab", vec![], vec![name(Kind::Model, "m")])[0].clone();
        assert_eq!(
            node.session.on_response(numbered(stray, nonce)).unwrap(),
            Outcome::wait()
        );
    }
    node.nonce = 100;
    let heard = node.send(push("delta 1..2/ab", vec![], vec![])[0].clone());
    assert_eq!(heard.applied, ["2/ab changed"]);
    assert!(node.names().contains(&"Model/m".to_owned()));
    assert!(node.names().contains(&"Team/u".to_owned()));
    let again = push("delta 1..2/ab", vec![], vec![])[0].clone();
    assert_eq!(
        node.session.on_response(numbered(again, 101)).unwrap(),
        Outcome::wait()
    );
}

#[test]
fn unreadable_envelopes_are_violations() {
    let good = || {
        numbered(
            push("delta 1..2/ab", vec![team("u")], vec![])[0].clone(),
            50,
        )
    };
    let cases: [(DeltaDiscoveryResponse, Violation); 3] = [
        (
            DeltaDiscoveryResponse {
                nonce: "x".to_owned(),
                ..good()
            },
            Violation::Nonce("x".to_owned()),
        ),
        (
            DeltaDiscoveryResponse {
                type_url: "other".to_owned(),
                ..good()
            },
            Violation::UnknownType("other".to_owned()),
        ),
        (
            DeltaDiscoveryResponse {
                system_version_info: "2".to_owned(),
                ..good()
            },
            Violation::Push(UnreadableVersion("2".to_owned())),
        ),
    ];
    for (response, violation) in cases {
        let mut node = TestNode::synced();
        assert_eq!(node.session.on_response(response), Err(violation));
        node.reconnect();
        node.push("delta 1..2/ab", vec![team("u")], vec![]);
        assert!(
            node.names().contains(&"Team/u".to_owned()),
            "a new stream heals it"
        );
    }
}

#[test]
fn a_response_during_a_compilation_is_a_violation() {
    let mut node = TestNode::synced();
    let parts = push("full 2/ab", vec![team("t")], vec![]);
    for (at, part) in parts.into_iter().enumerate() {
        let response = numbered(part, node.nonce + 1 + at as u64);
        let _outcome = node.session.on_response(response).unwrap();
    }
    assert!(node.session.candidate().is_some());
    let early = numbered(push("delta 2..3/ab", vec![], vec![])[0].clone(), 90);
    assert_eq!(node.session.on_response(early), Err(Violation::Compiling));
    node.session.disconnected();
    assert_eq!(
        node.session.accept(),
        Outcome::wait(),
        "a candidate does not outlive its stream"
    );
    assert_eq!(node.session.checkpoint().unwrap().version, 1);
}

#[test]
fn a_version_that_changes_nothing_here_is_in_force_all_the_same() {
    let mut node = TestNode::synced();
    let heard = node.push("delta 1..2/ab", vec![], vec![]);
    assert_eq!(heard.applied, ["2/ab changed"]);
    assert_eq!(heard.compiled, 1, "what is compiled carries the version");
    assert_eq!(
        node.session.current().checkpoint.as_ref().unwrap().version,
        2
    );
}

#[test]
fn an_answer_names_the_last_response_of_its_type() {
    let mut node = TestNode::connected();
    let mut answers = Vec::new();
    let one = push("full 1/ab", vec![team("t"), provider("p")], vec![]);
    let two = push("full 1/ab", vec![team("u"), provider("q")], vec![]);
    let parts = [&one[0], &one[1], &two[0], &two[2]];
    for (part, nonce) in parts.into_iter().zip(1..) {
        let outcome = node
            .session
            .on_response(numbered(part.clone(), nonce))
            .unwrap();
        answers.extend(outcome.requests);
    }
    answers.extend(node.session.accept().requests);
    let nonces: Vec<(&str, &str)> = answers
        .iter()
        .map(|answer| (answer.type_url.as_str(), answer.response_nonce.as_str()))
        .collect();
    assert_eq!(
        nonces,
        [
            (Kind::Team.type_url(), "3"),
            (Kind::Provider.type_url(), "2"),
            (Kind::Checkpoint.type_url(), "4")
        ]
    );
}

// === refusals ===

#[test]
fn one_unreadable_resource_is_refused_by_name_and_the_rest_applies() {
    let mut node = TestNode::synced();
    let mut parts = push(
        "delta 1..2/ab",
        vec![model("m", "p"), model("n", "p")],
        vec![],
    );
    parts[0].resources[0].resource.as_mut().unwrap().value = vec![0xff; 9];
    let heard = node.send_all(parts);
    assert_eq!(heard.answers.len(), 2);
    assert!(
        heard.answers[0].starts_with("nack Model: Model/m: "),
        "{heard:?}"
    );
    assert_eq!(heard.answers[1], "ack Checkpoint");
    assert_eq!(heard.applied, ["2/ab changed"]);
    assert_eq!(
        node.model("m"),
        Some("p".to_owned()),
        "the last good form stays"
    );
    assert_eq!(node.model("n"), Some("p".to_owned()));
}

#[test]
fn a_resource_whose_id_or_type_is_not_what_it_says_is_refused() {
    let mut node = TestNode::synced();
    let mut parts = push(
        "delta 1..2/ab",
        vec![model("a", "p"), model("b", "p")],
        vec![],
    );
    parts[0].resources[0].name = "c".to_owned();
    parts[0].resources[1].resource.as_mut().unwrap().type_url = Kind::Team.type_url().to_owned();
    let heard = node.send_all(parts);
    assert_eq!(
        heard.answers[0],
        "nack Model: Model/b: its body is of type \
         `type.googleapis.com/turnpike.config.v1.Team`\nModel/c: its id is `a`, which is not its name"
    );
}

#[test]
fn a_resource_that_does_not_compile_keeps_its_last_good_form() {
    let mut node = TestNode::synced();
    let heard = node.push(
        "delta 1..2/ab",
        vec![model("m", "nowhere"), model("n", "p")],
        vec![],
    );
    assert_eq!(
        heard.answers,
        ["nack Model: Model/m: no provider nowhere", "ack Checkpoint"]
    );
    assert_eq!(node.model("m"), Some("p".to_owned()));
    assert_eq!(node.model("n"), Some("p".to_owned()));
    assert_eq!(node.session.refused().len(), 1);
}

#[test]
fn a_refused_resource_without_a_good_form_is_left_out() {
    let mut node = TestNode::synced();
    node.push("delta 1..2/ab", vec![model("new", "nowhere")], vec![]);
    assert_eq!(node.model("new"), None);
}

#[test]
fn a_fix_applies() {
    let mut node = TestNode::synced();
    node.push("delta 1..2/ab", vec![model("m", "nowhere")], vec![]);
    node.push("delta 2..3/ab", vec![provider("q")], vec![]);
    let heard = node.push("delta 3..4/ab", vec![model("m", "q")], vec![]);
    assert_eq!(heard.answers, ["ack Model", "ack Checkpoint"]);
    assert_eq!(node.model("m"), Some("q".to_owned()));
    assert!(node.session.snapshot().whole);
}

#[test]
fn a_refused_resource_applies_when_what_it_lacked_comes() {
    let mut node = TestNode::synced();
    node.push("delta 1..2/ab", vec![model("m", "q")], vec![]);
    assert_eq!(node.model("m"), Some("p".to_owned()));
    let heard = node.push("delta 2..3/ab", vec![provider("q")], vec![]);
    assert_eq!(heard.answers, ["ack Provider", "ack Checkpoint"]);
    assert_eq!(node.model("m"), Some("q".to_owned()));
}

#[test]
fn a_refusal_is_told_with_each_version_until_it_is_gone() {
    let mut node = TestNode::synced();
    node.push("delta 1..2/ab", vec![model("m", "nowhere")], vec![]);
    let heard = node.push("delta 2..3/ab", vec![team("u")], vec![]);
    assert_eq!(
        heard.answers,
        [
            "ack Team",
            "nack Model: Model/m: no provider nowhere",
            "ack Checkpoint"
        ]
    );
    let heard = node.push("delta 3..4/ab", vec![], vec![name(Kind::Model, "m")]);
    assert_eq!(heard.answers, ["ack Model", "ack Checkpoint"]);
    assert_eq!(node.model("m"), None);
}

#[test]
fn an_unreadable_resource_stays_refused_until_it_is_sent_again() {
    let mut node = TestNode::synced();
    let mut parts = push("delta 1..2/ab", vec![model("m", "p")], vec![]);
    parts[0].resources[0].resource = None;
    node.send_all(parts);
    let heard = node.push("delta 2..3/ab", vec![team("u")], vec![]);
    assert_eq!(
        heard.answers,
        [
            "ack Team",
            "nack Model: Model/m: it has no body",
            "ack Checkpoint"
        ]
    );
    let heard = node.push("delta 3..4/ab", vec![model("m", "p")], vec![]);
    assert_eq!(heard.answers, ["ack Model", "ack Checkpoint"]);
}

#[test]
fn a_node_that_refused_something_asks_for_everything_when_it_reconnects() {
    let mut node = TestNode::synced();
    node.push("delta 1..2/ab", vec![model("m", "nowhere")], vec![]);
    assert!(!node.session.snapshot().whole);
    let requests = node.session.connected();
    assert!(
        requests
            .iter()
            .all(|request| request.initial_resource_versions.is_empty())
    );
    node.nonce = 0;
    let heard = node.push(
        "full 2/ab",
        vec![team("t"), provider("p"), model("m", "gone")],
        vec![],
    );
    assert_eq!(heard.answers[2], "nack Model: Model/m: no provider gone");
    assert_eq!(
        node.model("m"),
        Some("p".to_owned()),
        "the good form survives a full sync"
    );
}

#[test]
fn a_full_sync_keeps_the_last_good_form_of_what_it_sends_unreadably() {
    let mut node = TestNode::synced();
    node.reconnect();
    let mut parts = push("full 2/ab", vec![provider("p"), model("m", "p")], vec![]);
    parts
        .iter_mut()
        .find(|part| part.type_url == Kind::Model.type_url())
        .unwrap()
        .resources[0]
        .resource = None;
    node.send_all(parts);
    assert_eq!(node.names(), ["Provider/p", "Model/m"]);
}

#[test]
fn a_resource_whose_support_is_removed_is_left_out_and_comes_back_with_it() {
    let mut node = TestNode::synced();
    let heard = node.push("delta 1..2/ab", vec![], vec![name(Kind::Provider, "p")]);
    assert_eq!(
        heard.answers,
        [
            "ack Provider",
            "nack Model: Model/m: no provider p",
            "ack Checkpoint"
        ]
    );
    assert_eq!(node.model("m"), None);
    node.push("delta 2..3/ab", vec![provider("p")], vec![]);
    assert_eq!(node.model("m"), Some("p".to_owned()));
}

#[test]
fn a_set_that_cannot_be_compiled_at_all_leaves_the_node_where_it_was() {
    let mut node = TestNode::synced();
    let before = node.session.current().clone();
    for part in push("delta 1..2/ab", vec![team("u")], vec![]) {
        node.nonce += 1;
        let _outcome = node
            .session
            .on_response(numbered(part, node.nonce))
            .unwrap();
    }
    let elsewhere = Refused {
        resource: name(Kind::RuleSet, "default"),
        reason: "no catch-all".to_owned(),
    };
    let outcome = node.session.reject(&[elsewhere]);
    assert_eq!(outcome.step, Step::Wait);
    assert_eq!(
        outcome.requests.iter().map(describe).collect::<Vec<_>>(),
        ["nack Checkpoint: RuleSet/default: no catch-all"]
    );
    assert_eq!(node.session.current(), &before);
    assert_eq!(node.session.checkpoint().unwrap().version, 1);
}

#[test]
fn several_errors_of_one_resource_are_one_refusal() {
    let mut node = TestNode::synced();
    for part in push("delta 1..2/ab", vec![model("m", "q")], vec![]) {
        node.nonce += 1;
        let _outcome = node
            .session
            .on_response(numbered(part, node.nonce))
            .unwrap();
    }
    let error = |reason: &str| Refused {
        resource: name(Kind::Model, "m"),
        reason: reason.to_owned(),
    };
    assert_eq!(
        node.session.reject(&[error("one"), error("two")]).step,
        Step::Compile
    );
    let outcome = node.session.accept();
    assert_eq!(
        describe(&outcome.requests[0]),
        "nack Model: Model/m: one; two"
    );
    assert_eq!(node.model("m"), Some("p".to_owned()));
}

#[test]
fn a_nack_can_be_read_back_from_its_details() {
    let refused = [Refused {
        resource: name(Kind::Model, "a: b/c"),
        reason: "x: y".to_owned(),
    }];
    let status = Refused::to_status(&refused);
    let read = Refused::from_detail(&status.details[0].type_url, &status.details[0].value);
    assert_eq!(read.as_ref(), Some(&refused[0]));
    assert_eq!(
        Refused::from_detail("other", &status.details[0].value),
        None
    );
}

// === what does not wait ===

#[test]
fn a_removed_key_is_gone_before_the_checkpoint() {
    let mut node = TestNode::synced();
    let parts = push("delta 1..2/ab", vec![], vec![name(Kind::VirtualKey, "k")]);
    let heard = node.send(parts[0].clone());
    assert_eq!(heard.applied, ["urgent VirtualKey/k"]);
    assert!(!node.names().contains(&"VirtualKey/k".to_owned()));
    assert_eq!(node.session.checkpoint().unwrap().version, 1);
    let stored = node.session.snapshot();
    assert!(
        !stored.resources.virtual_keys.contains_key("k"),
        "a restart must not bring it back"
    );
    assert_eq!(node.send(parts[1].clone()).applied, ["2/ab changed"]);
    assert!(!node.names().contains(&"VirtualKey/k".to_owned()));
}

#[test]
fn a_disabled_key_is_disabled_at_once_and_nothing_else_of_it_changes() {
    let mut node = TestNode::synced();
    let changed = VirtualKey {
        disabled: true,
        models: vec!["other".to_owned()],
        ..key_message("k", &[1, 2])
    };
    let parts = push(
        "delta 1..2/ab",
        vec![Resource::VirtualKey(changed.clone())],
        vec![],
    );
    assert_eq!(node.send(parts[0].clone()).applied, ["urgent VirtualKey/k"]);
    let expected = VirtualKey {
        disabled: true,
        ..key_message("k", &[1, 2])
    };
    assert_eq!(node.session.current().virtual_keys["k"], expected);
    node.send(parts[1].clone());
    assert_eq!(node.session.current().virtual_keys["k"], changed);
}

#[test]
fn a_withdrawn_secret_is_refused_at_once_and_an_added_one_waits() {
    let mut node = TestNode::synced();
    let parts = push(
        "delta 1..2/ab",
        vec![Resource::VirtualKey(key_message("k", &[2, 3]))],
        vec![],
    );
    node.send(parts[0].clone());
    assert_eq!(
        node.session.current().virtual_keys["k"],
        key_message("k", &[2])
    );
    node.send(parts[1].clone());
    assert_eq!(
        node.session.current().virtual_keys["k"],
        key_message("k", &[2, 3])
    );
}

#[test]
fn a_key_that_loses_every_secret_is_gone_until_the_checkpoint_brings_new_ones() {
    let mut node = TestNode::synced();
    let parts = push(
        "delta 1..2/ab",
        vec![Resource::VirtualKey(key_message("k", &[9]))],
        vec![],
    );
    node.send(parts[0].clone());
    assert!(!node.session.current().virtual_keys.contains_key("k"));
    node.send(parts[1].clone());
    assert_eq!(
        node.session.current().virtual_keys["k"],
        key_message("k", &[9])
    );
}

#[test]
fn a_disabled_team_is_disabled_at_once() {
    let mut node = TestNode::synced();
    let disabled = Team {
        disabled: true,
        ..team_message("t")
    };
    let parts = push("delta 1..2/ab", vec![Resource::Team(disabled)], vec![]);
    assert_eq!(node.send(parts[0].clone()).applied, ["urgent Team/t"]);
    assert!(node.session.current().teams["t"].disabled);
}

#[test]
fn a_rotated_credential_is_used_at_once() {
    let mut node = TestNode::synced();
    let parts = push(
        "delta 1..2/ab",
        vec![credential("c", "sk-test-new")],
        vec![],
    );
    assert_eq!(node.send(parts[0].clone()).applied, ["urgent Credential/c"]);
    assert_eq!(
        node.session.current().credentials["c"].secret,
        "sk-test-new"
    );
    assert_eq!(node.session.checkpoint().unwrap().version, 1);
}

#[test]
fn a_credential_that_moves_to_another_provider_waits() {
    let mut node = TestNode::synced();
    let mut moved = credential_message("c", "sk-test-other");
    moved.provider = "q".to_owned();
    let parts = push("delta 1..2/ab", vec![Resource::Credential(moved)], vec![]);
    assert_eq!(node.send(parts[0].clone()), Heard::default());
    assert_eq!(node.session.current().credentials["c"].secret, "sk-test-1");
}

#[test]
fn a_rotation_to_something_unusable_is_undone_and_refused_at_the_checkpoint() {
    let mut node = TestNode::synced();
    let parts = push("delta 1..2/ab", vec![credential("c", "")], vec![]);
    let heard = node.send(parts[0].clone());
    assert_eq!((heard.applied.len(), heard.answers.len()), (0, 0));
    assert_eq!(node.session.current().credentials["c"].secret, "sk-test-1");
    let heard = node.send(parts[1].clone());
    assert_eq!(
        heard.answers,
        [
            "nack Credential: Credential/c: empty secret",
            "ack Checkpoint"
        ]
    );
    assert_eq!(node.session.current().credentials["c"].secret, "sk-test-1");
}

#[test]
fn additions_and_other_changes_are_not_urgent() {
    let mut node = TestNode::synced();
    let resources = vec![
        key("new", &[7]),
        Resource::VirtualKey(VirtualKey {
            models: vec!["m".to_owned()],
            ..key_message("k", &[1, 2, 3])
        }),
        team("t"),
        team("u"),
        credential("c", "sk-test-1"),
        credential("d", "sk-test-2"),
        Resource::RuleSet(RuleSet::default()),
    ];
    let before = node.session.current().clone();
    let mut parts = push("delta 1..2/ab", resources, vec![name(Kind::Model, "m")]);
    let end = parts.pop().unwrap();
    assert_eq!(node.send_all(parts), Heard::default());
    assert_eq!(node.session.current(), &before);
    assert_eq!(node.send(end).applied, ["2/ab changed"]);
}

#[test]
fn a_revocation_in_an_interrupted_push_stays() {
    let mut node = TestNode::synced();
    node.send(push("delta 1..2/ab", vec![], vec![name(Kind::VirtualKey, "k")])[0].clone());
    node.reconnect();
    assert!(!node.names().contains(&"VirtualKey/k".to_owned()));
    node.push("delta 1..2/ab", vec![], vec![name(Kind::VirtualKey, "k")]);
    assert!(!node.names().contains(&"VirtualKey/k".to_owned()));
}

// === the test's own node ===

/// A session with a compiler, and the nonces of the stream.
struct TestNode {
    session: Session,
    nonce: u64,
}

/// What the control plane hears back, and what the node applied.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    answers: Vec<String>,
    applied: Vec<String>,
    compiled: usize,
}

impl TestNode {
    fn new() -> Self {
        Self {
            session: Session::new(Node::default(), None),
            nonce: 0,
        }
    }

    fn starting_from(stored: Snapshot) -> Self {
        Self {
            session: Session::new(Node::default(), Some(stored)),
            nonce: 0,
        }
    }

    fn connected() -> Self {
        let mut node = Self::new();
        node.reconnect();
        node
    }

    /// Runs on version 1 of lineage `ab`.
    fn synced() -> Self {
        let mut node = Self::connected();
        let resources = vec![
            team("t"),
            key("k", &[1, 2]),
            provider("p"),
            credential("c", "sk-test-1"),
            model("m", "p"),
        ];
        node.push("full 1/ab", resources, vec![]);
        assert_eq!(node.session.checkpoint().unwrap().version, 1);
        node
    }

    fn reconnect(&mut self) {
        self.session.connected();
        self.nonce = 0;
    }

    fn push(&mut self, push_name: &str, puts: Vec<Resource>, gone: Vec<ResourceName>) -> Heard {
        self.send_all(push(push_name, puts, gone))
    }

    fn send_all(&mut self, parts: Vec<DeltaDiscoveryResponse>) -> Heard {
        let mut heard = Heard::default();
        for part in parts {
            let more = self.send(part);
            heard.answers.extend(more.answers);
            heard.applied.extend(more.applied);
            heard.compiled += more.compiled;
        }
        heard
    }

    fn send(&mut self, part: DeltaDiscoveryResponse) -> Heard {
        self.nonce += 1;
        let mut heard = Heard::default();
        let mut outcome = self
            .session
            .on_response(numbered(part, self.nonce))
            .unwrap();
        loop {
            heard.answers.extend(outcome.requests.iter().map(describe));
            match outcome.step {
                Step::Wait => return heard,
                Step::Applied(applied) => {
                    heard.applied.extend(describe_applied(&applied));
                    return heard;
                }
                Step::Compile => {}
            }
            heard.compiled += 1;
            let errors = compile(self.session.candidate().unwrap());
            outcome = if errors.is_empty() {
                self.session.accept()
            } else {
                self.session.reject(&errors)
            };
        }
    }

    fn names(&self) -> Vec<String> {
        let set = self.session.current();
        let keys = set.virtual_keys.keys().map(|id| format!("VirtualKey/{id}"));
        let teams = set.teams.keys().map(|id| format!("Team/{id}"));
        let providers = set.providers.keys().map(|id| format!("Provider/{id}"));
        let credentials = set.credentials.keys().map(|id| format!("Credential/{id}"));
        let models = set.models.keys().map(|id| format!("Model/{id}"));
        keys.chain(teams)
            .chain(providers)
            .chain(credentials)
            .chain(models)
            .collect()
    }

    /// The provider of a model's first target.
    fn model(&self, id: &str) -> Option<String> {
        let model = self.session.current().models.get(id)?;
        Some(model.targets[0].provider.clone())
    }
}

fn compile(set: &Resources) -> Vec<Refused> {
    let mut errors = Vec::new();
    let mut refuse = |kind: Kind, id: &str, reason: String| {
        errors.push(Refused {
            resource: name(kind, id),
            reason,
        });
    };
    for model in set.models.values() {
        let provider = &model.targets[0].provider;
        if !set.providers.contains_key(provider) {
            refuse(Kind::Model, &model.id, format!("no provider {provider}"));
        }
    }
    for key in set.virtual_keys.values() {
        if !set.teams.contains_key(&key.team) {
            refuse(Kind::VirtualKey, &key.id, format!("no team {}", key.team));
        }
    }
    for credential in set.credentials.values() {
        if credential.secret.is_empty() {
            refuse(Kind::Credential, &credential.id, "empty secret".to_owned());
        }
    }
    errors
}

/// The responses of a push, one a type, in the order of the types; the nonces are still to be set.
fn push(
    push_name: &str,
    puts: Vec<Resource>,
    gone: Vec<ResourceName>,
) -> Vec<DeltaDiscoveryResponse> {
    let checkpoint = push_name.parse::<PushName>().unwrap().checkpoint;
    let mut responses = Vec::new();
    for kind in Kind::ALL {
        let mut resources: Vec<WireResource> = puts
            .iter()
            .filter(|resource| resource.kind() == kind)
            .map(|resource| resource.encode(checkpoint.version.to_string()))
            .collect();
        if kind == Kind::Checkpoint {
            resources.push(WireResource {
                version: checkpoint_to_string(&checkpoint),
                name: SINGLETON.to_owned(),
                resource: Some(crate::ads::Any {
                    type_url: kind.type_url().to_owned(),
                    value: checkpoint.encode_to_vec(),
                }),
            });
        }
        let removed_resources: Vec<String> = gone
            .iter()
            .filter(|gone| gone.kind == kind)
            .map(|gone| gone.name.clone())
            .collect();
        if resources.is_empty() && removed_resources.is_empty() {
            continue;
        }
        responses.push(DeltaDiscoveryResponse {
            system_version_info: push_name.to_owned(),
            type_url: kind.type_url().to_owned(),
            resources,
            removed_resources,
            nonce: String::new(),
        });
    }
    responses
}

fn numbered(response: DeltaDiscoveryResponse, nonce: u64) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse {
        nonce: nonce.to_string(),
        ..response
    }
}

fn describe(request: &DeltaDiscoveryRequest) -> String {
    let kind = Kind::from_type_url(&request.type_url).unwrap().name();
    assert!(request.resource_names_subscribe.is_empty() && request.node.is_none());
    match &request.error_detail {
        None => {
            assert!(!request.response_nonce.is_empty());
            format!("ack {kind}")
        }
        Some(status) => format!("nack {kind}: {}", status.message),
    }
}

fn describe_applied(applied: &Applied) -> Vec<String> {
    match applied {
        Applied::Checkpoint {
            checkpoint,
            changed,
            ..
        } => {
            let word = if *changed { "changed" } else { "same" };
            vec![format!("{} {word}", checkpoint_to_string(checkpoint))]
        }
        Applied::Urgent(changes) => changes
            .iter()
            .map(|change| format!("urgent {}", change.resource))
            .collect(),
    }
}

fn name(kind: Kind, id: &str) -> ResourceName {
    ResourceName::new(kind, id)
}

fn team(id: &str) -> Resource {
    Resource::Team(team_message(id))
}

fn team_message(id: &str) -> Team {
    Team {
        id: id.to_owned(),
        ..Team::default()
    }
}

fn key(id: &str, secrets: &[u8]) -> Resource {
    Resource::VirtualKey(key_message(id, secrets))
}

fn key_message(id: &str, secrets: &[u8]) -> VirtualKey {
    let secret = |byte: &u8| KeySecret {
        sha256: vec![*byte; 32],
        expires_at_s: 0,
    };
    VirtualKey {
        id: id.to_owned(),
        team: "t".to_owned(),
        secrets: secrets.iter().map(secret).collect(),
        ..VirtualKey::default()
    }
}

fn provider(id: &str) -> Resource {
    Resource::Provider(Provider {
        id: id.to_owned(),
        ..Provider::default()
    })
}

fn credential(id: &str, secret: &str) -> Resource {
    Resource::Credential(credential_message(id, secret))
}

fn credential_message(id: &str, secret: &str) -> Credential {
    Credential {
        id: id.to_owned(),
        provider: "p".to_owned(),
        secret: secret.to_owned(),
        ..Credential::default()
    }
}

fn model(id: &str, provider: &str) -> Resource {
    let target = Target {
        provider: provider.to_owned(),
        ..Target::default()
    };
    Resource::Model(Model {
        id: id.to_owned(),
        targets: vec![target],
        ..Model::default()
    })
}
