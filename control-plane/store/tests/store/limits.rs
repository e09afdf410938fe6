//! Limits in Postgres do what they do in memory.

mod differential;
mod events;
mod in_use;
mod races;
mod resource;
mod settling;
mod status;
mod throughput;

use std::collections::BTreeMap;

use control_plane_core::limit::{Answer, BucketKey, Lease, LeaseKey, Sums, Want};
use control_plane_core::nodes::BootId;
use control_plane_core::resource::{Enforcement, Limit, LimitSubject, LimitUnit, LimitWindow};
use control_plane_store::{HolderWants, Store};
use sqlx::Row as _;
use time::OffsetDateTime;

use crate::database::{TestDatabase, actor};

pub(super) const START_S: i64 = 1_800_000_000;

pub(super) fn limit(id: &str, unit: LimitUnit, window: LimitWindow, amount: u64) -> Limit {
    Limit {
        id: id.into(),
        display_name: String::new(),
        subject: LimitSubject::Key,
        subject_id: String::new(),
        models: vec![],
        providers: vec![],
        rules: vec![],
        unit,
        amount,
        window,
        time_zone: String::new(),
        enforcement: None,
        on_exceed: None,
        on_unavailable: None,
        outage_allowance: 0,
        on_unbounded: None,
        burst: 0,
        clamp: false,
        thresholds: vec![],
        disabled: false,
    }
}

pub(super) fn strict_money(id: &str, window: LimitWindow, amount: u64) -> Limit {
    Limit {
        enforcement: Some(Enforcement::Strict),
        ..limit(id, LimitUnit::Money, window, amount)
    }
}

pub(super) fn boot(number: u8) -> BootId {
    BootId([number; 16])
}

pub(super) fn now_in(limit: &str, subject: &str) -> BucketKey {
    BucketKey {
        limit: limit.into(),
        subject: subject.into(),
        window_start_s: -1,
    }
}

pub(super) fn want(limit: &str, granted_total: u64, min_useful: u64) -> Want {
    Want {
        bucket: now_in(limit, "k"),
        granted_total,
        returned_total: 0,
        available: 0,
        demand_per_minute: 0,
        min_useful,
        urgent: true,
        next_window: false,
    }
}

pub(super) async fn ask(store: &Store, number: u8, epoch: u64, want: Want) -> Answer {
    let asked = HolderWants {
        boot_id: boot(number),
        epoch,
        wants: vec![want],
    };
    let answers = store.want(&[asked]).await.unwrap().remove(0);
    answers.unwrap().remove(0)
}

/// A database with a strict budget of a day, and so many processes that said Hello.
pub(super) async fn budget(amount: u64, processes: u8) -> TestDatabase {
    let database = TestDatabase::new().await;
    let daily = strict_money("daily", LimitWindow::Day, amount);
    database.store.create_limit(&actor(), daily).await.unwrap();
    for number in 1..=processes {
        let hello = database.store.hello(boot(number), "n", 0, false, &[]);
        assert_eq!(hello.await.unwrap().epoch, 1);
    }
    database
}

/// Puts the database's clock into a row that the test moves.
pub(super) async fn freeze_clock(database: &TestDatabase) {
    database
        .execute(
            "create table test_clock (at timestamptz not null);
             insert into test_clock values ('epoch');
             create or replace function turnpike_now() returns timestamptz
               language sql volatile return (select max(at) from test_clock);",
        )
        .await;
    set_clock(database, START_S * 1_000_000).await;
    database
        .execute("update lease_clock set ticked_at = turnpike_now(), fence_not_before = 'epoch'")
        .await;
}

pub(super) async fn set_clock(database: &TestDatabase, now_us: i64) {
    database
        .execute(&format!(
            "update test_clock set at = 'epoch'::timestamptz + {now_us} * interval '1 microsecond'"
        ))
        .await;
}

/// Buckets with leases, as they stand in the database.
pub(super) async fn stored(
    database: &TestDatabase,
) -> BTreeMap<BucketKey, (Sums, BTreeMap<LeaseKey, Lease>)> {
    let number = |row: &sqlx::postgres::PgRow, column: &str| -> u64 {
        u64::try_from(row.get::<i64, _>(column)).unwrap()
    };
    let us = |moment: OffsetDateTime| i64::try_from(moment.unix_timestamp_nanos() / 1000).unwrap();
    let mut buckets = BTreeMap::new();
    let mut keys = BTreeMap::new();
    let rows = sqlx::query("select * from limit_bucket")
        .fetch_all(&database.sql)
        .await
        .unwrap();
    for row in rows {
        let start: OffsetDateTime = row.get("window_start");
        let key = BucketKey {
            limit: row.get("limit_id"),
            subject: row.get("subject"),
            window_start_s: start.unix_timestamp(),
        };
        let sums = Sums {
            amount: number(&row, "amount"),
            settled: row.get("settled"),
            held: number(&row, "held"),
            suspended: number(&row, "suspended"),
        };
        keys.insert(row.get::<i64, _>("bucket_id"), key.clone());
        buckets.insert(key, (sums, BTreeMap::new()));
    }
    let rows = sqlx::query("select * from limit_lease")
        .fetch_all(&database.sql)
        .await
        .unwrap();
    for row in rows {
        let key = LeaseKey {
            boot_id: BootId(row.get::<uuid::Uuid, _>("boot_id").into_bytes()),
            epoch: number(&row, "epoch"),
        };
        let lease = Lease {
            granted: number(&row, "granted"),
            consumed: number(&row, "consumed"),
            returned: number(&row, "returned"),
            unaccounted: number(&row, "unaccounted"),
            lost_at_us: row.get::<Option<OffsetDateTime>, _>("lost_at").map(us),
            wanted_at_us: row
                .get::<Option<OffsetDateTime>, _>("wanted_at")
                .map_or(0, us),
        };
        let bucket = keys.get(&row.get::<i64, _>("bucket_id")).unwrap();
        buckets.get_mut(bucket).unwrap().1.insert(key, lease);
    }
    buckets
}

/// What must hold at every commit: sums are those of the leases.
pub(super) async fn assert_balanced(database: &TestDatabase) {
    let wrong = database
        .number(
            "select count(*) from limit_bucket b
             left join lateral (
               select coalesce(sum(greatest(0, granted - consumed - returned))
                        filter (where lost_at is null), 0) as held,
                      coalesce(sum(greatest(0, granted - consumed - returned))
                        filter (where lost_at is not null), 0) as suspended
               from limit_lease l where l.bucket_id = b.bucket_id) l on true
             where b.held <> l.held or b.suspended <> l.suspended",
        )
        .await;
    assert_eq!(wrong, 0, "buckets out of balance");
}

pub(super) async fn sums(database: &TestDatabase) -> (i64, i64, i64) {
    (
        database
            .number("select sum(settled)::bigint from limit_bucket")
            .await,
        database
            .number("select sum(held)::bigint from limit_bucket")
            .await,
        database
            .number("select sum(suspended)::bigint from limit_bucket")
            .await,
    )
}
