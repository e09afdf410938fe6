//! Events as operators see them: what was raised, and what became of telling it.

use time::OffsetDateTime;
use uuid::Uuid;

use super::LimitEvent;
use crate::stored::{from_unix_us, to_unix_us};
use crate::{Error, Page, PageRequest, Store};

/// Which events to list; everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Id of the limit.
    pub limit: Option<String>,
    /// Only those that nobody has taken.
    pub undelivered: bool,
}

/// What became of telling an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is due at this moment, once there is somebody to be told.
    Pending { try_at: OffsetDateTime },
    /// It was taken.
    Delivered { at: OffsetDateTime },
    /// Nobody took it within a day.
    GivenUp,
}

/// An event with what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldEvent {
    pub event: LimitEvent,
    pub delivery: Delivery,
    /// How often a delivery was begun.
    pub tries: u32,
    /// Of the last try that failed; empty: none did.
    pub failure: String,
}

const LIST: &str = "limit_events";

impl Store {
    /// Events, newest first.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn limit_events(
        &self,
        filter: &EventFilter,
        request: &PageRequest,
    ) -> Result<Page<ToldEvent>, Error> {
        let before: Option<(i64, String)> = request.after(LIST)?;
        let is_first = before.is_none();
        let (raised_at_us, id) = before.unwrap_or_default();
        let id = match id.as_str() {
            "" => Uuid::nil(),
            text => text.parse().map_err(|_| Error::BadPageToken)?,
        };
        let rows = sqlx::query_as!(
            Row,
            r#"select e.limit_event_id, e.threshold, e.settled, e.amount, e.raised_at, e.tries,
                      e.try_at, e.delivered_at, e.failure, b.limit_id, b.subject, b.window_start,
                      b.window_end, s.unit, s.limit_window,
                      coalesce(d.display_name, '') as "display_name!",
                      e.raised_at > turnpike_now() - interval '1 day' as "is_tried!"
               from limit_event e
               join limit_bucket b using (bucket_id)
               join limit_shape s using (limit_id)
               left join limit_definition d using (limit_id)
               where ($1 or (e.raised_at, e.limit_event_id) < ($2, $3))
                 and ($4::text is null or b.limit_id = $4)
                 and (not $5 or e.delivered_at is null)
               order by e.raised_at desc, e.limit_event_id desc limit $6"#,
            is_first,
            from_unix_us(raised_at_us),
            id,
            filter.limit,
            filter.undelivered,
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let items = rows.into_iter().map(ToldEvent::from).collect();
        Ok(request.page(LIST, items, |told: &ToldEvent| {
            (to_unix_us(told.event.raised_at), told.event.id.to_string())
        }))
    }

    /// Notes why an event was not taken.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn limit_event_failed(&self, id: Uuid, failure: &str) -> Result<(), Error> {
        sqlx::query!(
            "update limit_event set failure = left($2, 200) where limit_event_id = $1",
            id,
            failure.replace('\0', "\u{fffd}"),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

struct Row {
    limit_event_id: Uuid,
    threshold: i32,
    settled: i64,
    amount: i64,
    raised_at: OffsetDateTime,
    tries: i32,
    try_at: OffsetDateTime,
    delivered_at: Option<OffsetDateTime>,
    failure: String,
    limit_id: String,
    subject: String,
    window_start: OffsetDateTime,
    window_end: Option<OffsetDateTime>,
    unit: String,
    limit_window: String,
    display_name: String,
    is_tried: bool,
}

impl From<Row> for ToldEvent {
    fn from(row: Row) -> Self {
        let delivery = match row.delivered_at {
            Some(at) => Delivery::Delivered { at },
            None if row.is_tried => Delivery::Pending { try_at: row.try_at },
            None => Delivery::GivenUp,
        };
        Self {
            delivery,
            tries: u32::try_from(row.tries).unwrap_or(0),
            failure: row.failure,
            event: LimitEvent {
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
            },
        }
    }
}
