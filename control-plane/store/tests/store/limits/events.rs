//! Thresholds that are passed.

use control_plane_store::{Delivery, EventFilter, PageRequest, ToldEvent};

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

async fn told(store: &Store, filter: &EventFilter) -> Vec<ToldEvent> {
    let mut all = Vec::new();
    let mut token = String::new();
    loop {
        let request = PageRequest { size: 1, token };
        let page = store.limit_events(filter, &request).await.unwrap();
        all.extend(page.items);
        token = page.next_page_token;
        if token.is_empty() {
            return all;
        }
    }
}

#[tokio::test]
async fn events_are_listed_newest_first_with_what_became_of_them() {
    let database = watched(1000).await;
    let store = &database.store;
    settle(&database, "a", 500).await;
    store.raise_limit_events().await.unwrap();
    settle(&database, "b", 1000).await;
    store.raise_limit_events().await.unwrap();
    let all = told(store, &EventFilter::default()).await;
    assert_eq!(all.len(), 3);
    let newest = (all[0].event.subject.as_str(), all[2].event.subject.as_str());
    assert_eq!(newest, ("b", "a"));
    assert!(matches!(all[2].delivery, Delivery::Pending { .. }));
    assert_eq!((all[2].tries, all[2].failure.as_str()), (0, ""));

    let taken = store.take_limit_events(10).await.unwrap();
    assert_eq!(taken.len(), 3);
    let long = "x".repeat(300);
    store
        .limit_event_failed(all[0].event.id, &long)
        .await
        .unwrap();
    store
        .limit_event_failed(all[2].event.id, "500")
        .await
        .unwrap();
    store.limit_event_delivered(all[2].event.id).await.unwrap();
    let all = told(store, &EventFilter::default()).await;
    assert_eq!((all[0].tries, all[0].failure.len()), (1, 200));
    assert!(matches!(all[2].delivery, Delivery::Delivered { .. }));
    assert_eq!(all[2].failure, "500");
    let undelivered = EventFilter {
        undelivered: true,
        ..EventFilter::default()
    };
    assert_eq!(told(store, &undelivered).await, all[..2]);
    database
        .execute("update limit_event set raised_at = raised_at - interval '1 day'")
        .await;
    let old = told(store, &undelivered).await;
    assert_eq!(old[0].delivery, Delivery::GivenUp);
    let of_another = EventFilter {
        limit: Some("nosuch".into()),
        ..EventFilter::default()
    };
    assert_eq!(told(store, &of_another).await, []);
    let foreign = PageRequest {
        size: 0,
        token: "bm90IGpzb24".into(),
    };
    store
        .limit_events(&undelivered, &foreign)
        .await
        .unwrap_err();
}
