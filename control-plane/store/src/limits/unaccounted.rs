//! What was lent to processes that were lost, and never came back.

use control_plane_core::nodes::BootId;
use time::OffsetDateTime;

use crate::stored::unsigned;
use crate::{Error, Page, PageRequest, Store};

/// What was lent to a lost process and is in no record so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unaccounted {
    pub limit: String,
    pub subject: String,
    pub window_start: OffsetDateTime,
    pub boot_id: BootId,
    /// Name of its node; empty: the process is forgotten.
    pub node: String,
    pub epoch: u64,
    /// An upper bound, in the limit's unit.
    pub amount: u64,
    /// When the process was lost; none: it ended in order, and records of it are missing.
    pub lost_at: Option<OffsetDateTime>,
}

const LIST: &str = "unaccounted";

impl Store {
    /// What was lent to lost processes and is in no record so far, of one limit or of all, in the
    /// order of buckets.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn unaccounted(
        &self,
        limit: Option<&str>,
        request: &PageRequest,
    ) -> Result<Page<Unaccounted>, Error> {
        let after: Option<(i64, String, i64)> = request.after(LIST)?;
        let (bucket_id, boot_id, epoch) = after.unwrap_or((0, String::new(), 0));
        let boot_id = match boot_id.as_str() {
            "" => uuid::Uuid::nil(),
            text => text.parse().map_err(|_| Error::BadPageToken)?,
        };
        let rows = sqlx::query!(
            r#"select l.bucket_id, l.boot_id, l.epoch, l.unaccounted, l.lost_at, b.limit_id,
                      b.subject, b.window_start, coalesce(n.node, '') as "node!"
               from limit_lease l join limit_bucket b using (bucket_id)
               left join node_boot n on n.boot_id = l.boot_id
               where l.unaccounted > 0 and (l.bucket_id, l.boot_id, l.epoch) > ($1, $2, $3)
                 and ($4::text is null or b.limit_id = $4)
               order by l.bucket_id, l.boot_id, l.epoch limit $5"#,
            bucket_id,
            boot_id,
            epoch,
            limit,
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let page = request.page(LIST, rows, |row| {
            (row.bucket_id, row.boot_id.to_string(), row.epoch)
        });
        let items = page.items.into_iter().map(|row| Unaccounted {
            limit: row.limit_id,
            subject: row.subject,
            window_start: row.window_start,
            boot_id: BootId(row.boot_id.into_bytes()),
            node: row.node,
            epoch: unsigned(row.epoch),
            amount: unsigned(row.unaccounted),
            lost_at: row.lost_at,
        });
        Ok(Page {
            items: items.collect(),
            next_page_token: page.next_page_token,
        })
    }
}
