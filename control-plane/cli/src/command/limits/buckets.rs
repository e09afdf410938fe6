//! Limits with their buckets, and corrections.

use std::collections::BTreeMap;

use clap::Args;
use proto::admin::v1 as pb;
use serde::Serialize;

use super::super::Session;
use super::super::{collection, paging};
use crate::amount::SignedAmount;
use crate::link::Link;
use crate::moment::Moment;
use crate::output::Format;
use crate::resource::{Collection, LIMIT_PREFIX, Limit, LimitSpec, LimitUnit, Stored};
use crate::table::{Column, Table};

const COLUMNS: &[Column] = &[
    Column::text("LIMIT"),
    Column::text("SUBJECT"),
    Column::text("UNIT"),
    Column::text("WINDOW"),
    Column::number("AMOUNT"),
    Column::number("SETTLED"),
    Column::number("HELD"),
    Column::number("SUSPENDED"),
    Column::number("REMAINING"),
    Column::text("RESET"),
];

#[derive(Debug, Args)]
pub(crate) struct ListBuckets {
    /// Id of the limit [default: every limit]
    #[arg(default_value = "", hide_default_value = true)]
    id: String,

    /// Only this subject: a team or key id, or TEAM/USER
    #[arg(
        long,
        value_name = "SUBJECT",
        default_value = "",
        hide_default_value = true
    )]
    subject: String,

    /// Past windows too
    #[arg(long)]
    past: bool,

    /// Those of deleted limits too
    #[arg(long)]
    all: bool,

    /// Print at most N; 0: everything
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct AdjustBucket {
    /// Id of the limit
    id: String,

    /// Whose bucket: a team or key id, or TEAM/USER [default: that of everything]
    #[arg(
        long,
        value_name = "SUBJECT",
        default_value = "",
        hide_default_value = true
    )]
    subject: String,

    /// Added to what is settled; below zero, as in --delta=-5usd, gives room back
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    delta: SignedAmount,

    /// Why; kept with the correction
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// A bucket as `-o json` prints it; money is written as in `25.00usd`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BucketView<'a> {
    limit: &'a str,
    subject: &'a str,
    unit: Option<LimitUnit>,
    window_start_time: Option<Moment>,
    reset_time: Option<Moment>,
    amount: SignedAmount,
    settled: SignedAmount,
    held: SignedAmount,
    suspended: SignedAmount,
    remaining: SignedAmount,
}

/// Limits by id, as far as buckets name them.
type Limits = BTreeMap<String, LimitSpec>;

// === impl ListBuckets ===

impl ListBuckets {
    pub(super) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let link = session.link().await?;
        let limits = match self.id.as_str() {
            "" => collection::list_all::<Limit>(&link, "", 0).await?,
            id if self.all => match Limit::get(&link, id).await {
                Ok(stored) => vec![stored],
                Err(error) if error.is_not_found() => Vec::new(),
                Err(error) => return Err(link.explain(format_args!("get limit {id}"), error)),
            },
            id => vec![collection::fetch::<Limit>(&link, id).await?],
        };
        let limits: Limits = limits.into_iter().map(|one| (one.id, one.spec)).collect();
        let request = pb::ListBucketsRequest {
            limit: limit_name(&self.id),
            subject: self.subject,
            include_past: self.past,
            ..Default::default()
        };
        // What is left out makes room for others, so all are asked for.
        let asked = if self.all { self.limit } else { 0 };
        let mut buckets = list(&link, request, asked).await?;
        if !self.all {
            buckets.retain(|bucket| limits.contains_key(limit_id(bucket)));
            buckets.truncate(if self.limit == 0 {
                usize::MAX
            } else {
                self.limit
            });
        }
        print(session, &limits, &buckets)
    }
}

// === impl AdjustBucket ===

impl AdjustBucket {
    pub(super) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let link = session.link().await?;
        let Stored { id, spec, .. } = collection::fetch::<Limit>(&link, &self.id).await?;
        let request = pb::AdjustBucketRequest {
            limit: limit_name(&id),
            subject: self.subject,
            delta: self.delta.in_unit(spec.unit)?,
            reason: self.reason,
        };
        let adjusted = link.limits().adjust_bucket(request).await;
        let doing = format_args!("adjust {}", Limit::KIND.sentence(&id));
        let bucket = adjusted.map_err(|status| link.explain(doing, status.into()))?;
        let limits = Limits::from([(id, spec)]);
        let bucket = bucket.into_inner();
        match session.output.format {
            Format::Json => session.output.json(&view(&limits, &bucket))?,
            Format::Table => session.output.table(&table(&limits, [&bucket]))?,
        }
        Ok(())
    }
}

/// Limits as documents, or in a table with their buckets.
pub(super) async fn list_limits(session: &mut Session<'_>, limit: usize) -> anyhow::Result<()> {
    let link = session.link().await?;
    let listed = collection::list_all::<Limit>(&link, "", limit).await?;
    if session.output.format == Format::Json {
        let views: Vec<_> = listed
            .iter()
            .map(|stored| stored.view(Limit::KIND, None))
            .collect();
        return Ok(session.output.json(&views)?);
    }
    let buckets = list(&link, pb::ListBucketsRequest::default(), 0).await?;
    let mut table = Table::new(COLUMNS);
    for Stored { id, spec, .. } in &listed {
        let name = limit_name(id);
        let mut own = buckets.iter().filter(|b| b.limit == name).peekable();
        if own.peek().is_none() {
            table.push(unused(id, spec));
        }
        for bucket in own {
            table.push(row(id, Some(spec), bucket));
        }
    }
    Ok(session.output.table(&table)?)
}

async fn list(
    link: &Link,
    request: pb::ListBucketsRequest,
    limit: usize,
) -> anyhow::Result<Vec<pb::Bucket>> {
    let listed = paging::collect(limit, async |page_size: i32, page_token: String| {
        let request = pb::ListBucketsRequest {
            page_size,
            page_token,
            ..request.clone()
        };
        let page = link.limits().list_buckets(request).await;
        let page = page.map_err(|status| link.explain("list buckets", status.into()))?;
        let page = page.into_inner();
        anyhow::Ok((page.buckets, page.next_page_token))
    });
    Ok(listed.await?.entries)
}

fn print(session: &mut Session<'_>, limits: &Limits, buckets: &[pb::Bucket]) -> anyhow::Result<()> {
    match session.output.format {
        Format::Json => {
            let views: Vec<_> = buckets.iter().map(|one| view(limits, one)).collect();
            session.output.json(&views)?;
        }
        Format::Table => session.output.table(&table(limits, buckets))?,
    }
    Ok(())
}

fn table<'a>(limits: &Limits, buckets: impl IntoIterator<Item = &'a pb::Bucket>) -> Table {
    let mut table = Table::new(COLUMNS);
    for bucket in buckets {
        let id = limit_id(bucket);
        table.push(row(id, limits.get(id), bucket));
    }
    table
}

/// A bucket of a limit; of one that was deleted only numbers are known.
fn row(id: &str, spec: Option<&LimitSpec>, bucket: &pb::Bucket) -> Vec<String> {
    let amount = |value| signed(spec, value).to_string();
    let reset = Moment::from_wire(bucket.reset_time.as_ref());
    vec![
        id.to_owned(),
        spec.map_or_else(
            || bucket.subject.clone(),
            |spec| spec.subjects(&bucket.subject),
        ),
        spec.map(|spec| spec.unit.to_string()).unwrap_or_default(),
        spec.map(|spec| spec.window.to_string()).unwrap_or_default(),
        amount(bucket.amount),
        amount(bucket.settled),
        amount(bucket.held),
        amount(bucket.suspended),
        amount(bucket.remaining),
        reset.map(|reset| reset.to_string()).unwrap_or_default(),
    ]
}

/// A limit that nobody has used in its window.
fn unused(id: &str, spec: &LimitSpec) -> Vec<String> {
    let nothing = signed(Some(spec), 0).to_string();
    vec![
        id.to_owned(),
        spec.subjects(&spec.subject_id),
        spec.unit.to_string(),
        spec.window.to_string(),
        spec.amount.to_string(),
        nothing.clone(),
        nothing.clone(),
        nothing,
        spec.amount.to_string(),
        String::new(),
    ]
}

fn view<'a>(limits: &Limits, bucket: &'a pb::Bucket) -> BucketView<'a> {
    let limit = limit_id(bucket);
    let spec = limits.get(limit);
    BucketView {
        limit,
        subject: &bucket.subject,
        unit: spec.map(|spec| spec.unit),
        window_start_time: Moment::from_wire(bucket.window_start_time.as_ref()),
        reset_time: Moment::from_wire(bucket.reset_time.as_ref()),
        amount: signed(spec, bucket.amount),
        settled: signed(spec, bucket.settled),
        held: signed(spec, bucket.held),
        suspended: signed(spec, bucket.suspended),
        remaining: signed(spec, bucket.remaining),
    }
}

pub(super) fn signed(spec: Option<&LimitSpec>, value: i64) -> SignedAmount {
    SignedAmount::from_wire(spec.map_or(LimitUnit::Tokens, |spec| spec.unit), value)
}

pub(super) fn limit_id(bucket: &pb::Bucket) -> &str {
    let name = bucket.limit.as_str();
    name.strip_prefix(LIMIT_PREFIX).unwrap_or(name)
}

pub(super) fn limit_name(id: &str) -> String {
    match id {
        "" => String::new(),
        id => format!("{LIMIT_PREFIX}{id}"),
    }
}
