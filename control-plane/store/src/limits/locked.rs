//! Buckets that a transaction has locked, with the leases it looks at.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_core::limit::{ACTIVE_US, Bucket, BucketKey, Lease, LeaseKey, Span, Sums};
use control_plane_core::nodes::BootId;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::Error;
use crate::stored::{from_unix_s, from_unix_us, signed, to_unix_us, unsigned};

/// Locked buckets, as read and as changed since.
pub(super) struct Locked(BTreeMap<BucketKey, Entry>);

struct Entry {
    bucket_id: i64,
    read: Bucket,
    now: Bucket,
}

/// Locks the buckets of some keys; those that are not there are left out.
pub(super) async fn by_keys(
    tx: &mut PgConnection,
    keys: &BTreeSet<BucketKey>,
) -> Result<Locked, Error> {
    let limits: Vec<String> = keys.iter().map(|key| key.limit.clone()).collect();
    let subjects: Vec<String> = keys.iter().map(|key| key.subject.clone()).collect();
    let starts: Vec<OffsetDateTime> = keys
        .iter()
        .map(|key| from_unix_s(unsigned(key.window_start_s)))
        .collect();
    let rows = sqlx::query_as!(
        BucketRow,
        "select bucket_id, limit_id, subject, window_start, window_end, amount, settled, held,
                suspended
         from limit_bucket
         where (limit_id, subject, window_start) in
           (select * from unnest($1::text[], $2::text[], $3::timestamptz[]))
         order by bucket_id for no key update",
        &limits,
        &subjects,
        &starts,
    )
    .fetch_all(tx)
    .await?;
    Ok(Locked::new(rows))
}

/// Locks buckets.
pub(super) async fn by_ids(tx: &mut PgConnection, ids: &[i64]) -> Result<Locked, Error> {
    let rows = sqlx::query_as!(
        BucketRow,
        "select bucket_id, limit_id, subject, window_start, window_end, amount, settled, held,
                suspended
         from limit_bucket where bucket_id = any($1)
         order by bucket_id for no key update",
        ids,
    )
    .fetch_all(tx)
    .await?;
    Ok(Locked::new(rows))
}

impl Locked {
    fn new(rows: Vec<BucketRow>) -> Self {
        Self(rows.into_iter().map(BucketRow::into_entry).collect())
    }

    /// Reads the leases of some holders, in a statement after the one that locked.
    pub(super) async fn read_leases(
        &mut self,
        tx: &mut PgConnection,
        holders: &BTreeSet<LeaseKey>,
    ) -> Result<(), Error> {
        let (boots, epochs) = lease_columns(holders.iter());
        let rows = sqlx::query!(
            "select bucket_id, boot_id, epoch, granted, consumed, returned, unaccounted, lost_at,
                    wanted_at
             from limit_lease
             where bucket_id = any($1)
               and (boot_id, epoch) in (select * from unnest($2::uuid[], $3::bigint[]))",
            &self.ids(),
            &boots,
            &epochs,
        )
        .fetch_all(tx)
        .await?;
        let mut leases: BTreeMap<i64, BTreeMap<LeaseKey, Lease>> = BTreeMap::new();
        for row in rows {
            let key = LeaseKey {
                boot_id: BootId(row.boot_id.into_bytes()),
                epoch: unsigned(row.epoch),
            };
            let lease = Lease {
                granted: unsigned(row.granted),
                consumed: unsigned(row.consumed),
                returned: unsigned(row.returned),
                unaccounted: unsigned(row.unaccounted),
                lost_at_us: row.lost_at.map(to_unix_us),
                wanted_at_us: row.wanted_at.map_or(0, to_unix_us),
            };
            leases.entry(row.bucket_id).or_default().insert(key, lease);
        }
        for entry in self.0.values_mut() {
            entry.read.leases = leases.remove(&entry.bucket_id).unwrap_or_default();
            entry.now.leases.clone_from(&entry.read.leases);
        }
        Ok(())
    }

    /// Counts who else is active on the buckets, beside the holders whose leases were read.
    pub(super) async fn count_others(
        &mut self,
        tx: &mut PgConnection,
        holders: &BTreeSet<LeaseKey>,
        now_us: i64,
    ) -> Result<(), Error> {
        let (boots, epochs) = lease_columns(holders.iter());
        let rows = sqlx::query!(
            r#"select bucket_id, count(*) as "active!" from limit_lease
               where bucket_id = any($1) and lost_at is null and wanted_at > $4
                 and (boot_id, epoch) not in (select * from unnest($2::uuid[], $3::bigint[]))
               group by bucket_id"#,
            &self.ids(),
            &boots,
            &epochs,
            from_unix_us(now_us.saturating_sub(ACTIVE_US)),
        )
        .fetch_all(tx)
        .await?;
        let active: BTreeMap<i64, u64> = rows
            .into_iter()
            .map(|row| (row.bucket_id, unsigned(row.active)))
            .collect();
        for entry in self.0.values_mut() {
            entry.now.others_active = active.get(&entry.bucket_id).copied().unwrap_or(0);
        }
        Ok(())
    }

    pub(super) fn get_mut(&mut self, key: &BucketKey) -> Option<&mut Bucket> {
        self.0.get_mut(key).map(|entry| &mut entry.now)
    }

    pub(super) fn contains(&self, key: &BucketKey) -> bool {
        self.0.contains_key(key)
    }

    /// The id that rows refer to a bucket by.
    pub(super) fn id_of(&self, key: &BucketKey) -> Option<i64> {
        self.0.get(key).map(|entry| entry.bucket_id)
    }

    /// Each bucket, in key order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Bucket> {
        self.0.values_mut().map(|entry| &mut entry.now)
    }

    fn ids(&self) -> Vec<i64> {
        self.0.values().map(|entry| entry.bucket_id).collect()
    }

    /// Writes what was changed.
    pub(super) async fn write(&self, tx: &mut PgConnection) -> Result<(), Error> {
        let mut leases = LeaseColumns::default();
        let mut sums = SumColumns::default();
        for entry in self.0.values() {
            for (key, lease) in &entry.now.leases {
                if *lease != entry.read.lease(*key) {
                    leases.push(entry.bucket_id, *key, lease);
                }
            }
            if entry.now.sums != entry.read.sums {
                sums.push(entry.bucket_id, &entry.now.sums);
            }
        }
        leases.upsert(tx).await?;
        sums.update(tx).await
    }
}

fn lease_columns<'a>(keys: impl Iterator<Item = &'a LeaseKey>) -> (Vec<Uuid>, Vec<i64>) {
    keys.map(|key| (Uuid::from_bytes(key.boot_id.0), signed(key.epoch)))
        .unzip()
}

#[derive(Default)]
struct LeaseColumns {
    bucket_ids: Vec<i64>,
    boots: Vec<Uuid>,
    epochs: Vec<i64>,
    granted: Vec<i64>,
    consumed: Vec<i64>,
    returned: Vec<i64>,
    unaccounted: Vec<i64>,
    lost_at: Vec<Option<OffsetDateTime>>,
    wanted_at: Vec<Option<OffsetDateTime>>,
}

impl LeaseColumns {
    fn push(&mut self, bucket_id: i64, key: LeaseKey, lease: &Lease) {
        self.bucket_ids.push(bucket_id);
        self.boots.push(Uuid::from_bytes(key.boot_id.0));
        self.epochs.push(signed(key.epoch));
        self.granted.push(signed(lease.granted));
        self.consumed.push(signed(lease.consumed));
        self.returned.push(signed(lease.returned));
        self.unaccounted.push(signed(lease.unaccounted));
        self.lost_at.push(lease.lost_at_us.map(from_unix_us));
        let wanted = (lease.wanted_at_us > 0).then_some(lease.wanted_at_us);
        self.wanted_at.push(wanted.map(from_unix_us));
    }

    async fn upsert(self, tx: &mut PgConnection) -> Result<(), Error> {
        if self.bucket_ids.is_empty() {
            return Ok(());
        }
        sqlx::query!(
            "insert into limit_lease (bucket_id, boot_id, epoch, granted, consumed, returned,
               unaccounted, lost_at, wanted_at)
             select * from unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[],
               $5::bigint[], $6::bigint[], $7::bigint[], $8::timestamptz[], $9::timestamptz[])
             on conflict on constraint limit_lease_pkey do update set
               granted = excluded.granted, consumed = excluded.consumed,
               returned = excluded.returned, unaccounted = excluded.unaccounted,
               lost_at = excluded.lost_at, wanted_at = excluded.wanted_at",
            &self.bucket_ids,
            &self.boots,
            &self.epochs,
            &self.granted,
            &self.consumed,
            &self.returned,
            &self.unaccounted,
            &self.lost_at as &[Option<OffsetDateTime>],
            &self.wanted_at as &[Option<OffsetDateTime>],
        )
        .execute(tx)
        .await?;
        Ok(())
    }
}

#[derive(Default)]
struct SumColumns {
    bucket_ids: Vec<i64>,
    settled: Vec<i64>,
    held: Vec<i64>,
    suspended: Vec<i64>,
}

impl SumColumns {
    fn push(&mut self, bucket_id: i64, sums: &Sums) {
        self.bucket_ids.push(bucket_id);
        self.settled.push(sums.settled);
        self.held.push(signed(sums.held));
        self.suspended.push(signed(sums.suspended));
    }

    async fn update(self, tx: &mut PgConnection) -> Result<(), Error> {
        if self.bucket_ids.is_empty() {
            return Ok(());
        }
        sqlx::query!(
            "update limit_bucket b
             set settled = n.settled, held = n.held, suspended = n.suspended
             from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
               as n (bucket_id, settled, held, suspended)
             where b.bucket_id = n.bucket_id",
            &self.bucket_ids,
            &self.settled,
            &self.held,
            &self.suspended,
        )
        .execute(tx)
        .await?;
        Ok(())
    }
}

/// A row of `limit_bucket`.
pub(super) struct BucketRow {
    pub(super) bucket_id: i64,
    pub(super) limit_id: String,
    pub(super) subject: String,
    pub(super) window_start: OffsetDateTime,
    pub(super) window_end: Option<OffsetDateTime>,
    pub(super) amount: i64,
    pub(super) settled: i64,
    pub(super) held: i64,
    pub(super) suspended: i64,
}

impl BucketRow {
    /// The bucket, without leases.
    pub(super) fn into_bucket(self) -> Bucket {
        let start_s = self.window_start.unix_timestamp();
        let key = BucketKey {
            limit: self.limit_id,
            subject: self.subject,
            window_start_s: start_s,
        };
        let span = Span {
            start_s,
            end_s: self.window_end.map(OffsetDateTime::unix_timestamp),
        };
        let mut bucket = Bucket::new(key, span, unsigned(self.amount));
        bucket.sums.settled = self.settled;
        bucket.sums.held = unsigned(self.held);
        bucket.sums.suspended = unsigned(self.suspended);
        bucket
    }

    fn into_entry(self) -> (BucketKey, Entry) {
        let bucket_id = self.bucket_id;
        let read = self.into_bucket();
        let entry = Entry {
            bucket_id,
            now: read.clone(),
            read,
        };
        (entry.now.key.clone(), entry)
    }
}
