//! Limits as operators edit them.

use control_plane_core::published::Kind;
use control_plane_core::resource::{
    Enforcement, Limit, LimitUnit, LimitWindow, OnExceed, OnUnavailable, OnUnbounded,
};
use control_plane_store::Error;
use prost::Message as _;
use proto::config::v1 as config;

use super::{ask, budget, limit, strict_money, want};
use crate::database::{TestDatabase, actor, first_page};

#[tokio::test]
async fn a_limit_is_created_read_changed_and_deleted() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let full = Limit {
        display_name: "Daily".into(),
        models: vec!["m/*".into()],
        time_zone: "Europe/Berlin".into(),
        enforcement: Some(Enforcement::Guarded),
        on_exceed: Some(OnExceed::Warn),
        on_unavailable: Some(OnUnavailable::Allow),
        outage_allowance: 5,
        on_unbounded: Some(OnUnbounded::Estimate),
        clamp: true,
        thresholds: vec![50, 90],
        ..limit("full", LimitUnit::Money, LimitWindow::Day, 1000)
    };
    let created = store.create_limit(&actor(), full.clone()).await.unwrap();
    assert_eq!(created.resource, full);
    assert_eq!(store.limit("full").await.unwrap(), created);
    let again = store
        .create_limit(&actor(), full.clone())
        .await
        .unwrap_err();
    assert!(matches!(again, Error::AlreadyExists(name) if name == "limits/full"));
    let published = store.load_published().await.unwrap();
    let body = published.body(Kind::Limit, "full").unwrap();
    assert_eq!(
        config::Limit::decode(body.bytes()).unwrap(),
        full.to_config()
    );
    let changed = Limit {
        amount: 2000,
        disabled: true,
        ..full
    };
    let updated = store.update_limit(&actor(), changed.clone()).await.unwrap();
    assert_eq!(updated.resource, changed);
    assert!(updated.config_version > created.config_version);
    let listed = store.limits(&first_page(10)).await.unwrap().items;
    assert_eq!(listed, [updated]);
    let version = store.delete_limit(&actor(), "full").await.unwrap();
    assert_eq!(version, store.config_version().await.unwrap());
    assert!(matches!(store.limit("full").await, Err(Error::NotFound(_))));
    database.drop().await;
}

#[tokio::test]
async fn what_buckets_count_is_fixed_also_over_a_deletion() {
    let database = budget(100, 1).await;
    let store = &database.store;
    ask(store, 1, 1, want("daily", 10, 10)).await;
    let monthly = strict_money("daily", LimitWindow::Month, 100);
    let tokens = limit("daily", LimitUnit::Tokens, LimitWindow::Day, 100);
    let field = |error: Error| match error {
        Error::Invalid(faults) => faults.into_iter().next().unwrap().field,
        other => panic!("{other}"),
    };
    let refused = store.update_limit(&actor(), monthly).await.unwrap_err();
    assert_eq!(field(refused), "values.window");
    store.delete_limit(&actor(), "daily").await.unwrap();
    let refused = store.create_limit(&actor(), tokens).await.unwrap_err();
    assert_eq!(field(refused), "values.unit");
    let same = strict_money("daily", LimitWindow::Day, 50);
    store.create_limit(&actor(), same).await.unwrap();
    let held = "select held from limit_bucket where amount = 50";
    assert_eq!(database.number(held).await, 10, "deleting refills nothing");
    database.drop().await;
}

#[tokio::test]
async fn an_amount_changed_past_the_api_reaches_buckets_when_it_is_published() {
    let database = budget(100, 1).await;
    let store = &database.store;
    ask(store, 1, 1, want("daily", 80, 80)).await;
    database
        .execute("update limit_definition set amount = 30")
        .await;
    assert_eq!(
        database.number("select amount from limit_bucket").await,
        100
    );
    store.publish_pending().await.unwrap();
    assert_eq!(database.number("select amount from limit_bucket").await, 30);
    let told = store.recalls(&[(super::boot(1), 1)]).await.unwrap();
    assert_eq!((told.len(), told[0].1.keep), (1, 0));
    database.drop().await;
}

#[tokio::test]
async fn a_limit_that_was_edited_into_nonsense_stays_as_it_was_published() {
    let database = budget(100, 1).await;
    database
        .execute("update limit_definition set enforcement = 'perhaps'")
        .await;
    let publication = database.store.publish_pending().await.unwrap();
    assert_eq!(publication.unpublished.len(), 1, "{publication:?}");
    let published = database.store.load_published().await.unwrap();
    assert!(published.body(Kind::Limit, "daily").is_some());
    database.drop().await;
}
