//! Counters as operators see them, and their corrections.

use std::collections::BTreeSet;

use control_plane_core::limit::{Bucket, BucketKey};
use control_plane_core::name::Collection;
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::locked::{self, BucketRow};
use super::published;
use super::{Attempt, Missing};
use crate::audit::{self, Entry};
use crate::stored::{from_unix_s, unsigned};
use crate::{Actor, Error, Page, PageRequest, Store};

/// Which buckets to list; everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketFilter {
    /// Id of the limit.
    pub limit: Option<String>,
    pub subject: Option<String>,
    /// Past windows too.
    pub include_past: bool,
}

/// A bucket with its sums, in the limit's unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBucket {
    pub limit: String,
    pub subject: String,
    /// 1970 for rates, in-flight and lifetime.
    pub window_start: OffsetDateTime,
    /// None: never.
    pub window_end: Option<OffsetDateTime>,
    pub amount: u64,
    pub settled: i64,
    pub held: u64,
    pub suspended: u64,
    /// What may still be granted; negative when the amount was exceeded.
    pub free: i64,
}

const LIST: &str = "limit_buckets";

impl Store {
    /// Buckets by limit, subject and window.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn buckets(
        &self,
        filter: &BucketFilter,
        request: &PageRequest,
    ) -> Result<Page<StoredBucket>, Error> {
        let after: Option<(String, String, i64)> = request.after(LIST)?;
        let is_first = after.is_none();
        let (limit, subject, start_s) = after.unwrap_or_default();
        let rows = sqlx::query_as!(
            BucketRow,
            "select bucket_id, limit_id, subject, window_start, window_end, amount, settled, held,
                    suspended
             from limit_bucket
             where ($1 or (limit_id, subject, window_start) > ($2, $3, $4))
               and ($5::text is null or limit_id = $5)
               and ($6::text is null or subject = $6)
               and ($7 or window_end is null or window_end > turnpike_now())
             order by limit_id, subject, window_start limit $8",
            is_first,
            limit,
            subject,
            from_unix_s(unsigned(start_s)),
            filter.limit,
            filter.subject,
            filter.include_past,
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let items = rows.into_iter().map(BucketRow::into_bucket).collect();
        let page = request.page(LIST, items, |bucket: &Bucket| {
            let key = &bucket.key;
            (key.limit.clone(), key.subject.clone(), key.window_start_s)
        });
        Ok(Page {
            items: page.items.into_iter().map(StoredBucket::from).collect(),
            next_page_token: page.next_page_token,
        })
    }

    /// Moves what is settled in the bucket that is now, by a correction that is kept and audited.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NotFound`] when there is no such limit, or when Postgres is
    /// away.
    pub async fn adjust_bucket(
        &self,
        actor: &Actor,
        limit: &str,
        subject: &str,
        delta: i64,
        reason: &str,
    ) -> Result<StoredBucket, Error> {
        check(delta, subject, reason)?;
        let now = BucketKey {
            limit: limit.to_owned(),
            subject: subject.to_owned(),
            window_start_s: -1,
        };
        self.with_buckets(|| async {
            let mut tx = self.begin("adjust_bucket").await?;
            let published = published::read(&mut tx, BTreeSet::from([limit])).await?;
            let Some(terms) = published.terms.get(limit) else {
                return Err(Error::NotFound(Collection::Limits.name(limit)));
            };
            let (key, span) = terms.bucket_of(&now, false, published.now_us);
            let mut locked = locked::by_keys(&mut tx, &BTreeSet::from([key.clone()])).await?;
            let (Some(bucket_id), Some(bucket)) = (locked.id_of(&key), locked.get_mut(&key)) else {
                return Ok(Attempt::Missing(Missing::from([(key, span)])));
            };
            bucket.adjust(delta);
            let stored = StoredBucket::from(bucket.clone());
            locked.write(&mut tx).await?;
            note(&mut tx, actor, bucket_id, delta, reason).await?;
            audit(&mut tx, actor, &stored, delta, reason).await?;
            tx.commit().await?;
            Ok(Attempt::Done(stored))
        })
        .await
    }
}

const MAX_REASON_CHARS: usize = 500;
const MAX_SUBJECT_BYTES: usize = 400;
/// A correction is at most what a limit may be.
const MAX_DELTA: u64 = control_plane_core::limit::MAX_AMOUNT;

fn check(delta: i64, subject: &str, reason: &str) -> Result<(), Error> {
    let mut faults = control_plane_core::fault::Faults::default();
    faults.require(
        (1..=MAX_DELTA).contains(&delta.unsigned_abs()),
        "delta",
        "must not be 0, and at most 2^53 either way",
    );
    faults.require(
        subject.len() <= MAX_SUBJECT_BYTES && !subject.chars().any(char::is_control),
        "subject",
        "must be at most 400 bytes without controls",
    );
    faults.require(
        (1..=MAX_REASON_CHARS).contains(&reason.chars().count()) && !reason.contains('\0'),
        "reason",
        "must have 1-500 characters",
    );
    faults.into_result().map_err(Error::Invalid)
}

async fn note(
    tx: &mut PgConnection,
    actor: &Actor,
    bucket_id: i64,
    delta: i64,
    reason: &str,
) -> Result<(), Error> {
    sqlx::query!(
        "insert into limit_adjustment (bucket_id, delta, reason, actor) values ($1, $2, $3, $4)",
        bucket_id,
        delta,
        reason,
        actor.name(),
    )
    .execute(tx)
    .await?;
    Ok(())
}

async fn audit(
    tx: &mut PgConnection,
    actor: &Actor,
    bucket: &StoredBucket,
    delta: i64,
    reason: &str,
) -> Result<(), Error> {
    let row = sqlx::query!("select version from config_state")
        .fetch_one(&mut *tx)
        .await?;
    let state = serde_json::json!({
        "subject": bucket.subject,
        "window_start_s": bucket.window_start.unix_timestamp(),
        "settled": bucket.settled,
        "delta": delta,
        "reason": reason,
    });
    let entry = Entry {
        actor: actor.name(),
        method: "AdjustBucket",
        resource: &Collection::Limits.name(&bucket.limit),
        config_version: unsigned(row.version),
        state: &state.to_string(),
    };
    audit::write(tx, &entry).await
}

impl From<Bucket> for StoredBucket {
    fn from(bucket: Bucket) -> Self {
        Self {
            free: bucket.sums.free(),
            limit: bucket.key.limit,
            subject: bucket.key.subject,
            window_start: from_unix_s(unsigned(bucket.span.start_s)),
            window_end: bucket.span.end_s.map(|end_s| from_unix_s(unsigned(end_s))),
            amount: bucket.sums.amount,
            settled: bucket.sums.settled,
            held: bucket.sums.held,
            suspended: bucket.sums.suspended,
        }
    }
}
