//! How limits stand: each with its buckets that are now, also where nobody has used it.

use time::OffsetDateTime;

use super::StoredBucket;
use crate::stored::{from_unix_s, to_unix_s, unsigned};
use crate::{Error, Page, PageRequest, Store};

/// Which limits to show; everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusFilter {
    /// Id of the limit.
    pub limit: Option<String>,
    pub subject: Option<String>,
}

/// A limit with one of its buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// In a window that nobody has used, all of the amount is free, the subject is that of the
    /// limit, and the window starts in 1970.
    pub bucket: StoredBucket,
    /// Whether there is such a bucket.
    pub is_used: bool,
    /// Of what is suspended: in no record, and given up on. In the limit's unit.
    pub unaccounted: u64,
}

const LIST: &str = "limit_statuses";

impl Store {
    /// Limits by id and subject, with their buckets in windows that have begun and not ended.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn limit_statuses(
        &self,
        filter: &StatusFilter,
        request: &PageRequest,
    ) -> Result<Page<LimitStatus>, Error> {
        let after: Option<(String, String, u64)> = request.after(LIST)?;
        let is_first = after.is_none();
        let (limit, subject, start_s) = after.unwrap_or_default();
        let rows = sqlx::query_as!(
            Row,
            r#"select s.limit_id as "limit_id!", s.subject as "subject!",
                      s.window_start as "window_start!", s.window_end, s.amount as "amount!",
                      s.settled as "settled!", s.held as "held!", s.suspended as "suspended!",
                      s.is_used as "is_used!",
                      (select coalesce(sum(l.unaccounted), 0)::bigint from limit_lease l
                       where l.bucket_id = s.bucket_id and l.unaccounted > 0) as "unaccounted!"
               from (select d.limit_id, coalesce(b.subject, d.subject_id) as subject,
                            coalesce(b.window_start, 'epoch') as window_start, b.window_end,
                            coalesce(b.amount, d.amount) as amount,
                            coalesce(b.settled, 0) as settled, coalesce(b.held, 0) as held,
                            coalesce(b.suspended, 0) as suspended,
                            b.bucket_id is not null as is_used, b.bucket_id
                     from limit_definition d
                     left join limit_bucket b
                       on b.limit_id = d.limit_id and b.window_start <= turnpike_now()
                      and (b.window_end is null or b.window_end > turnpike_now())
                     where $5::text is null or d.limit_id = $5) s
               where ($1 or (s.limit_id, s.subject, s.window_start) > ($2, $3, $4))
                 and ($6::text is null or s.subject = $6)
               order by s.limit_id, s.subject, s.window_start limit $7"#,
            is_first,
            limit,
            subject,
            from_unix_s(start_s),
            filter.limit,
            filter.subject,
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let items = rows.into_iter().map(LimitStatus::from).collect();
        Ok(request.page(LIST, items, |status: &LimitStatus| {
            let bucket = &status.bucket;
            let start_s = to_unix_s(bucket.window_start);
            (bucket.limit.clone(), bucket.subject.clone(), start_s)
        }))
    }
}

struct Row {
    limit_id: String,
    subject: String,
    window_start: OffsetDateTime,
    window_end: Option<OffsetDateTime>,
    amount: i64,
    settled: i64,
    held: i64,
    suspended: i64,
    is_used: bool,
    unaccounted: i64,
}

impl From<Row> for LimitStatus {
    fn from(row: Row) -> Self {
        let taken = row.held.saturating_add(row.suspended);
        let bucket = StoredBucket {
            free: row.amount.saturating_sub(row.settled).saturating_sub(taken),
            limit: row.limit_id,
            subject: row.subject,
            window_start: row.window_start,
            window_end: row.window_end,
            amount: unsigned(row.amount),
            settled: row.settled,
            held: unsigned(row.held),
            suspended: unsigned(row.suspended),
        };
        Self {
            bucket,
            is_used: row.is_used,
            unaccounted: unsigned(row.unaccounted),
        }
    }
}
