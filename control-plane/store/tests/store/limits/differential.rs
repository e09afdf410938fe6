//! Random runs of operations on the database and on the book in memory: the same answers and the
//! same state after each. `TURNPIKE_LIMIT_SEEDS` sets how many runs, the seed is in each failure.

use std::collections::BTreeMap;

use control_plane_core::ledger::{Answer, Content, Delivery, Shard};
use control_plane_core::limit::{
    BucketKey, Charge, Holding, LeaseBook, LeaseKey, Refusal, Terms, Want,
};
use control_plane_core::resource::{Limit, LimitUnit, LimitWindow};
use control_plane_store::HolderWants;
use prost::Message as _;
use proto::metering::v1 as metering;
use sqlx::Row as _;

use super::{START_S, boot, freeze_clock, limit, now_in, set_clock, stored, strict_money};
use crate::database::{TestDatabase, actor};

const LIMITS: [&str; 4] = ["strict", "loose", "rate", "slots"];
const SUBJECTS: [&str; 2] = ["a", "team/ann"];
const S: i64 = 1_000_000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        let position = usize::try_from(self.below(items.len() as u64)).unwrap();
        *items.get(position).unwrap()
    }

    fn boot(&mut self) -> u8 {
        1 + u8::try_from(self.below(4)).unwrap()
    }
}

struct Run {
    database: TestDatabase,
    book: LeaseBook,
    random: Random,
    now_us: i64,
    /// Last sequence taken of each process's one shard.
    seqs: BTreeMap<u8, u64>,
}

fn limits() -> [Limit; 4] {
    [
        strict_money("strict", LimitWindow::Day, 500),
        limit("loose", LimitUnit::Tokens, LimitWindow::Hour, 300),
        limit("rate", LimitUnit::Requests, LimitWindow::Minute, 60),
        limit("slots", LimitUnit::InFlight, LimitWindow::None, 10),
    ]
}

impl Run {
    async fn new(seed: u64) -> Self {
        let database = TestDatabase::new().await;
        freeze_clock(&database).await;
        let now_us = START_S * S;
        let mut book = LeaseBook::new();
        for limit in limits() {
            book.set_limit(&limit.id, Terms::of(&limit.to_config()), now_us);
            database.store.create_limit(&actor(), limit).await.unwrap();
        }
        Self {
            database,
            book,
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            now_us,
            seqs: BTreeMap::new(),
        }
    }

    async fn step(&mut self) -> String {
        match self.random.below(20) {
            0 | 1 => self.hello().await,
            2..=8 => self.want().await,
            9..=12 => self.settle().await,
            13 => self.close().await,
            14 => self.beat().await,
            15 => self.change_amount().await,
            16 => self.adjust().await,
            _ => self.pass().await,
        }
    }

    fn bucket(&mut self) -> BucketKey {
        let (limit, subject) = (self.random.of(&LIMITS), self.random.of(&SUBJECTS));
        self.resolved(limit, subject)
    }

    fn resolved(&self, limit: &str, subject: &str) -> BucketKey {
        let terms = self.book.terms(limit).unwrap();
        terms
            .bucket_of(&now_in(limit, subject), false, self.now_us)
            .0
    }

    fn epoch(&mut self, number: u8) -> u64 {
        let epoch = self
            .book
            .holder(boot(number))
            .map_or(0, |holder| holder.epoch);
        match self.random.below(10) {
            0 => epoch.saturating_sub(1),
            1 => epoch + 1,
            _ => epoch,
        }
    }

    async fn hello(&mut self) -> String {
        let number = self.random.boot();
        let epoch = self.epoch(number);
        let draining = self.random.below(8) == 0;
        let holdings: Vec<Holding> = (0..self.random.below(3))
            .map(|_| Holding {
                bucket: self.bucket(),
                granted_total: self.random.below(60),
                returned_total: self.random.below(20),
            })
            .collect();
        let expected = self
            .book
            .hello(boot(number), epoch, draining, &holdings, self.now_us);
        let store = &self.database.store;
        let welcome = store.hello(boot(number), "n", epoch, draining, &holdings);
        let mut welcome = welcome.await.unwrap();
        let mut expected = expected;
        // Leases that never held anything have no row.
        for welcome in [&mut welcome, &mut expected] {
            welcome
                .grants
                .retain(|g| g.granted_total + g.returned_total > 0);
        }
        assert_eq!(welcome, expected);
        format!("hello {number} {epoch} {holdings:?}")
    }

    async fn want(&mut self) -> String {
        let mut asked = Vec::new();
        let first = self.random.boot();
        for number in first..=(first + 1).min(4) {
            let epoch = self.epoch(number);
            let wants = (0..=self.random.below(3)).map(|_| self.one_want(number, epoch));
            let wants = wants.collect();
            asked.push(HolderWants {
                boot_id: boot(number),
                epoch,
                wants,
            });
        }
        let answers = self.database.store.want(&asked).await.unwrap();
        for (one, answers) in asked.iter().zip(answers) {
            let expected = self
                .book
                .want(one.boot_id, one.epoch, &one.wants, self.now_us);
            assert_eq!(answers, expected, "{one:?}");
        }
        format!("want {asked:?}")
    }

    fn one_want(&mut self, number: u8, epoch: u64) -> Want {
        let (limit, subject) = (self.random.of(&LIMITS), self.random.of(&SUBJECTS));
        let key = self.resolved(limit, subject);
        let lease_key = LeaseKey {
            boot_id: boot(number),
            epoch,
        };
        let bucket = self.book.bucket(&key);
        let lease = bucket.map(|b| b.lease(lease_key)).unwrap_or_default();
        let raise = self.random.below(80);
        Want {
            bucket: if self.random.below(5) == 0 {
                key
            } else {
                now_in(limit, subject)
            },
            granted_total: lease.granted + raise,
            returned_total: lease.returned + self.random.of(&[0, 0, 0, 5, lease.outstanding()]),
            available: self.random.below(5),
            demand_per_minute: self.random.below(200),
            min_useful: self.random.below(40),
            urgent: self.random.below(3) > 0,
            next_window: self.random.below(12) == 0,
        }
    }

    async fn settle(&mut self) -> String {
        let number = self.random.boot();
        let shard = Shard {
            boot_id: boot(number),
            number: 0,
        };
        let mut charges = Vec::new();
        let mut records = Vec::new();
        for _ in 0..=self.random.below(3) {
            let of_record: Vec<metering::Charge> = (0..=self.random.below(2))
                .map(|_| {
                    let mut bucket = self.bucket();
                    if self.random.below(20) == 0 {
                        bucket.limit = "ghost".into();
                    }
                    metering::Charge {
                        limit: bucket.limit,
                        subject: bucket.subject,
                        window_start_s: bucket.window_start_s,
                        epoch: self.epoch(number),
                        reserved: 0,
                        settled: self.random.below(30),
                    }
                })
                .collect();
            charges.extend(Charge::of_record(boot(number), self.now_us, &of_record));
            let record = metering::UsageRecord {
                admitted_at_us: self.now_us,
                charges: of_record,
                ..Default::default()
            };
            records.push(record.encode_to_vec());
        }
        let last_seq = self.seqs.get(&number).copied().unwrap_or(0);
        let through_seq = last_seq + records.len() as u64;
        let delivery = Delivery {
            shard,
            content: Content::Records {
                first_seq: last_seq + 1,
                records,
            },
        };
        // Brought twice, counted once.
        for _ in 0..2 {
            let answers = self
                .database
                .store
                .apply_usage(vec![delivery.clone()])
                .await;
            assert_eq!(answers.unwrap(), [Answer::Ack { shard, through_seq }]);
        }
        self.seqs.insert(number, through_seq);
        self.book.settle(&charges);
        format!("settle {charges:?}")
    }

    async fn close(&mut self) -> String {
        let number = self.random.boot();
        let epoch = self.epoch(number);
        let store = &self.database.store;
        store.close(boot(number), epoch, &[], &[]).await.unwrap();
        self.book.close(boot(number), epoch, &[], self.now_us);
        format!("close {number} {epoch}")
    }

    async fn beat(&mut self) -> String {
        let beats: Vec<_> = (1..=4)
            .map(|number| (boot(number), self.epoch(number)))
            .collect();
        let outcome = self.database.store.beat(&beats).await.unwrap();
        assert!(!outcome.older_database);
        let expected: Vec<(_, Refusal)> = beats
            .iter()
            .filter_map(|(boot, epoch)| {
                let heard = self.book.beat(*boot, *epoch, self.now_us);
                heard.err().map(|refusal| (*boot, refusal))
            })
            .collect();
        assert_eq!(outcome.refused, expected);
        for (boot, epoch) in beats {
            let told = self.database.store.recalls(&[(boot, epoch)]).await.unwrap();
            let told: Vec<_> = told.into_iter().map(|(_, recall)| recall).collect();
            assert_eq!(told, self.book.recalls(boot, epoch, self.now_us));
        }
        "beat".into()
    }

    async fn change_amount(&mut self) -> String {
        let position = usize::try_from(self.random.below(4)).unwrap();
        let mut changed = limits().into_iter().nth(position).unwrap();
        changed.amount = self.random.below(700);
        let terms = Terms::of(&changed.to_config());
        self.book.set_limit(&changed.id, terms, self.now_us);
        let done = format!("amount {} {}", changed.id, changed.amount);
        self.database
            .store
            .update_limit(&actor(), changed)
            .await
            .unwrap();
        done
    }

    async fn adjust(&mut self) -> String {
        let (limit, subject) = (self.random.of(&LIMITS), self.random.of(&SUBJECTS));
        let delta = 1 + i64::try_from(self.random.below(100)).unwrap() - 60;
        let delta = if delta == 0 { 1 } else { delta };
        assert!(self.book.adjust(limit, subject, delta, self.now_us));
        let store = &self.database.store;
        store
            .adjust_bucket(&actor(), limit, subject, delta, "test")
            .await
            .unwrap();
        format!("adjust {limit} {subject} {delta}")
    }

    async fn pass(&mut self) -> String {
        let seconds = self.random.of(&[1, 4, 10, 25, 70, 700, 4000, 90_000]);
        let deaf = seconds > 5 && self.random.below(4) == 0;
        self.now_us += seconds * S;
        set_clock(&self.database, self.now_us).await;
        if deaf {
            self.book.was_deaf(self.now_us);
        } else {
            let ticked = "update lease_clock set ticked_at = turnpike_now()";
            self.database.execute(ticked).await;
        }
        assert!(!self.database.store.beat(&[]).await.unwrap().older_database);
        let fenced = self.database.store.fence_expired().await.unwrap();
        assert_eq!(fenced, self.book.fence_expired(self.now_us));
        let changed = self.database.store.expire_lost().await.unwrap();
        assert_eq!(changed, self.book.expire_lost(self.now_us) as u64);
        format!("pass {seconds} deaf {deaf} fenced {fenced:?} expired {changed}")
    }

    async fn compare(&self, seed: u64, done: &str) {
        self.book.check().unwrap();
        let expected: BTreeMap<_, _> = self
            .book
            .buckets()
            .map(|bucket| (bucket.key.clone(), (bucket.sums, bucket.leases.clone())))
            .collect();
        let found = stored(&self.database).await;
        assert_eq!(found, expected, "seed {seed} after {done}");
        let rows = sqlx::query("select * from node_boot")
            .fetch_all(&self.database.sql)
            .await
            .unwrap();
        for row in rows {
            let id =
                control_plane_core::nodes::BootId(row.get::<uuid::Uuid, _>("boot_id").into_bytes());
            let holder = self.book.holder(id).unwrap();
            assert_eq!(
                row.get::<i64, _>("epoch"),
                i64::try_from(holder.epoch).unwrap(),
                "seed {seed} after {done}"
            );
            let standing = format!("{:?}", holder.standing).to_lowercase();
            assert_eq!(
                row.get::<String, _>("standing"),
                standing,
                "seed {seed} after {done}"
            );
        }
    }
}

#[tokio::test]
async fn the_database_and_the_book_come_to_the_same() {
    let runs = std::env::var("TURNPIKE_LIMIT_SEEDS").map_or(4, |text| text.parse().unwrap());
    let first: u64 = std::env::var("TURNPIKE_LIMIT_SEED").map_or(1, |text| text.parse().unwrap());
    for seed in first..first + runs {
        let mut run = Run::new(seed).await;
        let mut kinds = BTreeMap::new();
        for _ in 0..150 {
            let done = run.step().await;
            let kind = done.split(' ').next().unwrap().to_owned();
            *kinds.entry(kind).or_insert(0) += 1;
            run.compare(seed, &done).await;
        }
        assert_eq!(
            kinds.len(),
            8,
            "seed {seed} did not do everything: {kinds:?}"
        );
        run.database.drop().await;
    }
}
