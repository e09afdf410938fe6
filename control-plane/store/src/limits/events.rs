//! Events: a bucket has passed a threshold of its limit.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Error, Store};

/// A bucket has passed a threshold of its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitEvent {
    /// The same however often the event is told.
    pub id: Uuid,
    /// Id of the limit.
    pub limit: String,
    /// Empty when the limit was deleted since.
    pub display_name: String,
    pub subject: String,
    /// A word of `limit_definition.unit`.
    pub unit: String,
    /// A word of `limit_definition.limit_window`.
    pub window: String,
    pub window_start: OffsetDateTime,
    /// None: never.
    pub window_end: Option<OffsetDateTime>,
    /// Percent of the amount.
    pub threshold: u32,
    /// In the unit, when it was seen to have passed.
    pub settled: i64,
    /// In the unit, when it was seen to have passed.
    pub amount: i64,
    pub raised_at: OffsetDateTime,
}

impl Store {
    /// Raises an event for each bucket that has passed a threshold of its limit since the last
    /// look, in windows that are or have just ended: to be called every few seconds by any replica.
    /// The number of events.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn raise_limit_events(&self) -> Result<u64, Error> {
        let done = sqlx::query!(
            "insert into limit_event (bucket_id, threshold, settled, amount)
             select b.bucket_id, t.percent, b.settled, b.amount
             from limit_definition d
             cross join lateral unnest(d.thresholds) as t (percent)
             join limit_bucket b on b.limit_id = d.limit_id
             where not d.disabled and b.settled > 0
               and b.settled::numeric * 100 >= b.amount::numeric * t.percent
               and (b.window_end is null or b.window_end > turnpike_now() - interval '10 minutes')
               and not exists (select from limit_event e
                               where e.bucket_id = b.bucket_id and e.threshold = t.percent)
             on conflict on constraint limit_event_unique do nothing"
        )
        .execute(&self.pool)
        .await?;
        Ok(done.rows_affected())
    }

    /// Takes events that are due to be told, oldest first. Each is due again after a while that
    /// doubles from 10 s to an hour, for a day, unless it is said to be delivered by then.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn take_limit_events(&self, most: u32) -> Result<Vec<LimitEvent>, Error> {
        let rows = sqlx::query!(
            r#"with due as (
                 select limit_event_id from limit_event
                 where delivered_at is null and try_at <= turnpike_now()
                   and raised_at > turnpike_now() - interval '1 day'
                 order by try_at limit $1
                 for update skip locked
               ), taken as (
                 update limit_event e
                 set tries = e.tries + 1,
                     try_at = turnpike_now()
                       + least(3600, 10 * 2 ^ least(e.tries, 10)) * interval '1 second'
                 from due where e.limit_event_id = due.limit_event_id
                 returning e.limit_event_id, e.bucket_id, e.threshold, e.settled, e.amount,
                           e.raised_at
               )
               select t.limit_event_id, t.threshold, t.settled, t.amount, t.raised_at, b.limit_id,
                      b.subject, b.window_start, b.window_end, s.unit, s.limit_window,
                      coalesce(d.display_name, '') as "display_name!"
               from taken t
               join limit_bucket b using (bucket_id)
               join limit_shape s using (limit_id)
               left join limit_definition d using (limit_id)
               order by t.raised_at, t.threshold"#,
            i64::from(most),
        )
        .fetch_all(&self.pool)
        .await?;
        let events = rows.into_iter().map(|row| LimitEvent {
            id: row.limit_event_id,
            limit: row.limit_id,
            display_name: row.display_name,
            subject: row.subject,
            unit: row.unit,
            window: row.limit_window,
            window_start: row.window_start,
            window_end: row.window_end,
            threshold: u32::try_from(row.threshold).unwrap_or(0),
            settled: row.settled,
            amount: row.amount,
            raised_at: row.raised_at,
        });
        Ok(events.collect())
    }

    /// Notes that an event was told, so that it is not told again.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn limit_event_delivered(&self, id: Uuid) -> Result<(), Error> {
        sqlx::query!(
            "update limit_event set delivered_at = turnpike_now() where limit_event_id = $1",
            id,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
