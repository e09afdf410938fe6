//! From edited to published: versions, deltas, and what does not compile.

use std::collections::BTreeSet;

use control_plane_core::published::{Kind, Published};
use control_plane_store::Error;
use prost::Message as _;
use proto::config::v1 as config;

use crate::database::{TestDatabase, actor, key, model, provider, rule, rules, secret, team};

fn changed(published: &Published, since: u64) -> Vec<(Kind, String, bool)> {
    let delta = published.delta_since(since).unwrap();
    delta
        .changes
        .into_iter()
        .map(|c| (c.kind, c.id, c.body.is_some()))
        .collect()
}

#[tokio::test]
async fn a_new_database_publishes_its_settings_and_nothing_else() {
    let database = TestDatabase::new().await;
    let published = database.store.load_published().await.unwrap();
    assert_eq!(
        changed(&published, 0),
        [(Kind::Settings, "default".into(), true)]
    );
    assert_eq!(published.version(), 1);
    let again = database.store.publish_pending().await.unwrap();
    assert_eq!((again.version, again.unpublished.len()), (1, 0));
    database.drop().await;
}

#[tokio::test]
async fn every_mutation_is_a_version_and_a_removal_is_told() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let created = store.create_team(&actor(), team("a")).await.unwrap();
    let held = store
        .create_virtual_key(&actor(), key("k", "a"), secret(1))
        .await
        .unwrap();
    assert_eq!((created.config_version, held.config_version), (2, 3));
    let mut replica = store.load_published().await.unwrap();
    let removed = store.delete_virtual_key(&actor(), "k").await.unwrap();
    assert_eq!(removed, 4);
    store.refresh_published(&mut replica).await.unwrap();
    assert_eq!(replica.version(), 4);
    assert_eq!(
        changed(&replica, 3),
        [(Kind::VirtualKey, "k".into(), false)]
    );
    let fresh = store.load_published().await.unwrap();
    assert_eq!(fresh.delta_since(3), replica.delta_since(3));
    assert!(fresh.body(Kind::VirtualKey, "k").is_none());
    database.drop().await;
}

#[tokio::test]
async fn nodes_are_sent_hashes_and_a_revocation_at_once() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store.create_team(&actor(), team("a")).await.unwrap();
    store
        .create_virtual_key(&actor(), key("k", "a"), secret(1))
        .await
        .unwrap();
    let read = |published: &Published| {
        let body = published.body(Kind::VirtualKey, "k").unwrap();
        config::VirtualKey::decode(body.bytes()).unwrap()
    };
    let mut published = store.load_published().await.unwrap();
    assert_eq!(read(&published).secrets[0].sha256, secret(1).sha256);
    assert!(!read(&published).disabled);
    let mut revoked = key("k", "a");
    revoked.disabled = true;
    let version = store
        .update_virtual_key(&actor(), revoked)
        .await
        .unwrap()
        .config_version;
    store.refresh_published(&mut published).await.unwrap();
    assert_eq!(published.version(), version);
    assert!(read(&published).disabled);
    database.drop().await;
}

#[tokio::test]
async fn what_nodes_do_not_see_makes_no_version() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let first = store.create_team(&actor(), team("a")).await.unwrap();
    let mut renamed = team("a");
    renamed.display_name = "A".into();
    let second = store.update_team(&actor(), renamed).await.unwrap();
    assert_eq!(second.config_version, first.config_version);
    assert_eq!(second.resource.display_name, "A");
    database.drop().await;
}

#[tokio::test]
async fn version_order_is_commit_order_under_concurrent_edits() {
    let database = TestDatabase::new().await;
    let other = database.replica().await;
    let mut tasks = Vec::new();
    for number in 0..24 {
        let store = if number % 2 == 0 {
            database.store.clone()
        } else {
            other.clone()
        };
        tasks.push(tokio::spawn(async move {
            let created = store
                .create_team(&actor(), team(&format!("t{number}")))
                .await
                .unwrap();
            created.config_version
        }));
    }
    // A reader meanwhile never sees a version whose resources it cannot see, and never goes back.
    let mut reader = database.store.load_published().await.unwrap();
    let mut versions = BTreeSet::new();
    for task in tasks {
        versions.insert(task.await.unwrap());
        let before = reader.version();
        database.store.refresh_published(&mut reader).await.unwrap();
        assert!(reader.version() >= before);
        let told = reader
            .full()
            .changes
            .iter()
            .map(|c| c.version)
            .collect::<BTreeSet<_>>();
        assert_eq!(told, (1..=reader.version()).collect());
    }
    assert_eq!(versions, (2..=25).collect());
    let audited = database
        .number(
            "select count(*) from (select config_version, lag(config_version) over
               (order by audit_entry_id) as before from audit_entry) a
             where config_version <= before",
        )
        .await;
    assert_eq!(audited, 0, "audit rows are in version order");
    database.drop().await;
}

#[tokio::test]
async fn a_change_that_does_not_compile_is_refused_with_every_fault() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let version = store.config_version().await.unwrap();
    let wrong = rules(vec![rule("one", &["ghost"]), rule("two", &["phantom"])]);
    let Err(Error::Invalid(faults)) = store.update_rule_set(&actor(), wrong).await else {
        panic!("published");
    };
    let fields: Vec<_> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert!(
        fields.contains(&"rules[0].models[0]") && fields.contains(&"rules[1].models[0]"),
        "{faults:?}"
    );
    let mut nowhere = model("m", "ghost");
    nowhere.targets.extend(model("m", "phantom").targets);
    let Err(Error::Invalid(faults)) = store.create_model(&actor(), nowhere).await else {
        panic!("published");
    };
    let fields: Vec<_> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, ["targets[0].provider", "targets[1].provider"]);
    assert_eq!(store.config_version().await.unwrap(), version);
    assert!(store.rule_set().await.unwrap().resource.rules.is_empty());
    database.drop().await;
}

#[tokio::test]
async fn one_bad_row_written_past_the_api_does_not_freeze_the_rest() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store.create_team(&actor(), team("a")).await.unwrap();
    store
        .create_virtual_key(&actor(), key("beta", "a"), secret(1))
        .await
        .unwrap();
    store
        .create_provider(&actor(), provider("mock-a"))
        .await
        .unwrap();
    store
        .create_model(&actor(), model("r1", "mock-a"))
        .await
        .unwrap();
    let good = rules(vec![rule("r1", &["r1"])]);
    let published_at = store
        .update_rule_set(&actor(), good.clone())
        .await
        .unwrap()
        .config_version;

    // Two more rows in one change: a rule that names nothing, and a revocation.
    database
        .execute(
            r#"begin;
               update rule_set set rules = rules || '[{"name": "r2", "models": ["ghost"]}]';
               update virtual_key set disabled = true where virtual_key_id = 'beta';
               commit"#,
        )
        .await;
    let publication = store.publish_pending().await.unwrap();
    assert_eq!(publication.unpublished.len(), 1);
    let why = &publication.unpublished[0];
    assert!(
        why.starts_with("rule_set default: ") && why.contains("rules[1].models[0]"),
        "{why}"
    );
    assert_eq!(store.unpublished().await.unwrap(), publication.unpublished);

    // A replica that starts in between gets the revocation and the last good rules.
    let fresh = database.replica().await.load_published().await.unwrap();
    let beta = fresh.body(Kind::VirtualKey, "beta").unwrap();
    assert!(config::VirtualKey::decode(beta.bytes()).unwrap().disabled);
    let sent = fresh.body(Kind::RuleSet, "default").unwrap();
    assert_eq!(
        config::RuleSet::decode(sent.bytes()).unwrap(),
        good.to_config()
    );

    // No push loop: the same fault makes no further version.
    let again = store.publish_pending().await.unwrap();
    assert_eq!(again.version, publication.version);
    // Other changes go on, also structural ones.
    store
        .create_model(&actor(), model("other", "mock-a"))
        .await
        .unwrap();

    // The fix applies, by hand or through the API.
    database
        .execute(r#"update rule_set set rules = '[{"name": "r2", "models": ["r1"]}]'"#)
        .await;
    let fixed = store.publish_pending().await.unwrap();
    assert!(fixed.unpublished.is_empty() && fixed.version > published_at);
    assert_eq!(
        store.rule_set().await.unwrap().resource,
        rules(vec![rule("r2", &["r1"])])
    );
    database.drop().await;
}

#[tokio::test]
async fn a_row_that_cannot_be_read_stays_unpublished_and_says_why() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store
        .create_provider(&actor(), provider("p"))
        .await
        .unwrap();
    database
        .execute(r#"update rule_set set rules = '[{"name": 7}]'"#)
        .await;
    database
        .execute("update provider set base_url = 'gopher://x'")
        .await;
    database
        .execute("insert into team (team_id) values ('Not An Id')")
        .await;
    let publication = store.publish_pending().await.unwrap();
    let told = publication.unpublished.join("\n");
    for expected in [
        "provider p: base_url",
        "rule_set default: ",
        "team Not An Id: team_id",
    ] {
        assert!(told.contains(expected), "{expected} in {told}");
    }
    let published = store.load_published().await.unwrap();
    let sent = published.body(Kind::Provider, "p").unwrap();
    assert_eq!(
        config::Provider::decode(sent.bytes()).unwrap().authority,
        "p.example"
    );
    assert!(matches!(
        store.rule_set().await,
        Err(Error::Unreadable { .. })
    ));
    // Through the API it is simply replaced.
    store
        .update_rule_set(&actor(), rules(vec![]))
        .await
        .unwrap();
    store
        .update_provider(&actor(), provider("p"))
        .await
        .unwrap();
    assert_eq!(store.unpublished().await.unwrap().len(), 1);
    database.drop().await;
}

#[tokio::test]
async fn rows_that_need_one_another_are_published_together() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    database
        .execute(
            r#"insert into provider (provider_id, dialect, base_url) values ('p', 'openai', 'https://p.example');
               insert into model (model_id) values ('m'), ('bad');
               insert into model_target (model_id, position, provider_id) values ('m', 1, 'p');
               update rule_set set rules = '[{"name": "all", "models": ["m"]}]'"#,
        )
        .await;
    let publication = store.publish_pending().await.unwrap();
    assert_eq!(publication.version, 2, "one version for all of them");
    let told = publication.unpublished.join("\n");
    assert!(told.contains("model bad: targets"), "{told}");
    let published = store.load_published().await.unwrap();
    for (kind, id) in [
        (Kind::Provider, "p"),
        (Kind::Model, "m"),
        (Kind::RuleSet, "default"),
    ] {
        assert!(published.body(kind, id).is_some(), "{kind} {id}");
    }
    assert!(published.body(Kind::Model, "bad").is_none());
    database.drop().await;
}

#[tokio::test]
async fn an_edit_by_hand_is_stamped_as_one() {
    let database = TestDatabase::new().await;
    database
        .store
        .create_team(&actor(), team("a"))
        .await
        .unwrap();
    let by = "select count(*) from team where updated_by = ";
    assert_eq!(database.number(&format!("{by}'create_team'")).await, 1);
    database.execute("update team set display_name = 'x'").await;
    assert_eq!(database.number(&format!("{by}'sql'")).await, 1);
    database.drop().await;
}

#[tokio::test]
async fn removals_are_forgotten_only_on_purpose() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store.create_team(&actor(), team("a")).await.unwrap();
    let removed = store.delete_team(&actor(), "a").await.unwrap();
    store.prune_removals(removed).await.unwrap();
    let published = store.load_published().await.unwrap();
    assert_eq!(
        published.delta_since(removed - 1),
        None,
        "too far behind: everything"
    );
    assert_eq!(published.delta_since(removed).unwrap().changes.len(), 0);
    assert_eq!(
        database
            .number("select count(*) from published_resource where body is null")
            .await,
        0
    );
    database.drop().await;
}

#[tokio::test]
async fn another_lineage_replaces_what_is_in_memory() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let mut memory = store.load_published().await.unwrap();
    store.create_team(&actor(), team("a")).await.unwrap();
    store.refresh_published(&mut memory).await.unwrap();
    // As after a fail-over to an older state of the same database.
    database
        .execute("delete from published_resource where kind = 'team'; update config_state set version = 1")
        .await;
    store.refresh_published(&mut memory).await.unwrap();
    assert_eq!(memory.version(), 1);
    assert!(memory.body(Kind::Team, "a").is_none());
    database
        .execute("update config_state set nonce = 'other', version = 9")
        .await;
    store.refresh_published(&mut memory).await.unwrap();
    assert_eq!((memory.nonce(), memory.version()), ("other", 9));
    database.drop().await;
}
