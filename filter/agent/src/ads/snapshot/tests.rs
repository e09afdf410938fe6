use super::*;

fn snapshot() -> Snapshot {
    let mut resources = Resources::default();
    let team = Team {
        id: "t-1".to_owned(),
        ..Team::default()
    };
    resources.teams.insert(team.id.clone(), team);
    let credential = Credential {
        id: "c-1".to_owned(),
        secret: "sk-test-one".to_owned(),
        ..Credential::default()
    };
    resources
        .credentials
        .insert(credential.id.clone(), credential);
    resources.settings = Some(Settings {
        max_stale_s: 60,
        ..Settings::default()
    });
    resources.checkpoint = Some(Checkpoint {
        version: 7,
        nonce: "ab".to_owned(),
    });
    Snapshot {
        resources,
        whole: true,
    }
}

#[test]
fn what_is_stored_is_read_back() {
    assert_eq!(Snapshot::decode(&snapshot().encode()).unwrap(), snapshot());
    let empty = Snapshot::default();
    assert_eq!(Snapshot::decode(&empty.clone().encode()).unwrap(), empty);
}

#[test]
fn any_damage_is_seen() {
    let bytes = snapshot().encode();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Snapshot::decode(&damaged).is_err(), "byte {at}");
        assert!(Snapshot::decode(&bytes[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_later_format_is_named() {
    let mut bytes = snapshot().encode();
    bytes[8] = 2;
    assert!(matches!(
        Snapshot::decode(&bytes),
        Err(SnapshotError::Format(2))
    ));
}

#[test]
fn without_credentials_no_secret_is_in_the_bytes_and_the_snapshot_is_not_whole() {
    let bare = snapshot().without_credentials();
    assert!(!bare.whole);
    let bytes = bare.encode();
    assert!(!bytes.windows(7).any(|window| window == b"sk-test"));
    let mut nothing_to_take = snapshot();
    nothing_to_take.resources.credentials.clear();
    assert!(nothing_to_take.without_credentials().whole);
}
