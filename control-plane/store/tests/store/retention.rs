//! Single records are kept for their time, sums for ever.

use control_plane_store::{Error, Store};

use crate::database::{TestDatabase, options};
use crate::ledger::{batch, records, shard};

#[tokio::test]
async fn days_beyond_their_time_are_dropped_and_their_sums_stay() {
    let database = TestDatabase::new().await;
    let mut options = options(database.url());
    options.record_days = 30;
    let store = Store::connect(options).await.unwrap();
    // Half of the records are of 30 November, which has no partition of its own.
    let first_day =
        "set turnpike.clock_offset = '0'; select make_usage_partitions('2026-12-01', 2)";
    database.execute(first_day).await;
    store
        .apply_usage(vec![batch(shard(0), 1, records(0..20))])
        .await
        .unwrap();
    let kept = "select count(*) from usage_record";
    let in_rollups = "select sum(requests)::bigint from usage_rollup";
    let gone = async |day: &str| {
        let call = format!("select drop_usage_partitions('{day}')::bigint");
        let dropped = database.number(&call).await;
        (dropped, database.number(kept).await)
    };
    assert_eq!(gone("2026-11-30").await, (0, 20), "that day itself is kept");
    assert_eq!(
        gone("2026-12-01").await,
        (0, 10),
        "from the default partition"
    );
    assert_eq!(gone("2026-12-02").await, (1, 0));
    assert_eq!(database.number(in_rollups).await, 20);

    // What was counted is not counted again, though it is gone.
    store
        .apply_usage(vec![batch(shard(0), 1, records(0..20))])
        .await
        .unwrap();
    assert_eq!(database.number(kept).await, 0);
    assert_eq!(database.number(in_rollups).await, 20);

    // By the store's own clock and days.
    let days_ago = |days: u32| {
        format!(
            "select make_usage_partitions((turnpike_now() at time zone 'UTC')::date - {days}, 1)"
        )
    };
    database.execute(&days_ago(30)).await;
    database.execute(&days_ago(31)).await;
    database.execute(&days_ago(400)).await;
    assert_eq!(store.drop_old_records().await.unwrap(), 2);
    assert_eq!(store.drop_old_records().await.unwrap(), 0);
    database.drop().await;
}

#[tokio::test]
async fn a_reader_of_old_records_puts_their_end_off_and_does_not_hold_up_the_ledger() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let old = "select make_usage_partitions((turnpike_now() at time zone 'UTC')::date - 100, 1)";
    database.execute(old).await;
    let mut reader = database.sql.begin().await.unwrap();
    sqlx::query("select count(*) from usage_record")
        .execute(&mut *reader)
        .await
        .unwrap();
    let (dropped, taken) = tokio::join!(
        store.drop_old_records(),
        store.apply_usage(vec![batch(shard(0), 1, records(0..2))]),
    );
    assert!(matches!(dropped, Err(Error::Unavailable(_))), "{dropped:?}");
    taken.unwrap();
    reader.rollback().await.unwrap();
    assert_eq!(store.drop_old_records().await.unwrap(), 1);
    database.drop().await;
}

#[tokio::test]
async fn records_are_kept_for_ever_if_so_wanted() {
    let database = TestDatabase::new().await;
    let mut options = options(database.url());
    options.record_days = 0;
    let store = Store::connect(options).await.unwrap();
    database
        .execute(
            "select make_usage_partitions((turnpike_now() at time zone 'UTC')::date - 4000, 1)",
        )
        .await;
    assert_eq!(store.drop_old_records().await.unwrap(), 0);
    database.drop().await;
}
