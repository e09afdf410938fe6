use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn change(kind: Kind, id: &str, version: u64, body: Option<&str>) -> Change {
    Change {
        kind,
        id: id.into(),
        version,
        body: body.map(|text| Body::new(Zeroizing::new(text.as_bytes().to_vec()))),
    }
}

fn ids(delta: &Delta) -> Vec<(&str, bool)> {
    delta
        .changes
        .iter()
        .map(|change| (change.id.as_str(), change.body.is_some()))
        .collect()
}

#[test]
fn a_delta_tells_what_was_removed_and_nothing_twice() {
    let mut published = Published::new("n".into(), 0);
    published.apply(1, [change(Kind::Team, "a", 1, Some("1"))]);
    published.apply(2, [change(Kind::VirtualKey, "k", 2, Some("1"))]);
    published.apply(3, [change(Kind::VirtualKey, "k", 3, None)]);
    published.apply(4, [change(Kind::Team, "a", 4, Some("2"))]);
    assert_eq!(
        ids(&published.delta_since(0).unwrap()),
        [("k", false), ("a", true)]
    );
    assert_eq!(ids(&published.delta_since(3).unwrap()), [("a", true)]);
    assert_eq!(ids(&published.delta_since(4).unwrap()), []);
    assert_eq!(ids(&published.full()), [("a", true)]);
}

#[test]
fn a_version_that_is_not_known_means_everything() {
    let mut published = Published::new("n".into(), 5);
    published.apply(9, [change(Kind::Team, "a", 7, Some("1"))]);
    assert_eq!(published.delta_since(4), None);
    assert_eq!(published.delta_since(10), None);
    assert!(published.delta_since(5).is_some());
}

#[test]
fn bodies_are_never_printed() {
    let change = change(Kind::Credential, "main", 1, Some("sk-test-1"));
    let printed = format!("{change:?}");
    assert!(
        printed.contains("<9 bytes>") && !printed.contains("sk-test"),
        "{printed}"
    );
}

#[test]
fn kinds_have_one_word_each() {
    for kind in Kind::ALL {
        assert_eq!(kind_from_word(kind.word()), Some(kind));
    }
    assert_eq!(kind_from_word("gateway"), None);
}

proptest! {
    /// A node that applies deltas from any version holds what a full sync would give it.
    #[test]
    fn deltas_converge_to_the_full_config(
        edits in prop::collection::vec((0_u8..6, prop::option::of(0_u8..9)), 1..40),
        from in 0_usize..40,
    ) {
        let mut published = Published::new("n".into(), 0);
        let mut snapshots = vec![BTreeMap::new()];
        for (position, (id, body)) in edits.iter().enumerate() {
            let version = u64::try_from(position).unwrap() + 1;
            let text = body.map(|b| b.to_string());
            published.apply(version, [change(Kind::Team, &id.to_string(), version, text.as_deref())]);
            let mut next: BTreeMap<String, Vec<u8>> = snapshots[position].clone();
            match text {
                Some(text) => next.insert(id.to_string(), text.into_bytes()),
                None => next.remove(&id.to_string()),
            };
            snapshots.push(next);
        }
        let from = from.min(edits.len());
        let mut node = snapshots[from].clone();
        for change in published.delta_since(u64::try_from(from).unwrap()).unwrap().changes {
            match change.body {
                Some(body) => node.insert(change.id, body.bytes().to_vec()),
                None => node.remove(&change.id),
            };
        }
        prop_assert_eq!(&node, snapshots.last().unwrap());
    }
}
