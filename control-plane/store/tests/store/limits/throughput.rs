//! What Postgres carries: processes that use 60 keys each, every key with a daily budget. 20 processes
//! by default; the measure is 1,000 processes and 10,000 keys, a minute:
//!
//! ```text
//! TURNPIKE_LEASE_PROCESSES=1000 cargo test -p control-plane-store --test store -- --nocapture limits::throughput
//! ```

use std::time::{Duration, Instant};

use control_plane_core::ledger::{Content, Delivery, Shard};
use control_plane_core::limit::Want;
use control_plane_core::nodes::BootId;
use control_plane_core::resource::LimitWindow;
use control_plane_store::{HolderWants, Store};
use prost::Message as _;
use proto::metering::v1 as metering;
use tokio::task::JoinSet;

use super::{assert_balanced, strict_money, want};
use crate::database::{TestDatabase, actor};

/// The variable that sets how many processes there are.
const PROCESSES: &str = "TURNPIKE_LEASE_PROCESSES";
const KEYS: u32 = 10_000;
const KEYS_A_PROCESS: u32 = 60;
const CONNECTIONS: u32 = 4;
/// Processes whose wants go in one transaction, and charges that go in one.
const BATCH: u32 = 5;

fn process(number: u32) -> BootId {
    let mut id = [7; 16];
    id.iter_mut()
        .zip(number.to_be_bytes())
        .for_each(|(byte, of)| *byte = of);
    BootId(id)
}

fn key_of(process: u32, position: u32) -> String {
    // Keys are spread so that each is used by several processes.
    format!("k{}", (process * 7919 + position * 613) % KEYS)
}

fn wants_of(number: u32, granted_total: u64) -> HolderWants {
    let wants = (0..KEYS_A_PROCESS).map(|position| {
        let mut want: Want = want("daily", granted_total, 10);
        want.bucket.subject = key_of(number, position);
        want
    });
    HolderWants {
        boot_id: process(number),
        epoch: 1,
        wants: wants.collect(),
    }
}

fn batch_of(number: u32, first_seq: u64, start_s: i64) -> Delivery {
    let records = (0..KEYS_A_PROCESS).map(|position| {
        let charge = metering::Charge {
            limit: "daily".into(),
            subject: key_of(number, position),
            window_start_s: start_s,
            epoch: 1,
            reserved: 5,
            settled: 5,
        };
        let record = metering::UsageRecord {
            charges: vec![charge],
            ..Default::default()
        };
        record.encode_to_vec()
    });
    Delivery {
        shard: Shard {
            boot_id: process(number),
            number: 0,
        },
        content: Content::Records {
            first_seq,
            records: records.collect(),
        },
    }
}

/// Runs work for every group of processes over a few connections; how long that took.
async fn over_all<F>(all: u32, work: impl Fn(Vec<u32>) -> F) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for first in (0..all).step_by(BATCH as usize) {
        if running.len() >= CONNECTIONS as usize {
            running.join_next().await.unwrap().unwrap();
        }
        running.spawn(work((first..all.min(first + BATCH)).collect()));
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    begun.elapsed()
}

async fn grant(store: Store, processes: Vec<u32>, granted_total: u64) {
    let asked: Vec<_> = processes
        .into_iter()
        .map(|number| wants_of(number, granted_total))
        .collect();
    for answers in store.want(&asked).await.unwrap() {
        assert!(answers.unwrap().iter().all(|answer| answer.deny.is_none()));
    }
}

#[expect(clippy::print_stdout, reason = "a measurement is to be read")]
fn report(what: &str, count: u32, took: Duration) {
    let each_second = f64::from(count) / took.as_secs_f64();
    println!("{what}: {count} in {took:.2?}, {each_second:.0}/s");
}

#[expect(clippy::print_stdout, reason = "a measurement is to be read")]
async fn report_tables(database: &TestDatabase) {
    // Statistics are written when a connection is idle.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    for table in ["limit_bucket", "limit_lease", "usage_cursor", "node_boot"] {
        let of = |column: &str| {
            format!("select {column} from pg_stat_user_tables where relname = '{table}'")
        };
        let inserted = database.number(&of("n_tup_ins")).await;
        let updated = database.number(&of("n_tup_upd")).await;
        let hot = database.number(&of("n_tup_hot_upd")).await;
        println!("{table}: {inserted} inserted, {updated} updated, {hot} of them HOT");
    }
    let transactions =
        "select xact_commit from pg_stat_database where datname = current_database()";
    println!("transactions: {}", database.number(transactions).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_processes_lease_from_many_buckets_and_every_charge_arrives() {
    let all = std::env::var(PROCESSES).map_or(20, |all| all.parse().unwrap());
    let database = TestDatabase::new().await;
    let store = database.store.clone();
    let daily = strict_money("daily", LimitWindow::Day, 1 << 40);
    store.create_limit(&actor(), daily).await.unwrap();
    let took = over_all(all, |processes| {
        let store = store.clone();
        async move {
            for number in processes {
                let hello = store.hello(process(number), "n", 0, false, &[]);
                assert_eq!(hello.await.unwrap().epoch, 1);
            }
        }
    })
    .await;
    report("hellos", all, took);
    let leases = all * KEYS_A_PROCESS;
    for (what, total) in [("first grants", 100), ("later grants", 200)] {
        let took = over_all(all, |processes| grant(store.clone(), processes, total)).await;
        report(what, leases, took);
    }
    let start = "select extract(epoch from max(window_start))::bigint from limit_bucket";
    let start_s = database.number(start).await;
    for first_seq in [1, 1 + u64::from(KEYS_A_PROCESS)] {
        let took = over_all(all, |processes| {
            let store = store.clone();
            async move {
                let batches = processes.into_iter();
                let batches = batches.map(|number| batch_of(number, first_seq, start_s));
                store.apply_usage(batches.collect()).await.unwrap();
            }
        })
        .await;
        report("records with a charge", leases, took);
    }
    let begun = Instant::now();
    let beats: Vec<_> = (0..all).map(|number| (process(number), 1)).collect();
    for _ in 0..10 {
        assert_eq!(store.beat(&beats).await.unwrap().refused, []);
    }
    report("beats", all * 10, begun.elapsed());
    report_tables(&database).await;
    let settled = database
        .number("select sum(settled)::bigint from limit_bucket")
        .await;
    assert_eq!(settled, i64::from(leases) * 2 * 5);
    assert_balanced(&database).await;
    database.drop().await;
}
