//! Two connections at once: whatever the interleaving, nothing is granted or counted twice.

use std::sync::Arc;
use std::time::Duration;

use control_plane_core::ledger::{Content, Delivery, Shard};
use control_plane_core::limit::DenyKind;
use control_plane_core::resource::LimitWindow;
use control_plane_store::{HolderWants, Store};
use prost::Message as _;
use proto::metering::v1 as metering;
use sqlx::Connection as _;
use tokio::task::JoinSet;

use super::{ask, assert_balanced, boot, budget, strict_money, sums, want};
use crate::database::{TestDatabase, actor};

pub(super) fn batch(number: u8, first_seq: u64, charges: Vec<metering::Charge>) -> Delivery {
    let records = charges.into_iter().map(|charge| {
        let record = metering::UsageRecord {
            charges: vec![charge],
            ..Default::default()
        };
        record.encode_to_vec()
    });
    Delivery {
        shard: Shard {
            boot_id: boot(number),
            number: 0,
        },
        content: Content::Records {
            first_seq,
            records: records.collect(),
        },
    }
}

pub(super) async fn charge(
    database: &TestDatabase,
    limit: &str,
    epoch: u64,
    settled: u64,
) -> metering::Charge {
    let start = database
        .number(&format!(
            "select extract(epoch from max(window_start))::bigint from limit_bucket
             where limit_id = '{limit}'"
        ))
        .await;
    metering::Charge {
        limit: limit.into(),
        subject: "k".into(),
        window_start_s: start,
        epoch,
        reserved: settled,
        settled,
    }
}

/// R2: the same want at two replicas, the second one's statement begun before the first commits,
/// while another process asks too.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_want_repeated_at_another_replica_grants_once() {
    let database = budget(1 << 40, 2).await;
    let replicas = [database.store.clone(), database.replica().await];
    for round in 1..=40_u64 {
        let mut tasks = JoinSet::new();
        for number in [1, 2] {
            for store in replicas.clone() {
                tasks.spawn(
                    async move { ask(&store, number, 1, want("daily", round * 10, 10)).await },
                );
            }
        }
        while let Some(answer) = tasks.join_next().await {
            assert_eq!(answer.unwrap().grant.unwrap().granted_total, round * 10);
        }
        assert_eq!(sums(&database).await.1, i64::try_from(round * 20).unwrap());
    }
    assert_balanced(&database).await;
    database.drop().await;
}

/// The first use of a window by many at once makes one bucket, and not more credit than it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_nodes_at_a_small_budget_get_what_it_has_and_no_more() {
    let database = budget(100, 30).await;
    let mut tasks = JoinSet::new();
    for number in 1..=30_u8 {
        let store = if number % 2 == 0 {
            database.store.clone()
        } else {
            database.replica().await
        };
        tasks.spawn(async move { ask(&store, number, 1, want("daily", 7, 7)).await });
    }
    let mut granted = 0;
    while let Some(answer) = tasks.join_next().await {
        let answer = answer.unwrap();
        match answer.deny {
            None => granted += answer.grant.unwrap().granted_total,
            Some(deny) => assert_eq!(deny.kind, DenyKind::Reserved),
        }
    }
    assert_eq!(granted, 98, "14 of 7 fit, and all of them are given");
    assert_eq!(
        database.number("select count(*) from limit_bucket").await,
        1
    );
    assert_eq!(sums(&database).await, (0, 98, 0));
    assert_balanced(&database).await;
    database.drop().await;
}

/// R3: a node is fenced while its records arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn records_that_arrive_while_their_node_is_fenced_free_its_credit_once() {
    let database = budget(1 << 40, 20).await;
    for number in 1..=20 {
        ask(&database.store, number, 1, want("daily", 100, 100)).await;
    }
    let charge = charge(&database, "daily", 1, 10).await;
    expire_all(&database).await;
    let mut tasks = JoinSet::new();
    for number in 1..=20_u8 {
        let (store, charge) = (database.store.clone(), charge.clone());
        tasks.spawn(async move {
            for first_seq in 1..=5 {
                let delivery = batch(number, first_seq, vec![charge.clone()]);
                store.apply_usage(vec![delivery]).await.unwrap();
            }
        });
    }
    let fencer = database.replica().await;
    let fenced = fencer.fence_expired().await.unwrap();
    assert_eq!(fenced.len(), 20);
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(sums(&database).await, (20 * 50, 0, 20 * 50));
    assert_balanced(&database).await;
    database.drop().await;
}

async fn expire_all(database: &TestDatabase) {
    database.store.beat(&[]).await.unwrap();
    database
        .execute(
            "update node_boot set expires_at = turnpike_now() - interval '1 second';
             update lease_clock set fence_not_before = turnpike_now()",
        )
        .await;
}

/// A want that is on its way while its holder is fenced is either granted before, and suspended,
/// or refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_want_that_meets_a_fence_leaves_no_live_credit_behind() {
    const PROCESSES: u8 = 6;
    let database = budget(1 << 40, PROCESSES).await;
    let replica = database.replica().await;
    for epoch in 1..=15 {
        expire_all(&database).await;
        let mut tasks = JoinSet::new();
        for number in 1..=PROCESSES {
            let store = replica.clone();
            tasks.spawn(async move {
                let asked = HolderWants {
                    boot_id: boot(number),
                    epoch,
                    wants: vec![want("daily", 50, 50)],
                };
                store.want(&[asked]).await.unwrap()
            });
        }
        let fenced = database.store.fence_expired().await.unwrap();
        assert_eq!(fenced.len(), usize::from(PROCESSES));
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        assert_eq!(
            sums(&database).await.1,
            0,
            "credit of an epoch that is over is not held"
        );
        assert_balanced(&database).await;
        for number in 1..=PROCESSES {
            let hello = database.store.hello(boot(number), "n", epoch, false, &[]);
            assert_eq!(hello.await.unwrap().epoch, epoch + 1);
        }
    }
    database.drop().await;
}

/// R11: batches that name buckets in opposite orders, wants and settlements among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn opposite_orders_never_wait_for_each_other_in_a_ring() {
    const ROUNDS: u64 = 25;
    let database = budget(1 << 40, 6).await;
    for limit in ["a", "b", "c"] {
        let limit = strict_money(limit, LimitWindow::Lifetime, 1 << 40);
        database.store.create_limit(&actor(), limit).await.unwrap();
    }
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    let mut tasks = JoinSet::new();
    for number in 1..=6_u8 {
        let store = database.replica().await;
        tasks.spawn(async move { use_all(&store, number, ROUNDS).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let settled = i64::try_from(6 * ROUNDS * 3 * 2).unwrap();
    assert_eq!(sums(&database).await.0, settled);
    assert_balanced(&database).await;
    // Statistics are written when a connection is idle or ends.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(database.number(deadlocks).await, 0);
    database.drop().await;
}

async fn use_all(store: &Store, number: u8, rounds: u64) {
    let mut limits = ["a", "b", "c"];
    if number.is_multiple_of(2) {
        limits.reverse();
    }
    for round in 0..rounds {
        let wants = limits.map(|limit| want(limit, (round + 1) * 5, 5)).to_vec();
        let asked = HolderWants {
            boot_id: boot(number),
            epoch: 1,
            wants,
        };
        assert!(store.want(&[asked]).await.unwrap().remove(0).is_ok());
        let charges = limits.map(|limit| metering::Charge {
            limit: limit.into(),
            subject: "k".into(),
            window_start_s: 0,
            epoch: 1,
            reserved: 2,
            settled: 2,
        });
        let delivery = batch(number, round * 3 + 1, charges.to_vec());
        store.apply_usage(vec![delivery]).await.unwrap();
    }
}

/// R14: an amount is lowered while nodes ask; no grant comes after that which does not fit it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_grant_after_a_lowered_amount_fits_the_new_one() {
    let database = budget(1_000_000, 8).await;
    let mut tasks = JoinSet::new();
    let gate = Arc::new(tokio::sync::Barrier::new(9));
    for number in 1..=8_u8 {
        let (store, gate) = (database.replica().await, gate.clone());
        tasks.spawn(async move {
            gate.wait().await;
            for round in 1..=20 {
                let grant = ask(&store, number, 1, want("daily", round * 10, 10))
                    .await
                    .grant;
                let grant = grant.unwrap();
                let fits = grant.left >= 0 || grant.granted_total < round * 10;
                assert!(fits, "{grant:?}");
            }
        });
    }
    gate.wait().await;
    let lowered = strict_money("daily", LimitWindow::Day, 300);
    database
        .store
        .update_limit(&actor(), lowered)
        .await
        .unwrap();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(
        database
            .number("select count(*) from limit_bucket where amount <> 300")
            .await,
        0
    );
    assert_balanced(&database).await;
    database.drop().await;
}

/// A bucket is made while its limit gets another amount: it has the new one either way.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_made_during_a_change_has_the_new_amount() {
    let database = budget(10, 1).await;
    for round in 1..=15_u64 {
        let amount = 1000 + round;
        let (store, editor) = (database.store.clone(), database.replica().await);
        let subject = format!("k{round}");
        let asked = tokio::spawn(async move {
            let mut want = want("daily", 1, 1);
            want.bucket.subject = subject;
            ask(&store, 1, 1, want).await
        });
        let changed = strict_money("daily", LimitWindow::Day, amount);
        editor.update_limit(&actor(), changed).await.unwrap();
        asked.await.unwrap();
        let stale = format!("select count(*) from limit_bucket where amount <> {amount}");
        assert_eq!(database.number(&stale).await, 0, "round {round}");
    }
    database.drop().await;
}

/// A beat is not held up by a want that waits for a bucket.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_beat_does_not_wait_for_a_bucket() {
    let database = budget(100, 1).await;
    ask(&database.store, 1, 1, want("daily", 1, 1)).await;
    let mut other = sqlx::PgConnection::connect(database.url()).await.unwrap();
    let mut holding = other.begin().await.unwrap();
    sqlx::query("select from limit_bucket for update")
        .execute(&mut *holding)
        .await
        .unwrap();
    let store = database.store.clone();
    let waiting = tokio::spawn(async move { ask(&store, 1, 1, want("daily", 2, 1)).await });
    let blocked = "select count(*) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'";
    while database.number(blocked).await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let beats = [(boot(1), 1)];
    let beaten = tokio::time::timeout(Duration::from_secs(2), database.store.beat(&beats)).await;
    assert_eq!(beaten.unwrap().unwrap().refused, []);
    assert!(!waiting.is_finished());
    holding.rollback().await.unwrap();
    assert_eq!(waiting.await.unwrap().grant.unwrap().granted_total, 2);
    database.drop().await;
}
