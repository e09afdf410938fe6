//! `turnpike usage`.

use clap::{Args, Subcommand, ValueEnum};
use proto::admin::v1 as pb;

use super::Session;
use super::paging;
use crate::link::Link;
use crate::moment::{Moment, Relative};
use crate::output::Format;
use crate::presence::Presence;
use crate::resource::Kind;
use crate::usage::record::Record;
use crate::usage::{record, sums};

mod reprice;

use reprice::Reprice;

#[derive(Debug, Subcommand)]
pub(crate) enum UsageCommand {
    /// Sum requests, tokens and money over exact 15-minute roll-ups
    ///
    /// Token totals are inclusive: input covers cached input and cache writes, output covers
    /// reasoning. Money is USD, exact; attempts without a known price are counted as unpriced and
    /// add nothing.
    #[command(after_help = "\
Examples:
  turnpike usage query
  turnpike usage query --by team,model --since 7d
  turnpike usage query --by day --team acme --since 2026-12-01 --until 2027-01-01
  turnpike usage query --by key -o json | jq -r '.[] | [.key, .costUsd] | @tsv'")]
    Query(QueryUsage),
    /// List single usage records, newest first
    #[command(after_help = "\
Examples:
  turnpike usage records --request-id 4f1c... -o json
  turnpike usage records --key acme-ci --since 1h")]
    Records(ListRecords),
    /// Enter corrections for what attempts cost by the current prices
    ///
    /// What was booked stays: the difference to it, and to earlier corrections, is shown beside it
    /// by `usage query`. Limits are not moved. Attempts whose price is still unknown are left
    /// alone, and so are those whose records are gone, where their sums do not tell the price.
    #[command(after_help = "\
Examples:
  turnpike usage reprice --since 7d --provider openai --reason 'price per 1k entered per 1M' --dry-run
  turnpike usage reprice --since 2026-12-01 --until 2026-12-03 --reason 'new price list' \\
    --request-id dec-prices")]
    Reprice(Reprice),
}

#[derive(Debug, Args)]
pub(crate) struct QueryUsage {
    /// What to group by; several with commas [default: one sum]
    #[arg(long, value_enum, value_name = "DIMENSION", value_delimiter = ',')]
    by: Vec<Dimension>,

    #[command(flatten)]
    span: SpanArgs,

    /// Only this team
    #[arg(long, value_name = "TEAM")]
    team: Option<String>,

    /// Only this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Only this public model name
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListRecords {
    /// Only the exchange with this `x-request-id`
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    request_id: String,

    /// Only this team
    #[arg(long, value_name = "TEAM")]
    team: Option<String>,

    /// Only this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Admitted at or after: a length before now (24h, 7d; units w, d, h, m, s), RFC 3339, or a
    /// UTC date [default: ever]
    #[arg(long, value_name = "WHEN")]
    since: Option<Relative>,

    /// Admitted before, written as for --since [default: now]
    #[arg(long, value_name = "WHEN")]
    until: Option<Relative>,

    /// Print at most N; 0: everything
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, Args)]
struct SpanArgs {
    /// From: a length before now (24h, 7d; units w, d, h, m, s), RFC 3339, or a UTC date; rounded
    /// down to its 15-minute slot
    #[arg(long, value_name = "WHEN", default_value = "24h")]
    since: Relative,

    /// Up to, written as for --since [default: now]
    #[arg(long, value_name = "WHEN")]
    until: Option<Relative>,
}

/// What usage can be grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dimension {
    Team,
    Key,
    Model,
    Provider,
    /// 15-minute slot of admission, UTC
    Slot,
    /// UTC day of admission
    Day,
}

// === impl UsageCommand ===

impl UsageCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Query(args) => args.run(session).await,
            Self::Records(args) => args.run(session).await,
            Self::Reprice(args) => args.run(session).await,
        }
    }
}

// === impl QueryUsage ===

impl QueryUsage {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let now = Moment::now();
        let until = self.span.until.map(|until| until.before(now)).transpose()?;
        let request = pb::QueryUsageRequest {
            start_time: Some(self.span.since.before(now)?.to_wire()),
            end_time: until.map(Moment::to_wire),
            group_by: self
                .by
                .iter()
                .map(|dimension| dimension.to_wire())
                .collect(),
            team: named("teams/", self.team.as_deref()),
            virtual_key: named("virtualKeys/", self.key.as_deref()),
            model: named("models/", self.model.as_deref()),
        };
        let link = session.link().await?;
        let answer = link.usage().query_usage(request).await;
        let answer = answer.map_err(|status| link.explain("query usage", status.into()))?;
        let rows = answer.into_inner().rows;
        match session.output.format {
            Format::Table => session.output.table(&sums::table(&self.by, &rows))?,
            Format::Json => session.output.json(&sums::views(&self.by, &rows))?,
        }
        let asked = [
            (Kind::Team, self.team),
            (Kind::VirtualKey, self.key),
            (Kind::Model, self.model),
        ];
        note_unknown(&link, session, asked).await
    }
}

// === impl ListRecords ===

impl ListRecords {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let records = self.list(session).await?;
        match session.output.format {
            Format::Table => session.output.table(&record::table(&records))?,
            Format::Json => session.output.json(&records)?,
        }
        Ok(())
    }

    async fn list(self, session: &mut Session<'_>) -> anyhow::Result<Vec<Record>> {
        let now = Moment::now();
        let wire = |when: Option<Relative>| {
            when.map(|when| when.before(now).map(Moment::to_wire))
                .transpose()
        };
        let limit = self.limit;
        let request = pb::ListUsageRecordsRequest {
            request_id: self.request_id,
            team: named("teams/", self.team.as_deref()),
            virtual_key: named("virtualKeys/", self.key.as_deref()),
            start_time: wire(self.since)?,
            end_time: wire(self.until)?,
            ..Default::default()
        };
        let link = session.link().await?;
        let asked = [(Kind::Team, self.team), (Kind::VirtualKey, self.key)];
        note_unknown(&link, session, asked).await?;
        let listed = paging::collect(limit, async |page_size: i32, page_token: String| {
            let request = pb::ListUsageRecordsRequest {
                page_size,
                page_token,
                ..request.clone()
            };
            let page = link.usage().list_usage_records(request).await;
            let page = page.map_err(|status| link.explain("list usage records", status.into()))?;
            let page = page.into_inner();
            let records: anyhow::Result<_> = page.records.iter().map(Record::decode).collect();
            anyhow::Ok((records?, page.next_page_token))
        });
        listed.await?.newest(&mut session.output)
    }
}

/// Usage outlives whom it is of, so that a name that nobody has is told and no error.
async fn note_unknown(
    link: &Link,
    session: &mut Session<'_>,
    asked: impl IntoIterator<Item = (Kind, Option<String>)>,
) -> anyhow::Result<()> {
    let mut presence = Presence::new(link);
    for (kind, id) in asked {
        presence
            .note_absent(&mut session.output, kind, id.as_deref())
            .await?;
    }
    Ok(())
}

fn named(prefix: &str, id: Option<&str>) -> String {
    id.map(|id| format!("{prefix}{id}")).unwrap_or_default()
}

// === impl Dimension ===

impl Dimension {
    fn to_wire(self) -> i32 {
        let dimension = match self {
            Self::Team => pb::UsageDimension::Team,
            Self::Key => pb::UsageDimension::VirtualKey,
            Self::Model => pb::UsageDimension::Model,
            Self::Provider => pb::UsageDimension::Provider,
            Self::Slot => pb::UsageDimension::Slot,
            Self::Day => pb::UsageDimension::Day,
        };
        dimension.into()
    }
}
