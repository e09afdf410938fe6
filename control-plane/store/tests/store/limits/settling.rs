//! Charges move counters in the transaction of their records, and once.

use control_plane_core::limit::{BucketKey, DenyKind, Holding, Refusal};
use control_plane_core::resource::{LimitUnit, LimitWindow};
use control_plane_store::{BucketFilter, Closing, Error, ShardEnd};

use super::races::{batch, charge};
use super::{ask, assert_balanced, boot, budget, limit, sums, want};
use crate::database::{TestDatabase, actor, first_page};

#[tokio::test]
async fn a_batch_that_comes_twice_is_charged_once() {
    let database = budget(1000, 1).await;
    ask(&database.store, 1, 1, want("daily", 50, 50)).await;
    let one = charge(&database, "daily", 1, 20).await;
    let both = batch(1, 1, vec![one.clone(), one.clone()]);
    for _ in 0..2 {
        database
            .store
            .apply_usage(vec![both.clone()])
            .await
            .unwrap();
    }
    let overlapping = batch(1, 2, vec![one.clone(), one]);
    database.store.apply_usage(vec![overlapping]).await.unwrap();
    assert_eq!(sums(&database).await, (60, 0, 0));
    assert_balanced(&database).await;
    database.drop().await;
}

#[tokio::test]
async fn charges_and_records_commit_together_or_not_at_all() {
    let database = budget(1000, 1).await;
    ask(&database.store, 1, 1, want("daily", 50, 50)).await;
    let delivery = batch(1, 1, vec![charge(&database, "daily", 1, 20).await]);
    database
        .execute("alter table limit_bucket add constraint stuck check (settled < 10)")
        .await;
    assert!(
        database
            .store
            .apply_usage(vec![delivery.clone()])
            .await
            .is_err()
    );
    assert_eq!(
        database.number("select count(*) from usage_record").await,
        0
    );
    assert_eq!(sums(&database).await, (0, 50, 0));
    database
        .execute("alter table limit_bucket drop constraint stuck")
        .await;
    database.store.apply_usage(vec![delivery]).await.unwrap();
    assert_eq!(
        database.number("select count(*) from usage_record").await,
        1
    );
    assert_eq!(sums(&database).await, (20, 30, 0));
    database.drop().await;
}

#[tokio::test]
async fn a_flush_of_many_groups_counts_each_of_them() {
    let database = budget(1000, 1).await;
    ask(&database.store, 1, 1, want("daily", 1, 1)).await;
    let one = charge(&database, "daily", 0, 7).await;
    let charges = (0..150).map(|number| proto::metering::v1::Charge {
        subject: format!("k{number}"),
        ..one.clone()
    });
    let delivery = batch(1, 1, charges.collect());
    database.store.apply_usage(vec![delivery]).await.unwrap();
    let counted = "select count(*) from limit_bucket where settled = 7";
    assert_eq!(database.number(counted).await, 150);
    database.drop().await;
}

#[tokio::test]
async fn rates_and_slots_are_never_charged() {
    let database = budget(1000, 1).await;
    let rate = limit("rate", LimitUnit::Tokens, LimitWindow::Minute, 60);
    database.store.create_limit(&actor(), rate).await.unwrap();
    ask(&database.store, 1, 1, want("rate", 30, 30)).await;
    let delivery = batch(1, 1, vec![charge(&database, "rate", 1, 20).await]);
    database.store.apply_usage(vec![delivery]).await.unwrap();
    assert_eq!(sums(&database).await, (0, 30, 0));
    database.drop().await;
}

#[tokio::test]
async fn a_window_without_a_bucket_gets_one_from_a_late_record() {
    let database = budget(1000, 1).await;
    ask(&database.store, 1, 1, want("daily", 1, 1)).await;
    let mut late = charge(&database, "daily", 3, 9).await;
    late.window_start_s -= 86_400;
    database
        .store
        .apply_usage(vec![batch(1, 1, vec![late])])
        .await
        .unwrap();
    let filter = BucketFilter {
        include_past: true,
        ..BucketFilter::default()
    };
    let buckets = database
        .store
        .buckets(&filter, &first_page(10))
        .await
        .unwrap()
        .items;
    assert_eq!(buckets.len(), 2);
    assert_eq!(
        (buckets[0].settled, buckets[0].held, buckets[0].free),
        (9, 0, 991)
    );
    assert_eq!(buckets[0].window_end, Some(buckets[1].window_start));
    let now = database
        .store
        .buckets(&BucketFilter::default(), &first_page(10))
        .await
        .unwrap();
    assert_eq!(now.items, [buckets[1].clone()]);
    database.drop().await;
}

#[tokio::test]
async fn a_close_waits_for_the_records_and_frees_the_rest() {
    let database = budget(100, 2).await;
    ask(&database.store, 1, 1, want("daily", 60, 60)).await;
    let ends = [ShardEnd {
        shard: 0,
        last_seq: 1,
    }];
    let store = &database.store;
    assert_eq!(
        store.close(boot(1), 1, &[], &ends).await.unwrap(),
        Closing::Waiting
    );
    assert_eq!(sums(&database).await, (0, 60, 0));
    let delivery = batch(1, 1, vec![charge(&database, "daily", 1, 20).await]);
    store.apply_usage(vec![delivery]).await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            store.close(boot(1), 1, &[], &ends).await.unwrap(),
            Closing::Done
        );
        assert_eq!(sums(&database).await, (20, 0, 0));
    }
    assert_eq!(
        store.beat(&[(boot(1), 1)]).await.unwrap().refused,
        [(boot(1), Refusal::Unknown)]
    );
    assert!(ask(store, 2, 1, want("daily", 80, 80)).await.deny.is_none());
    database.drop().await;
}

#[tokio::test]
async fn a_grant_that_an_older_database_has_forgotten_is_declared_again() {
    let database = budget(100, 1).await;
    ask(&database.store, 1, 1, want("daily", 60, 60)).await;
    let key = charge(&database, "daily", 1, 0).await;
    // What an older copy of the database looks like to the node and to the replica.
    database.store.beat(&[]).await.unwrap();
    database
        .execute(
            "delete from limit_lease; update limit_bucket set held = 0; delete from node_boot;
             update lease_clock set ticks = 0, ticked_at = ticked_at - interval '1 hour'",
        )
        .await;
    let outcome = database.store.beat(&[(boot(1), 1)]).await.unwrap();
    assert!(outcome.older_database);
    assert_eq!(outcome.refused, [(boot(1), Refusal::Unknown)]);
    let holding = Holding {
        bucket: BucketKey {
            limit: key.limit,
            subject: key.subject,
            window_start_s: key.window_start_s,
        },
        granted_total: 60,
        returned_total: 0,
    };
    let welcome = database
        .store
        .hello(boot(1), "n", 1, false, &[holding])
        .await
        .unwrap();
    assert_eq!((welcome.epoch, welcome.fenced), (1, false));
    assert_eq!(sums(&database).await, (0, 60, 0));
    assert!(
        !database
            .store
            .beat(&[(boot(1), 1)])
            .await
            .unwrap()
            .older_database
    );
    database.drop().await;
}

#[tokio::test]
async fn a_correction_moves_the_counter_and_is_kept_and_audited() {
    let database = budget(100, 1).await;
    let store = &database.store;
    ask(store, 1, 1, want("daily", 90, 90)).await;
    let full = batch(1, 1, vec![charge(&database, "daily", 1, 90).await]);
    store.apply_usage(vec![full]).await.unwrap();
    let spent = ask(store, 1, 1, want("daily", 140, 50)).await.deny.unwrap();
    assert_eq!(spent.kind, DenyKind::Spent);
    let bucket = store
        .adjust_bucket(&actor(), "daily", "k", -80, "wrong price")
        .await
        .unwrap();
    assert_eq!((bucket.settled, bucket.free), (10, 90));
    assert!(
        ask(store, 1, 1, want("daily", 140, 50))
            .await
            .deny
            .is_none()
    );
    let kept = "select delta from limit_adjustment where reason = 'wrong price'";
    assert_eq!(database.number(kept).await, -80);
    let audit = store
        .audit_entries(&first_page(1))
        .await
        .unwrap()
        .items
        .remove(0);
    assert_eq!(
        (audit.method.as_str(), audit.resource.as_str()),
        ("AdjustBucket", "limits/daily")
    );
    for (limit, delta, reason) in [("ghost", 1, "r"), ("daily", 0, "r"), ("daily", 1, "")] {
        let refused = store
            .adjust_bucket(&actor(), limit, "k", delta, reason)
            .await
            .unwrap_err();
        assert!(matches!(refused, Error::NotFound(_) | Error::Invalid(_)));
    }
    database.drop().await;
}

#[tokio::test]
async fn what_a_lost_node_took_with_it_is_written_down() {
    let database: TestDatabase = budget(100, 1).await;
    let store = &database.store;
    ask(store, 1, 1, want("daily", 60, 60)).await;
    store.beat(&[]).await.unwrap();
    database
        .execute(
            "update node_boot set expires_at = turnpike_now();
             update lease_clock set fence_not_before = turnpike_now()",
        )
        .await;
    assert_eq!(store.fence_expired().await.unwrap(), [boot(1)]);
    assert_eq!(store.expire_lost().await.unwrap(), 0);
    database
        .execute("update limit_lease set lost_at = lost_at - interval '25 hours'")
        .await;
    assert_eq!(store.expire_lost().await.unwrap(), 1);
    let noted = store
        .unaccounted(None, &first_page(10))
        .await
        .unwrap()
        .items;
    assert_eq!(
        (noted.len(), noted[0].amount, noted[0].boot_id),
        (1, 60, boot(1))
    );
    assert_eq!(
        (noted[0].node.as_str(), noted[0].lost_at.is_some()),
        ("n", true)
    );
    let page = first_page(10);
    let of = |limit| store.unaccounted(Some(limit), &page);
    assert_eq!(of("daily").await.unwrap().items, noted);
    assert_eq!(of("nosuch").await.unwrap().items, []);
    assert_eq!(
        sums(&database).await,
        (0, 0, 60),
        "strict credit stays suspended"
    );
    let late = batch(1, 1, vec![charge(&database, "daily", 1, 25).await]);
    store.apply_usage(vec![late]).await.unwrap();
    let noted = store
        .unaccounted(None, &first_page(10))
        .await
        .unwrap()
        .items;
    assert_eq!(noted[0].amount, 35);
    store.close(boot(1), 1, &[], &[]).await.unwrap();
    assert_eq!(
        store
            .unaccounted(None, &first_page(10))
            .await
            .unwrap()
            .items,
        []
    );
    assert_eq!(sums(&database).await, (25, 0, 0));
    database.drop().await;
}

#[tokio::test]
async fn what_a_process_used_and_no_record_says_is_written_down_when_it_closes() {
    let database = budget(100, 2).await;
    ask(&database.store, 1, 1, want("daily", 60, 60)).await;
    let store = &database.store;
    let recorded = charge(&database, "daily", 1, 20).await;
    let holding = Holding {
        bucket: BucketKey {
            limit: "daily".into(),
            subject: recorded.subject.clone(),
            window_start_s: recorded.window_start_s,
        },
        granted_total: 60,
        returned_total: 25,
    };
    let delivery = batch(1, 1, vec![recorded]);
    store.apply_usage(vec![delivery]).await.unwrap();
    for _ in 0..2 {
        // It used 35; a full disk took the records of 15.
        let holdings = [holding.clone()];
        let closing = store.close(boot(1), 1, &holdings, &[]).await.unwrap();
        assert_eq!(closing, Closing::Done);
        assert_eq!(sums(&database).await, (20, 0, 15));
        let noted = store
            .unaccounted(None, &first_page(10))
            .await
            .unwrap()
            .items;
        assert_eq!(noted[0].amount, 15);
    }
    database.drop().await;
}

#[tokio::test]
async fn what_nobody_needs_is_forgotten_and_what_holds_credit_is_not() {
    let database = budget(100, 2).await;
    let store = &database.store;
    ask(store, 1, 1, want("daily", 10, 10)).await;
    ask(store, 2, 1, want("daily", 10, 10)).await;
    store.close(boot(2), 1, &[], &[]).await.unwrap();
    database
        .execute("update node_boot set expires_at = expires_at - interval '8 days'")
        .await;
    store.prune_limits().await.unwrap();
    assert_eq!(database.number("select count(*) from limit_lease").await, 1);
    assert_eq!(database.number("select count(*) from node_boot").await, 1);
    database
        .execute(
            "update limit_bucket set window_start = window_start - interval '500 days',
               window_end = window_end - interval '500 days'",
        )
        .await;
    store.prune_limits().await.unwrap();
    assert_eq!(
        database.number("select count(*) from limit_bucket").await,
        0
    );
    database.drop().await;
}
