//! `turnpike audit`.

use clap::{Args, Subcommand};
use proto::admin::v1 as pb;
use serde::Serialize;
use serde_json::Value;

use super::Session;
use super::paging;
use crate::moment::Moment;
use crate::output::Format;
use crate::table::{Column, Table};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List changes, newest first
    #[command(after_help = "\
Examples:
  turnpike audit list --limit 20
  turnpike audit list --limit 0 -o json | jq '.[] | select(.resource == \"teams/acme\")'")]
    List(ListAudit),
}

#[derive(Debug, Args)]
pub(crate) struct ListAudit {
    /// Print at most N; 0: everything
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryView<'a> {
    time: Option<Moment>,
    actor: &'a str,
    method: &'a str,
    resource: &'a str,
    config_version: u64,
    /// The resource after the change; null after a deletion.
    state: Value,
}

impl AuditCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let Self::List(ListAudit { limit }) = self;
        let entries = list(session, limit).await?;
        match session.output.format {
            Format::Json => {
                let views: Vec<EntryView<'_>> = entries.iter().map(view).collect();
                session.output.json(&views)?;
            }
            Format::Table => session.output.table(&table(&entries))?,
        }
        Ok(())
    }
}

async fn list(session: &mut Session<'_>, limit: usize) -> anyhow::Result<Vec<pb::AuditEntry>> {
    let link = session.link().await?;
    let listed = paging::collect(limit, async |page_size: i32, page_token: String| {
        let request = pb::ListAuditEntriesRequest {
            page_size,
            page_token,
        };
        let page = link.config().list_audit_entries(request).await;
        let page = page.map_err(|status| link.explain("list audit entries", status.into()))?;
        let page = page.into_inner();
        anyhow::Ok((page.entries, page.next_page_token))
    });
    listed.await?.newest(&mut session.output)
}

fn view(entry: &pb::AuditEntry) -> EntryView<'_> {
    let state = match entry.state.as_str() {
        "" => Value::Null,
        state => serde_json::from_str(state).unwrap_or_else(|_| Value::from(state)),
    };
    EntryView {
        time: Moment::from_wire(entry.time.as_ref()),
        actor: &entry.actor,
        method: &entry.method,
        resource: &entry.resource,
        config_version: entry.config_version,
        state,
    }
}

fn table(entries: &[pb::AuditEntry]) -> Table {
    let mut table = Table::new(&[
        Column::text("TIME"),
        Column::text("ACTOR"),
        Column::text("METHOD"),
        Column::text("RESOURCE"),
        Column::number("CONFIG"),
    ]);
    for entry in entries {
        let time = Moment::from_wire(entry.time.as_ref());
        table.push(vec![
            time.map(|time| time.to_string()).unwrap_or_default(),
            entry.actor.clone(),
            entry.method.clone(),
            entry.resource.clone(),
            entry.config_version.to_string(),
        ]);
    }
    table
}
