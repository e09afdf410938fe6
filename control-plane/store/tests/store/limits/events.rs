//! Thresholds that are passed.

use super::*;

async fn watched(amount: u64) -> TestDatabase {
    let database = TestDatabase::new().await;
    let daily = Limit {
        thresholds: vec![50, 100],
        display_name: "Daily".into(),
        ..strict_money("daily", LimitWindow::Day, amount)
    };
    database.store.create_limit(&actor(), daily).await.unwrap();
    database
}

async fn settle(database: &TestDatabase, subject: &str, delta: i64) {
    let actor = actor();
    let store = &database.store;
    let adjusted = store.adjust_bucket(&actor, "daily", subject, delta, "a test");
    adjusted.await.unwrap();
}

async fn taken(store: &Store) -> Vec<(String, u32)> {
    let events = store.take_limit_events(10).await.unwrap();
    let told = events
        .into_iter()
        .map(|event| (event.subject, event.threshold));
    told.collect()
}

#[tokio::test]
async fn each_threshold_of_each_bucket_is_raised_once() {
    let database = watched(1000).await;
    let store = &database.store;
    settle(&database, "a", 499).await;
    assert_eq!(store.raise_limit_events().await.unwrap(), 0);
    settle(&database, "a", 1).await;
    settle(&database, "b", 1000).await;
    let (one, other) = tokio::join!(store.raise_limit_events(), store.raise_limit_events());
    assert_eq!(one.unwrap() + other.unwrap(), 3);
    settle(&database, "a", -100).await;
    settle(&database, "a", 100).await;
    assert_eq!(store.raise_limit_events().await.unwrap(), 0);
    let event = store.take_limit_events(1).await.unwrap().remove(0);
    assert_eq!(
        (event.limit.as_str(), event.display_name.as_str()),
        ("daily", "Daily")
    );
    assert_eq!(
        (event.unit.as_str(), event.window.as_str()),
        ("money", "day")
    );
    assert_eq!((event.threshold, event.amount), (50, 1000));
    assert!(event.window_end.is_some());
}

#[tokio::test]
async fn a_limit_that_is_lowered_passes_its_thresholds_and_a_disabled_one_does_not() {
    let database = watched(1000).await;
    let store = &database.store;
    settle(&database, "a", 400).await;
    assert_eq!(store.raise_limit_events().await.unwrap(), 0);
    let lowered = Limit {
        amount: 500,
        ..store.limit("daily").await.unwrap().resource
    };
    let disabled = Limit {
        disabled: true,
        ..lowered.clone()
    };
    store.update_limit(&actor(), disabled).await.unwrap();
    assert_eq!(store.raise_limit_events().await.unwrap(), 0);
    store.update_limit(&actor(), lowered).await.unwrap();
    assert_eq!(store.raise_limit_events().await.unwrap(), 1);
}

#[tokio::test]
async fn an_event_is_handed_out_to_one_until_it_is_delivered() {
    let database = watched(1000).await;
    let store = &database.store;
    settle(&database, "a", 1000).await;
    store.raise_limit_events().await.unwrap();
    let (one, other) = tokio::join!(taken(store), taken(store));
    let mut both = [one, other].concat();
    both.sort();
    assert_eq!(both, [("a".to_owned(), 50), ("a".to_owned(), 100)]);
    assert!(taken(store).await.is_empty());
    // Their next try is due.
    let due = "update limit_event set try_at = turnpike_now()";
    database.execute(due).await;
    let events = store.take_limit_events(10).await.unwrap();
    assert_eq!(events.len(), 2);
    store.limit_event_delivered(events[0].id).await.unwrap();
    database.execute(due).await;
    assert_eq!(taken(store).await, [("a".to_owned(), 100)]);
    // It is given up after a day.
    database.execute(due).await;
    database
        .execute("update limit_event set raised_at = raised_at - interval '1 day'")
        .await;
    assert!(taken(store).await.is_empty());
}
