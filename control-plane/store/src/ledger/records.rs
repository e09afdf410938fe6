//! Single usage records.

use control_plane_core::ledger::Shard;
use control_plane_core::nodes::BootId;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::stored::{from_unix_us, to_unix_us, unsigned};
use crate::{Error, Page, PageRequest, Store};

/// Which records to list; everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFilter {
    pub request_id: Option<String>,
    pub team: Option<String>,
    pub virtual_key: Option<String>,
    /// Admitted from this moment on.
    pub start: Option<OffsetDateTime>,
    /// Admitted before this moment.
    pub end: Option<OffsetDateTime>,
}

/// A record as its node sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    pub shard: Shard,
    pub seq: u64,
    pub received_at: OffsetDateTime,
    /// Name of the node.
    pub node: String,
    /// The encoded `UsageRecord`.
    pub record: Vec<u8>,
}

const LIST: &str = "usage_records";

/// The place of a record in the list: microseconds of admission, boot, shard, sequence.
type Place = (i64, Uuid, i64, i64);

impl Store {
    /// Records, by admission, newest first.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn usage_records(
        &self,
        filter: &RecordFilter,
        request: &PageRequest,
    ) -> Result<Page<StoredRecord>, Error> {
        let last: Option<(i64, String, i64, i64)> = request.after(LIST)?;
        let (admitted_at, boot_id, shard, seq) = before(last)?;
        let rows = sqlx::query!(
            r#"select r.admitted_at, r.boot_id, r.shard, r.seq, r.received_at, r.record,
                      (select node from usage_cursor c
                       where c.boot_id = r.boot_id and c.shard = r.shard) as node
               from usage_record r
               where (r.admitted_at, r.boot_id, r.shard, r.seq) < ($1, $2, $3, $4)
                 and ($5::text is null or r.request_id = $5)
                 and ($6::text is null or r.team_id = $6)
                 and ($7::text is null or r.virtual_key_id = $7)
                 and ($8::timestamptz is null or r.admitted_at >= $8)
                 and ($9::timestamptz is null or r.admitted_at < $9)
               order by r.admitted_at desc, r.boot_id desc, r.shard desc, r.seq desc
               limit $10"#,
            admitted_at,
            boot_id,
            shard,
            seq,
            filter.request_id,
            filter.team,
            filter.virtual_key,
            filter.start,
            filter.end,
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let page = request.page(LIST, rows, |row| {
            let at_us = to_unix_us(row.admitted_at);
            (at_us, row.boot_id.to_string(), row.shard, row.seq)
        });
        let items = page.items.into_iter().map(|row| StoredRecord {
            shard: Shard {
                boot_id: BootId(row.boot_id.into_bytes()),
                number: u32::try_from(row.shard).unwrap_or(u32::MAX),
            },
            seq: unsigned(row.seq),
            received_at: row.received_at,
            node: row.node.unwrap_or_default(),
            record: row.record,
        });
        Ok(Page {
            items: items.collect(),
            next_page_token: page.next_page_token,
        })
    }
}

fn before(
    last: Option<(i64, String, i64, i64)>,
) -> Result<(OffsetDateTime, Uuid, i64, i64), Error> {
    let (at_us, boot_id, shard, seq): Place = match last {
        None => (i64::MAX, Uuid::max(), i64::MAX, i64::MAX),
        Some((at_us, boot_id, shard, seq)) => {
            let boot_id = boot_id.parse().map_err(|_| Error::BadPageToken)?;
            (at_us, boot_id, shard, seq)
        }
    };
    let at = if at_us == i64::MAX {
        time::macros::datetime!(9999-12-31 23:59:59 UTC)
    } else {
        from_unix_us(at_us)
    };
    Ok((at, boot_id, shard, seq))
}
