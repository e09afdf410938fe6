//! Processes that hold leases: beats, fencing, Close.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_core::limit::{
    BucketKey, EXPIRY_US, Holder, Holding, LeaseKey, RECALL_US, Recall, Refusal, Standing,
};
use control_plane_core::nodes::BootId;
use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;
use uuid::Uuid;

use super::locked;
use crate::store::retry;
use crate::stored::{from_unix_us, signed, to_unix_us, unsigned};
use crate::{Error, Store};

/// What came of beats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beats {
    /// Processes whose epoch does not hold.
    pub refused: Vec<(BootId, Refusal)>,
    /// The database is older than one that this replica has written to: what was granted since is
    /// forgotten, and every process has to say Hello again.
    pub older_database: bool,
}

/// How far a shard of a process goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardEnd {
    pub shard: u32,
    pub last_seq: u64,
}

/// What came of a Close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Its credit is free.
    Done,
    /// Not all of its records are in the ledger: it is to be said again once they are.
    Waiting,
}

/// The last tick that this replica has written; 0: none.
#[derive(Debug, Default)]
pub(crate) struct LeaseTicks(tokio::sync::Mutex<i64>);

/// Without a tick for this long nothing could be stored; in microseconds.
const DEAF_US: i64 = 5_000_000;
/// Processes fenced in one call.
const FENCE_BATCH: i64 = 200;

impl Store {
    /// Signs of life, and that beats can be stored: to be called about once a second by each
    /// replica, with whatever beats came in.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn beat(&self, beats: &[(BootId, u64)]) -> Result<Beats, Error> {
        let claims: BTreeMap<BootId, u64> = beats.iter().copied().collect();
        let older_database = self.tick().await?;
        let boots: Vec<Uuid> = claims.keys().map(|boot| Uuid::from_bytes(boot.0)).collect();
        let epochs: Vec<i64> = claims.values().map(|epoch| signed(*epoch)).collect();
        let rows = retry(|| async {
            Ok(sqlx::query!(
                "with locked as (
                   select b.boot_id, b.epoch, b.standing, b.draining, b.expires_at,
                          c.epoch as claimed
                   from node_boot b
                   join unnest($1::uuid[], $2::bigint[]) as c (boot_id, epoch) using (boot_id)
                   order by b.boot_id for no key update of b
                 ), beaten as (
                   update node_boot b
                   set standing = 'live', expires_at = turnpike_now() + $3::interval
                   from locked l
                   where b.boot_id = l.boot_id and l.epoch = l.claimed and l.standing <> 'closed'
                 )
                 select boot_id, epoch, standing, draining, expires_at from locked",
                &boots,
                &epochs,
                interval(EXPIRY_US),
            )
            .fetch_all(&self.pool)
            .await?)
        })
        .await?;
        let known: BTreeMap<BootId, Holder> = rows
            .into_iter()
            .map(|row| {
                let holder = holder(row.epoch, &row.standing, row.draining, row.expires_at);
                (BootId(row.boot_id.into_bytes()), holder)
            })
            .collect();
        let refused = claims.iter().filter_map(|(boot_id, epoch)| {
            let heard = match known.get(boot_id) {
                Some(holder) => holder.hear(*epoch),
                None => Err(Refusal::Unknown),
            };
            heard.err().map(|refusal| (*boot_id, refusal))
        });
        Ok(Beats {
            refused: refused.collect(),
            older_database,
        })
    }

    /// Moves the clock of beats; whether the database is older than it was.
    async fn tick(&self) -> Result<bool, Error> {
        let mut last = self.lease_ticks.0.lock().await;
        let row = sqlx::query!(
            "update lease_clock set ticks = ticks + 1, ticked_at = turnpike_now(),
               fence_not_before = case
                 when ticked_at < turnpike_now() - $1::interval
                 then greatest(fence_not_before, turnpike_now() + $2::interval)
                 else fence_not_before
               end
             returning ticks",
            interval(DEAF_US),
            interval(EXPIRY_US),
        )
        .fetch_one(&self.pool)
        .await?;
        let is_older = row.ticks <= *last;
        *last = row.ticks;
        Ok(is_older)
    }

    /// What processes are to give back, if it lies idle: to be called several times a second with
    /// all that are connected. A mark is told for three seconds; one that was told need not be
    /// told again.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn recalls(
        &self,
        connected: &[(BootId, u64)],
    ) -> Result<Vec<(BootId, Recall)>, Error> {
        let boots: Vec<Uuid> = connected.iter().map(|c| Uuid::from_bytes(c.0.0)).collect();
        let epochs: Vec<i64> = connected.iter().map(|c| signed(c.1)).collect();
        let rows = sqlx::query!(
            "select l.boot_id, b.limit_id, b.subject, b.window_start, r.keep, r.marked_at
             from limit_recall r
             join limit_bucket b using (bucket_id)
             join limit_lease l using (bucket_id)
             where r.marked_at > turnpike_now() - $3::interval and l.lost_at is null
               and l.granted - l.consumed - l.returned > r.keep
               and (l.boot_id, l.epoch) in (select * from unnest($1::uuid[], $2::bigint[]))
             order by l.boot_id, b.limit_id, b.subject, b.window_start",
            &boots,
            &epochs,
            interval(RECALL_US),
        )
        .fetch_all(&self.pool)
        .await?;
        let recalls = rows.into_iter().map(|row| {
            let recall = Recall {
                bucket: BucketKey {
                    limit: row.limit_id,
                    subject: row.subject,
                    window_start_s: row.window_start.unix_timestamp(),
                },
                keep: unsigned(row.keep),
                marked_at_us: to_unix_us(row.marked_at),
            };
            (BootId(row.boot_id.into_bytes()), recall)
        });
        Ok(recalls.collect())
    }

    /// Fences processes whose time is over: their epoch ends and its credit is suspended. Nobody
    /// while beats cannot be stored, nor soon after.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn fence_expired(&self) -> Result<Vec<BootId>, Error> {
        let rows = sqlx::query!(
            "select b.boot_id from node_boot b, lease_clock c
             where b.standing = 'live' and b.expires_at <= turnpike_now()
               and c.fence_not_before <= turnpike_now()
               and c.ticked_at > turnpike_now() - $1::interval
             order by b.boot_id limit $2",
            interval(DEAF_US),
            FENCE_BATCH,
        )
        .fetch_all(&self.pool)
        .await?;
        let mut fenced = Vec::new();
        for row in rows {
            let boot_id = BootId(row.boot_id.into_bytes());
            if self.fence(boot_id).await? {
                fenced.push(boot_id);
            }
        }
        Ok(fenced)
    }

    async fn fence(&self, boot_id: BootId) -> Result<bool, Error> {
        retry(|| async {
            let mut tx = self.begin("fence").await?;
            let Some(mut holder) = lock(&mut tx, boot_id).await? else {
                return Ok(false);
            };
            let now_us = now(&mut tx).await?;
            if !holder.is_expired(now_us) {
                return Ok(false);
            }
            let epoch = holder.fence();
            put(&mut tx, boot_id, &holder).await?;
            lose(&mut tx, LeaseKey { boot_id, epoch }, now_us).await?;
            tx.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Ends an epoch of a process, once all its records are in the ledger: what is neither charged
    /// nor, by its word, used is free. It may be repeated.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn close(
        &self,
        boot_id: BootId,
        epoch: u64,
        holdings: &[Holding],
        shards: &[ShardEnd],
    ) -> Result<Closing, Error> {
        retry(|| async {
            let mut tx = self.begin("close").await?;
            let holder = lock(&mut tx, boot_id).await?;
            if !is_taken(&mut tx, boot_id, shards).await? {
                return Ok(Closing::Waiting);
            }
            let now_us = now(&mut tx).await?;
            close_leases(&mut tx, LeaseKey { boot_id, epoch }, holdings, now_us).await?;
            if let Some(mut holder) = holder
                && holder.epoch <= epoch
            {
                holder.standing = Standing::Closed;
                put(&mut tx, boot_id, &holder).await?;
            }
            tx.commit().await?;
            Ok(Closing::Done)
        })
        .await
    }
}

async fn close_leases(
    tx: &mut PgConnection,
    key: LeaseKey,
    holdings: &[Holding],
    now_us: i64,
) -> Result<(), Error> {
    let used: BTreeMap<&BucketKey, u64> = holdings
        .iter()
        .map(|holding| (&holding.bucket, holding.used()))
        .collect();
    let ids = bucket_ids(tx, key).await?;
    let mut locked = locked::by_ids(tx, &ids).await?;
    locked.read_leases(tx, &BTreeSet::from([key])).await?;
    for bucket in locked.iter_mut() {
        let used = used.get(&bucket.key).copied().unwrap_or(0);
        bucket.close(key, used, now_us);
    }
    locked.write(tx).await
}

async fn lose(tx: &mut PgConnection, key: LeaseKey, now_us: i64) -> Result<(), Error> {
    let ids = bucket_ids(tx, key).await?;
    let mut locked = locked::by_ids(tx, &ids).await?;
    locked.read_leases(tx, &BTreeSet::from([key])).await?;
    for bucket in locked.iter_mut() {
        bucket.lose(key, now_us);
    }
    locked.write(tx).await
}

pub(super) async fn bucket_ids(tx: &mut PgConnection, key: LeaseKey) -> Result<Vec<i64>, Error> {
    let rows = sqlx::query!(
        "select bucket_id from limit_lease where boot_id = $1 and epoch = $2",
        Uuid::from_bytes(key.boot_id.0),
        signed(key.epoch),
    )
    .fetch_all(tx)
    .await?;
    Ok(rows.into_iter().map(|row| row.bucket_id).collect())
}

/// Whether the ledger has all records of a process.
async fn is_taken(
    tx: &mut PgConnection,
    boot_id: BootId,
    shards: &[ShardEnd],
) -> Result<bool, Error> {
    let rows = sqlx::query!(
        "select shard, last_seq from usage_cursor where boot_id = $1",
        Uuid::from_bytes(boot_id.0),
    )
    .fetch_all(tx)
    .await?;
    let taken: BTreeMap<i64, u64> = rows
        .into_iter()
        .map(|row| (row.shard, unsigned(row.last_seq)))
        .collect();
    Ok(shards.iter().all(|end| {
        let last_seq = taken.get(&i64::from(end.shard)).copied().unwrap_or(0);
        last_seq >= end.last_seq
    }))
}

/// Keeps processes from being fenced for the rest of the transaction.
pub(super) async fn hold(
    tx: &mut PgConnection,
    boots: impl Iterator<Item = BootId>,
) -> Result<BTreeMap<BootId, Holder>, Error> {
    let boots: Vec<Uuid> = boots.map(|boot| Uuid::from_bytes(boot.0)).collect();
    // Beats go on meanwhile: they take a lock that this one lets pass.
    let rows = sqlx::query!(
        "select boot_id, epoch, standing, draining, expires_at from node_boot
         where boot_id = any($1) order by boot_id for key share",
        &boots,
    )
    .fetch_all(tx)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let holder = holder(row.epoch, &row.standing, row.draining, row.expires_at);
            (BootId(row.boot_id.into_bytes()), holder)
        })
        .collect())
}

/// A lost process that speaks in its new epoch is live again.
pub(super) async fn revive(
    tx: &mut PgConnection,
    boot_id: BootId,
    now_us: i64,
) -> Result<(), Error> {
    sqlx::query!(
        "update node_boot set standing = 'live', expires_at = $2 where boot_id = $1",
        Uuid::from_bytes(boot_id.0),
        from_unix_us(now_us.saturating_add(EXPIRY_US)),
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Locks a process against everything but reading.
pub(super) async fn lock(tx: &mut PgConnection, boot_id: BootId) -> Result<Option<Holder>, Error> {
    let row = sqlx::query!(
        "select epoch, standing, draining, expires_at from node_boot
         where boot_id = $1 for update",
        Uuid::from_bytes(boot_id.0),
    )
    .fetch_optional(tx)
    .await?;
    Ok(row.map(|row| holder(row.epoch, &row.standing, row.draining, row.expires_at)))
}

pub(super) async fn put(
    tx: &mut PgConnection,
    boot_id: BootId,
    holder: &Holder,
) -> Result<(), Error> {
    sqlx::query!(
        "update node_boot set epoch = $2, standing = $3, draining = $4, expires_at = $5
         where boot_id = $1",
        Uuid::from_bytes(boot_id.0),
        signed(holder.epoch),
        word(holder.standing),
        holder.draining,
        from_unix_us(holder.expires_at_us),
    )
    .execute(tx)
    .await?;
    Ok(())
}

async fn now(tx: &mut PgConnection) -> Result<i64, Error> {
    let row = sqlx::query!(r#"select turnpike_now() as "now!""#)
        .fetch_one(tx)
        .await?;
    Ok(to_unix_us(row.now))
}

fn holder(epoch: i64, standing: &str, draining: bool, expires_at: time::OffsetDateTime) -> Holder {
    let standing = match standing {
        "live" => Standing::Live,
        "lost" => Standing::Lost,
        _ => Standing::Closed,
    };
    Holder {
        epoch: unsigned(epoch),
        standing,
        draining,
        expires_at_us: to_unix_us(expires_at),
    }
}

pub(super) fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Live => "live",
        Standing::Lost => "lost",
        Standing::Closed => "closed",
    }
}

pub(super) fn interval(microseconds: i64) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds,
    }
}
