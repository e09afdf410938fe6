//! Two replicas bring the same usage at the same time.

use control_plane_core::ledger::{Answer, Delivery};
use control_plane_store::Store;

use crate::database::TestDatabase;
use crate::ledger::{assert_rollups_are_the_records, batch, records, shard, total};

async fn last_answer(store: &Store, deliveries: Vec<Delivery>) -> Answer {
    *store.apply_usage(deliveries).await.unwrap().last().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_batch_on_two_connections_counts_once() {
    let database = TestDatabase::new().await;
    let replicas = [database.store.clone(), database.replica().await];
    for round in 0..20_u64 {
        let (first_seq, range) = (round * 5 + 1, round * 5 + 1..round * 5 + 6);
        let tasks: Vec<_> = replicas
            .iter()
            .map(|store| {
                let (store, range) = (store.clone(), range.clone());
                tokio::spawn(async move {
                    last_answer(&store, vec![batch(shard(0), first_seq, records(range))]).await
                })
            })
            .collect();
        for task in tasks {
            let expected = Answer::Ack {
                shard: shard(0),
                through_seq: first_seq + 4,
            };
            assert_eq!(task.await.unwrap(), expected);
        }
    }
    assert_eq!(
        database.number("select count(*) from usage_record").await,
        100
    );
    assert_eq!(total(&database.store).await.requests, 100);
    assert_rollups_are_the_records(&database).await;
    database.drop().await;
}

/// Every replica brings every batch, in its own order and again and again: whatever the
/// interleaving, each record is there once, and no two transactions wait for each other in a ring.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reordered_and_repeated_batches_from_many_connections_count_once() {
    const SHARDS: u32 = 6;
    const BATCHES: u64 = 8;
    let database = TestDatabase::new().await;
    let mut tasks = Vec::new();
    for worker in 0..6_u64 {
        let store = if worker % 2 == 0 {
            database.store.clone()
        } else {
            database.replica().await
        };
        tasks.push(tokio::spawn(async move {
            let mut random = worker + 1;
            let mut missing: Vec<(u32, u64)> = (0..SHARDS)
                .flat_map(|s| (0..BATCHES).map(move |b| (s, b)))
                .collect();
            while !missing.is_empty() {
                // A few of what is missing, in an order of this worker's own.
                let mut chosen = Vec::new();
                for _ in 0..4 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let at = usize::try_from(random >> 33).unwrap() % missing.len();
                    chosen.push(missing[at]);
                }
                let deliveries: Vec<_> = chosen
                    .iter()
                    .map(|(s, b)| batch(shard(*s), b * 3 + 1, records(b * 3..b * 3 + 3)))
                    .collect();
                let answers = store.apply_usage(deliveries).await.unwrap();
                for (place, answer) in chosen.iter().zip(answers) {
                    if matches!(answer, Answer::Ack { .. }) {
                        missing.retain(|other| other != place);
                    }
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let records = i64::from(SHARDS) * i64::try_from(BATCHES).unwrap() * 3;
    assert_eq!(
        database.number("select count(*) from usage_record").await,
        records
    );
    assert_eq!(total(&database.store).await.requests, records);
    assert_rollups_are_the_records(&database).await;
    database.drop().await;
}

#[tokio::test]
async fn a_transaction_that_does_not_commit_counts_nothing() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    database
        .execute("alter table usage_rollup add constraint full_up check (requests < 2)")
        .await;
    let two = vec![batch(shard(0), 1, records(0..6))];
    assert!(store.apply_usage(two.clone()).await.is_err());
    assert_eq!(
        database.number("select count(*) from usage_record").await,
        0
    );
    database
        .execute("alter table usage_rollup drop constraint full_up")
        .await;
    let answers = store.apply_usage(two).await.unwrap();
    assert_eq!(
        answers,
        [Answer::Ack {
            shard: shard(0),
            through_seq: 6
        }]
    );
    assert_rollups_are_the_records(&database).await;
    database.drop().await;
}
