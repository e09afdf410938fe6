//! Hello: a process is known from here on, and what it says it holds is believed.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_core::limit::{BucketKey, Grant, Holder, Holding, LeaseKey, Welcome};
use control_plane_core::nodes::BootId;
use sqlx::PgConnection;
use uuid::Uuid;

use super::locked::{self, BucketRow};
use super::published::{self, Published};
use super::{Attempt, Missing, holders};
use crate::stored::{from_unix_us, signed, unsigned};
use crate::{Error, Store};

impl Store {
    /// A process says Hello, with the epoch it had (0: none) and what it holds in it.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn hello(
        &self,
        boot_id: BootId,
        node: &str,
        epoch: u64,
        draining: bool,
        holdings: &[Holding],
    ) -> Result<Welcome, Error> {
        self.with_buckets(|| async {
            let mut tx = self.begin("hello").await?;
            let hello = Hello {
                boot_id,
                node,
                epoch,
                draining,
                holdings,
            };
            let attempt = greet(&mut tx, &hello).await?;
            if matches!(attempt, Attempt::Done(_)) {
                tx.commit().await?;
            }
            Ok(attempt)
        })
        .await
    }
}

struct Hello<'a> {
    boot_id: BootId,
    node: &'a str,
    epoch: u64,
    draining: bool,
    holdings: &'a [Holding],
}

async fn greet(tx: &mut PgConnection, hello: &Hello<'_>) -> Result<Attempt<Welcome>, Error> {
    let limits = hello
        .holdings
        .iter()
        .map(|holding| holding.bucket.limit.as_str())
        .collect();
    let published = published::read(tx, limits).await?;
    let now_us = published.now_us;
    let fresh = Holder::greet(None, hello.epoch, hello.draining, now_us);
    let inserted = insert(tx, hello, &fresh.holder).await?;
    let greeting = match holders::lock(tx, hello.boot_id).await? {
        Some(known) if !inserted => Holder::greet(Some(known), hello.epoch, hello.draining, now_us),
        _ => fresh,
    };
    holders::put(tx, hello.boot_id, &greeting.holder).await?;
    let lease_of = |epoch: u64| LeaseKey {
        boot_id: hello.boot_id,
        epoch,
    };
    let key = lease_of(greeting.holder.epoch);
    let forgotten = greeting.forgotten_epoch.map(lease_of);
    let holdings = if greeting.fenced { &[] } else { hello.holdings };
    let (declared, mut missing) = resolve(holdings, &published);
    // One lock for both: a second statement could wait for a bucket below one that it holds.
    let mut ids = match forgotten {
        Some(forgotten) => holders::bucket_ids(tx, forgotten).await?,
        None => Vec::new(),
    };
    let keys = declared.iter().map(|(bucket, _)| bucket.clone()).collect();
    ids.extend(ids_of(tx, &keys).await?);
    let mut locked = locked::by_ids(tx, &ids).await?;
    missing.retain(|bucket, _| !locked.contains(bucket));
    if !missing.is_empty() {
        return Ok(Attempt::Missing(missing));
    }
    let mut leases = BTreeSet::from([key]);
    leases.extend(forgotten);
    locked.read_leases(tx, &leases).await?;
    for bucket in locked.iter_mut() {
        if let Some(forgotten) = forgotten.filter(|key| bucket.leases.contains_key(key)) {
            bucket.lose(forgotten, now_us);
        }
    }
    for (bucket, holding) in declared {
        if let Some(bucket) = locked.get_mut(&bucket) {
            bucket.declare(key, holding);
        }
    }
    locked.write(tx).await?;
    Ok(Attempt::Done(Welcome {
        epoch: greeting.holder.epoch,
        fenced: greeting.fenced,
        grants: surprises(tx, key, hello.holdings, now_us).await?,
    }))
}

/// The buckets of what is declared, and the windows of those that can be made.
fn resolve<'a>(
    holdings: &'a [Holding],
    published: &Published,
) -> (Vec<(BucketKey, &'a Holding)>, Missing) {
    let mut makeable = Missing::new();
    let declared = holdings.iter().map(|holding| {
        let Some(terms) = published.terms.get(&holding.bucket.limit) else {
            return (holding.bucket.clone(), holding);
        };
        let (bucket, span) = terms.bucket_of(&holding.bucket, false, 0);
        makeable.insert(bucket.clone(), span);
        (bucket, holding)
    });
    (declared.collect(), makeable)
}

/// Leases of a holder whose totals are not the declared ones. It forgets those of past windows.
async fn surprises(
    tx: &mut PgConnection,
    key: LeaseKey,
    holdings: &[Holding],
    now_us: i64,
) -> Result<Vec<Grant>, Error> {
    let rows = sqlx::query!(
        "select b.bucket_id, b.limit_id, b.subject, b.window_start, b.window_end, b.amount,
                b.settled, b.held, b.suspended, l.granted, l.returned
         from limit_lease l join limit_bucket b using (bucket_id)
         where l.boot_id = $1 and l.epoch = $2
         order by b.limit_id, b.subject, b.window_start",
        Uuid::from_bytes(key.boot_id.0),
        signed(key.epoch),
    )
    .fetch_all(tx)
    .await?;
    let declared: BTreeMap<&BucketKey, &Holding> = holdings
        .iter()
        .map(|holding| (&holding.bucket, holding))
        .collect();
    let grants = rows.into_iter().filter_map(|row| {
        let totals = (unsigned(row.granted), unsigned(row.returned));
        let row = BucketRow {
            bucket_id: row.bucket_id,
            limit_id: row.limit_id,
            subject: row.subject,
            window_start: row.window_start,
            window_end: row.window_end,
            amount: row.amount,
            settled: row.settled,
            held: row.held,
            suspended: row.suspended,
        };
        let bucket = row.into_bucket();
        (!bucket.has_ended(now_us)).then(|| Grant {
            granted_total: totals.0,
            returned_total: totals.1,
            ..bucket.grant(key, now_us)
        })
    });
    Ok(grants
        .filter(|grant| {
            let holding = declared.get(&grant.bucket);
            !holding.is_some_and(|holding| holding.says(grant))
        })
        .collect())
}

async fn ids_of(tx: &mut PgConnection, keys: &BTreeSet<BucketKey>) -> Result<Vec<i64>, Error> {
    let limits: Vec<String> = keys.iter().map(|key| key.limit.clone()).collect();
    let subjects: Vec<String> = keys.iter().map(|key| key.subject.clone()).collect();
    let starts: Vec<_> = keys
        .iter()
        .map(|key| from_unix_us(key.window_start_s.saturating_mul(1_000_000)))
        .collect();
    let rows = sqlx::query!(
        "select bucket_id from limit_bucket
         where (limit_id, subject, window_start) in
           (select * from unnest($1::text[], $2::text[], $3::timestamptz[]))",
        &limits,
        &subjects,
        &starts,
    )
    .fetch_all(tx)
    .await?;
    Ok(rows.into_iter().map(|row| row.bucket_id).collect())
}

async fn insert(tx: &mut PgConnection, hello: &Hello<'_>, holder: &Holder) -> Result<bool, Error> {
    let done = sqlx::query!(
        "insert into node_boot (boot_id, node, epoch, standing, draining, expires_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict on constraint node_boot_pkey do nothing",
        Uuid::from_bytes(hello.boot_id.0),
        hello.node.replace('\0', "\u{fffd}"),
        signed(holder.epoch),
        holders::word(holder.standing),
        holder.draining,
        from_unix_us(holder.expires_at_us),
    )
    .execute(tx)
    .await?;
    Ok(done.rows_affected() > 0)
}
