//! An audit row for each mutation, in its transaction.

use control_plane_store::PageRequest;

use crate::database::{TestDatabase, actor, first_page, key, rule, rules, secret, team};

#[tokio::test]
async fn each_mutation_leaves_one_row_with_the_state_after_it() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store.create_team(&actor(), team("a")).await.unwrap();
    store
        .create_virtual_key(&actor(), key("k", "a"), secret(1))
        .await
        .unwrap();
    store.delete_virtual_key(&actor(), "k").await.unwrap();
    let page = store.audit_entries(&first_page(3)).await.unwrap();
    let told: Vec<_> = page
        .items
        .iter()
        .map(|entry| {
            (
                entry.method.as_str(),
                entry.resource.as_str(),
                entry.config_version,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("DeleteVirtualKey", "virtualKeys/k", 4),
            ("CreateVirtualKey", "virtualKeys/k", 3),
            ("CreateTeam", "teams/a", 2),
        ]
    );
    assert!(page.items.iter().all(|entry| entry.actor == "admin-token"));
    assert_eq!(page.items[0].state, "");
    let state: serde_json::Value = serde_json::from_str(&page.items[1].state).unwrap();
    assert_eq!(
        (state["team"].as_str(), state["secret_hint"].as_str()),
        (Some("a"), Some(&*secret(1).hint))
    );
    assert!(!page.items[1].state.contains("sha256"));

    let rest = PageRequest {
        size: 100,
        token: page.next_page_token,
    };
    let rest = store.audit_entries(&rest).await.unwrap();
    assert_eq!(rest.items.len(), 1);
    assert_eq!(
        (
            rest.items[0].actor.as_str(),
            rest.items[0].resource.as_str()
        ),
        ("publisher", "settings default")
    );
    database.drop().await;
}

#[tokio::test]
async fn a_refused_mutation_leaves_none() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let before = database.number("select count(*) from audit_entry").await;
    let refused = store
        .update_rule_set(&actor(), rules(vec![rule("r", &["ghost"])]))
        .await;
    assert!(refused.is_err());
    assert!(
        store
            .create_virtual_key(&actor(), key("k", "ghost"), secret(1))
            .await
            .is_err()
    );
    assert_eq!(
        database.number("select count(*) from audit_entry").await,
        before
    );
    assert_eq!(
        database.number("select count(*) from pending_edit").await,
        0
    );
    database.drop().await;
}

#[tokio::test]
async fn a_mutation_whose_audit_row_cannot_be_written_does_not_happen() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    database
        .execute("alter table audit_entry add constraint none_more check (method <> 'CreateTeam')")
        .await;
    assert!(store.create_team(&actor(), team("a")).await.is_err());
    assert_eq!(database.number("select count(*) from team").await, 0);
    assert_eq!(store.config_version().await.unwrap(), 1);
    database.drop().await;
}

#[tokio::test]
async fn the_moment_of_a_version_is_known() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let created = store.create_team(&actor(), team("a")).await.unwrap();
    let at = store
        .published_at(created.config_version)
        .await
        .unwrap()
        .unwrap();
    assert!(at >= created.created_at);
    assert_eq!(store.published_at(99).await.unwrap(), None);
    database.drop().await;
}
