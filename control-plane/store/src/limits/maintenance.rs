//! Credit of lost processes that is due, and rows that nobody needs any more.

use std::collections::BTreeSet;

use control_plane_core::limit::LeaseKey;
use control_plane_core::nodes::BootId;

use super::locked;
use super::published;
use crate::store::retry;
use crate::stored::unsigned;
use crate::{Error, Store};

/// Buckets looked at in one transaction.
const BATCH: i64 = 500;

impl Store {
    /// Frees the credit of lost processes, or writes it down as unaccounted, where it is due: to
    /// be called every few seconds by any replica. The number of leases that changed.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn expire_lost(&self) -> Result<u64, Error> {
        let mut changed = 0;
        let mut after = 0;
        loop {
            let rows = sqlx::query!(
                "select distinct bucket_id from limit_lease
                 where lost_at is not null and unaccounted = 0 and granted > consumed + returned
                   and bucket_id > $1
                 order by bucket_id limit $2",
                after,
                BATCH,
            )
            .fetch_all(&self.pool)
            .await?;
            let ids: Vec<i64> = rows.into_iter().map(|row| row.bucket_id).collect();
            let Some(last) = ids.last() else {
                return Ok(changed);
            };
            after = *last;
            changed += self.expire_lost_in(&ids).await?;
        }
    }

    async fn expire_lost_in(&self, ids: &[i64]) -> Result<u64, Error> {
        retry(|| async {
            let mut tx = self.begin("expire_lost").await?;
            let mut locked = locked::by_ids(&mut tx, ids).await?;
            let rows = sqlx::query!(
                "select distinct boot_id, epoch from limit_lease
                 where bucket_id = any($1) and lost_at is not null and unaccounted = 0
                   and granted > consumed + returned",
                ids,
            )
            .fetch_all(&mut *tx)
            .await?;
            let leases: BTreeSet<LeaseKey> = rows
                .into_iter()
                .map(|row| LeaseKey {
                    boot_id: BootId(row.boot_id.into_bytes()),
                    epoch: unsigned(row.epoch),
                })
                .collect();
            locked.read_leases(&mut tx, &leases).await?;
            let limits: BTreeSet<String> = locked.iter_mut().map(|b| b.key.limit.clone()).collect();
            let limits = limits.iter().map(String::as_str).collect();
            let published = published::read(&mut tx, limits).await?;
            let mut changed = 0;
            for bucket in locked.iter_mut() {
                let Some(terms) = published.terms.get(&bucket.key.limit) else {
                    continue;
                };
                for key in &leases {
                    changed += u64::from(
                        bucket.leases.contains_key(key)
                            && bucket.expire(terms, *key, published.now_us),
                    );
                }
            }
            locked.write(&mut tx).await?;
            tx.commit().await?;
            Ok(changed)
        })
        .await
    }

    /// Forgets past buckets after 400 days, leases of past windows and of ended epochs that hold
    /// nothing after two days, processes that are gone after a week, and marks to recall after a
    /// minute: to be called every few minutes by any replica.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn prune_limits(&self) -> Result<(), Error> {
        sqlx::query!(
            "delete from limit_recall where marked_at < turnpike_now() - interval '1 minute'"
        )
        .execute(&self.pool)
        .await?;
        sqlx::query!(
            "delete from limit_lease where (bucket_id, boot_id, epoch) in (
               select l.bucket_id, l.boot_id, l.epoch
               from limit_lease l join limit_bucket b using (bucket_id)
               where l.unaccounted = 0 and l.granted <= l.consumed + l.returned
                 and (b.window_end < turnpike_now() - interval '2 days'
                   or l.lost_at < turnpike_now() - interval '2 days'
                   or exists (select from node_boot n
                              where n.boot_id = l.boot_id and n.standing = 'closed'
                                and n.expires_at < turnpike_now() - interval '2 days'))
               for update of l skip locked)"
        )
        .execute(&self.pool)
        .await?;
        sqlx::query!(
            "delete from node_boot n
             where standing <> 'live' and expires_at < turnpike_now() - interval '7 days'
               and not exists (select from limit_lease l where l.boot_id = n.boot_id)"
        )
        .execute(&self.pool)
        .await?;
        sqlx::query!(
            "delete from limit_bucket where window_end < turnpike_now() - interval '400 days'"
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
