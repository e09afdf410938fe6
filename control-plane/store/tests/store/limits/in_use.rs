//! Whom and what limits name stays while they do.

use control_plane_store::Error;

use crate::database::{key, model, provider, rule, rules, secret, team};

use super::*;

fn of(id: &str, subject: LimitSubject, subject_id: &str) -> Limit {
    Limit {
        subject,
        subject_id: subject_id.into(),
        ..limit(id, LimitUnit::Tokens, LimitWindow::Day, 1000)
    }
}

fn selecting(id: &str, model: &str, providers: &[&str]) -> Limit {
    Limit {
        models: vec![model.into()],
        providers: providers.iter().map(|id| (*id).to_owned()).collect(),
        ..of(id, LimitSubject::Everything, "")
    }
}

fn users<T: std::fmt::Debug>(deletion: Result<T, Error>) -> String {
    match deletion.unwrap_err() {
        Error::InUse { by, .. } => by,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_limits_name_stays_and_all_of_them_are_named() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let actor = actor();
    for id in ["blue", "blueish"] {
        store.create_team(&actor, team(id)).await.unwrap();
    }
    let created = store.create_virtual_key(&actor, key("app", "blueish"), secret(1));
    created.await.unwrap();
    store
        .create_provider(&actor, provider("acme"))
        .await
        .unwrap();
    store
        .create_model(&actor, model("large", "acme"))
        .await
        .unwrap();
    store
        .create_model(&actor, model("small", "acme"))
        .await
        .unwrap();
    let ruled = rules(vec![rule("all", &["large"])]);
    store.update_rule_set(&actor, ruled).await.unwrap();
    for limit in [
        of("of-team", LimitSubject::Team, "blue"),
        of("of-user", LimitSubject::EndUser, "blue/joe/1"),
        of("of-each", LimitSubject::Team, ""),
        of("of-key", LimitSubject::Key, "app"),
        selecting("of-model", "large", &["acme"]),
        selecting("under", "small/*", &[]),
    ] {
        store.create_limit(&actor, limit).await.unwrap();
    }
    assert_eq!(
        users(store.delete_team(&actor, "blue").await),
        "limits/of-team, limits/of-user"
    );
    assert_eq!(
        users(store.delete_team(&actor, "blueish").await),
        "virtualKeys/app"
    );
    assert_eq!(
        users(store.delete_virtual_key(&actor, "app").await),
        "limits/of-key"
    );
    assert_eq!(
        users(store.delete_model(&actor, "large").await),
        "limits/of-model, rule all"
    );
    // A prefix names nobody.
    store.delete_model(&actor, "small").await.unwrap();
    assert_eq!(
        users(store.delete_provider(&actor, "acme").await),
        "limits/of-model, models/large"
    );
    for id in ["of-team", "of-user", "of-key"] {
        store.delete_limit(&actor, id).await.unwrap();
    }
    store.delete_virtual_key(&actor, "app").await.unwrap();
    store.delete_team(&actor, "blue").await.unwrap();
    // What is gone is not there, whoever names it.
    let again = store.delete_team(&actor, "blue").await;
    assert!(matches!(again, Err(Error::NotFound(_))), "{again:?}");
}

#[tokio::test]
async fn of_many_users_ten_are_named() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store.create_team(&actor(), team("blue")).await.unwrap();
    for number in 10..22 {
        let limit = of(&format!("l{number}"), LimitSubject::Team, "blue");
        store.create_limit(&actor(), limit).await.unwrap();
    }
    let by = users(store.delete_team(&actor(), "blue").await);
    assert!(by.starts_with("limits/l10, limits/l11, "), "{by}");
    assert!(by.ends_with("limits/l19, 2 more"), "{by}");
}
