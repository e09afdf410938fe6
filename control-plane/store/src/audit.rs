//! What was changed, by whom, when.

use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::stored::{signed, unsigned};
use crate::{Error, Page, PageRequest, Store};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: OffsetDateTime,
    pub actor: String,
    pub method: String,
    pub resource: String,
    pub config_version: u64,
    /// The resource after the change as JSON, without secrets; empty after a deletion.
    pub state: String,
}

/// A change to be written.
pub(crate) struct Entry<'a> {
    pub(crate) actor: &'a str,
    pub(crate) method: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) config_version: u64,
    pub(crate) state: &'a str,
}

/// Writes a change down, in the transaction that makes it.
pub(crate) async fn write(tx: &mut PgConnection, entry: &Entry<'_>) -> Result<(), Error> {
    sqlx::query!(
        "insert into audit_entry (actor, method, resource, config_version, state)
         values ($1, $2, $3, $4, $5)",
        entry.actor,
        entry.method,
        entry.resource,
        signed(entry.config_version),
        entry.state,
    )
    .execute(tx)
    .await?;
    Ok(())
}

const LIST: &str = "audit_entries";

impl Store {
    /// Changes, newest first.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn audit_entries(&self, request: &PageRequest) -> Result<Page<AuditEntry>, Error> {
        let before: Option<i64> = request.after(LIST)?;
        let rows = sqlx::query!(
            "select audit_entry_id, occurred_at, actor, method, resource, config_version, state
             from audit_entry where audit_entry_id < $1
             order by audit_entry_id desc limit $2",
            before.unwrap_or(i64::MAX),
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let page = request.page(LIST, rows, |row| row.audit_entry_id);
        let items = page.items.into_iter().map(|row| AuditEntry {
            at: row.occurred_at,
            actor: row.actor,
            method: row.method,
            resource: row.resource,
            config_version: unsigned(row.config_version),
            state: row.state,
        });
        Ok(Page {
            items: items.collect(),
            next_page_token: page.next_page_token,
        })
    }

    /// When a config version was published; none for a version that was not, or is not known.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn published_at(&self, version: u64) -> Result<Option<OffsetDateTime>, Error> {
        let row = sqlx::query!(
            "select min(occurred_at) as at from audit_entry where config_version = $1",
            signed(version),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(row.at)
    }
}
