//! The usage sink: every record exactly once.
//!
//! One transaction locks the cursors of its shards in key order, drops what lies behind them,
//! refuses what lies beyond a hole, and writes records, gaps, roll-ups, what limits are charged,
//! and cursors together. Two
//! connections that bring the same batch meet at the cursor, and the second finds it moved on.

mod columns;
mod intake;
mod query;
mod records;
mod reprice;

pub use intake::Intake;
pub(crate) use intake::IntakeTotals;
pub use query::{GroupBy, UsageQuery, UsageRow};
pub use records::{RecordFilter, StoredRecord};
pub use reprice::{RepriceAnswer, RepriceRequest, RepricedTarget};

use std::collections::BTreeMap;

use control_plane_core::ledger::{Answer, Content, Delivery, Rollups, Shard, Summary, Taken};
use control_plane_core::limit::Charge;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::limits::{self, Attempt, Settled};
use crate::stored::{signed, to_unix_us, unsigned};
use crate::{Error, Store};
use columns::{RecordColumns, RollupColumns};

/// Days for which partitions are made ahead.
const PARTITION_DAYS: i32 = 8;

/// A gap that is new.
struct Gap {
    shard: Shard,
    from_seq: u64,
    to_seq: u64,
    reason: i32,
}

/// What a transaction is about to write.
struct Work {
    received_at_us: i64,
    cursors: BTreeMap<Shard, u64>,
    records: RecordColumns,
    rollups: Rollups,
    gaps: Vec<Gap>,
    undecodable: u64,
    charges: Vec<Charge>,
    intake: Intake,
}

impl Store {
    /// Makes a shard known and tells what is wanted next of it.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn open_shard(&self, shard: Shard, node: &str) -> Result<Answer, Error> {
        let row = sqlx::query!(
            "insert into usage_cursor (boot_id, shard, node) values ($1, $2, $3)
             on conflict on constraint usage_cursor_pkey do update set node = excluded.node
             returning last_seq",
            Uuid::from_bytes(shard.boot_id.0),
            i64::from(shard.number),
            node.replace('\0', "\u{fffd}"),
        )
        .fetch_one(&self.pool)
        .await?;
        let next_seq = unsigned(row.last_seq).saturating_add(1);
        Ok(Answer::Resume { shard, next_seq })
    }

    /// Takes deliveries in order, in one transaction; the answers, in the same order, hold once
    /// this returns. Deliveries must be valid ([`Delivery::validate`]).
    ///
    /// # Errors
    /// When Postgres is away; then nothing was taken.
    pub async fn apply_usage(&self, deliveries: Vec<Delivery>) -> Result<Vec<Answer>, Error> {
        for delivery in &deliveries {
            delivery
                .validate()
                .map_err(|fault| Error::Invalid(vec![fault]))?;
        }
        if deliveries.is_empty() {
            return Ok(Vec::new());
        }
        let (answers, undecodable, intake, settled) = self
            .with_buckets(|| async {
                let mut tx = self.begin("apply_usage").await?;
                let mut work = lock_cursors(&mut tx, &deliveries).await?;
                let answers: Vec<Answer> = deliveries.iter().map(|d| work.take(d)).collect();
                let (undecodable, intake) = (work.undecodable, work.intake);
                let settled = match write(&mut tx, work).await? {
                    Attempt::Done(settled) => settled,
                    Attempt::Missing(missing) => return Ok(Attempt::Missing(missing)),
                };
                tx.commit().await?;
                Ok(Attempt::Done((answers, undecodable, intake, settled)))
            })
            .await?;
        self.intake.add(intake);
        if settled.unknown > 0 {
            tracing::warn!(
                charges = settled.unknown,
                "records charge limits that do not exist: they count on no bucket"
            );
        }
        if undecodable > 0 {
            tracing::warn!(
                undecodable,
                "usage records do not decode: kept, and in no sum"
            );
        }
        Ok(answers)
    }

    /// Makes the ledger's partitions for today and the days ahead, where they are missing.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn make_partitions(&self) -> Result<(), Error> {
        sqlx::query!(
            r#"select make_usage_partitions((turnpike_now() at time zone 'UTC')::date - 1, $1)
                 is null as done"#,
            PARTITION_DAYS,
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(())
    }
}

impl Store {
    /// Drops the records of days that are older than the options say; how many partitions went.
    /// Their sums stay, and so do cursors: what was counted once never counts again.
    ///
    /// # Errors
    /// When Postgres is away, or a reader holds on to what is to go: then nothing was dropped.
    pub async fn drop_old_records(&self) -> Result<u32, Error> {
        if self.record_days == 0 {
            return Ok(0);
        }
        let row = sqlx::query!(
            r#"select drop_usage_partitions((turnpike_now() at time zone 'UTC')::date - $1::int)
                 as "dropped!""#,
            i32::try_from(self.record_days).unwrap_or(i32::MAX),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(u32::try_from(row.dropped).unwrap_or(0))
    }
}

async fn lock_cursors(tx: &mut PgConnection, deliveries: &[Delivery]) -> Result<Work, Error> {
    let shards: BTreeMap<Shard, u64> = deliveries.iter().map(|d| (d.shard, 0)).collect();
    let (boots, numbers) = shard_columns(shards.keys());
    sqlx::query!(
        "insert into usage_cursor (boot_id, shard)
         select * from unnest($1::uuid[], $2::bigint[])
         on conflict on constraint usage_cursor_pkey do nothing",
        &boots,
        &numbers,
    )
    .execute(&mut *tx)
    .await?;
    let rows = sqlx::query!(
        "select boot_id, shard, last_seq from usage_cursor
         where (boot_id, shard) in (select * from unnest($1::uuid[], $2::bigint[]))
         order by boot_id, shard for update",
        &boots,
        &numbers,
    )
    .fetch_all(&mut *tx)
    .await?;
    let now = sqlx::query!(r#"select turnpike_now() as "now!""#)
        .fetch_one(tx)
        .await?;
    let mut cursors = shards;
    for (last_seq, row) in cursors.values_mut().zip(rows) {
        // Both are in key order: a uuid is compared as its bytes are.
        *last_seq = unsigned(row.last_seq);
    }
    Ok(Work {
        received_at_us: to_unix_us(now.now),
        cursors,
        records: RecordColumns::default(),
        rollups: Rollups::default(),
        gaps: Vec::new(),
        undecodable: 0,
        charges: Vec::new(),
        intake: Intake::default(),
    })
}

impl Work {
    fn take(&mut self, delivery: &Delivery) -> Answer {
        let shard = delivery.shard;
        let last_seq = self.cursors.get(&shard).copied().unwrap_or(0);
        let taken = delivery.taken_after(last_seq);
        self.intake.count(delivery, taken);
        let through_seq = match (taken, &delivery.content) {
            (Taken::Hole, _) => {
                return Answer::Resume {
                    shard,
                    next_seq: last_seq.saturating_add(1),
                };
            }
            (Taken::Records { skip, first_seq }, Content::Records { records, .. }) => {
                let mut seq = first_seq;
                for record in records.iter().skip(skip) {
                    self.take_record(shard, seq, record);
                    seq += 1;
                }
                seq - 1
            }
            (Taken::Gap { from_seq, to_seq }, Content::Gap { reason, .. }) => {
                self.gaps.push(Gap {
                    shard,
                    from_seq,
                    to_seq,
                    reason: *reason,
                });
                to_seq
            }
            (Taken::Nothing | Taken::Records { .. } | Taken::Gap { .. }, _) => last_seq,
        };
        self.cursors.insert(shard, through_seq);
        Answer::Ack { shard, through_seq }
    }

    fn take_record(&mut self, shard: Shard, seq: u64, record: &[u8]) {
        match Summary::read(record, self.received_at_us, &mut self.rollups) {
            Ok(summary) => {
                let charges = {
                    let admitted_at_us = summary.admitted_at_us;
                    Charge::of_record(shard.boot_id, admitted_at_us, &summary.charges)
                };
                self.charges.extend(charges);
                self.records
                    .push(shard, seq, self.received_at_us, &summary, record);
            }
            Err(_) => {
                self.undecodable += 1;
                self.records
                    .push_raw(shard, seq, self.received_at_us, record);
            }
        }
    }
}

async fn write(tx: &mut PgConnection, work: Work) -> Result<Attempt<Settled>, Error> {
    work.records.insert(tx).await?;
    RollupColumns::new(&work.rollups).upsert(tx).await?;
    for gap in &work.gaps {
        sqlx::query!(
            "insert into usage_gap (boot_id, shard, from_seq, to_seq, reason)
             values ($1, $2, $3, $4, $5)",
            Uuid::from_bytes(gap.shard.boot_id.0),
            i64::from(gap.shard.number),
            signed(gap.from_seq),
            signed(gap.to_seq),
            gap.reason,
        )
        .execute(&mut *tx)
        .await?;
    }
    // Last of the locks, so that grants wait as short as can be.
    let settled = limits::settle(tx, &work.charges).await?;
    let (boots, numbers) = shard_columns(work.cursors.keys());
    let last_seqs: Vec<i64> = work.cursors.values().map(|seq| signed(*seq)).collect();
    sqlx::query!(
        "update usage_cursor c set last_seq = n.last_seq
         from unnest($1::uuid[], $2::bigint[], $3::bigint[]) as n (boot_id, shard, last_seq)
         where c.boot_id = n.boot_id and c.shard = n.shard and c.last_seq <> n.last_seq",
        &boots,
        &numbers,
        &last_seqs,
    )
    .execute(tx)
    .await?;
    Ok(settled)
}

fn shard_columns<'a>(shards: impl Iterator<Item = &'a Shard>) -> (Vec<Uuid>, Vec<i64>) {
    shards
        .map(|shard| (Uuid::from_bytes(shard.boot_id.0), i64::from(shard.number)))
        .unzip()
}
