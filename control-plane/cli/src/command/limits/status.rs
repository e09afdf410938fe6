//! How limits stand, in words.

use std::collections::BTreeMap;

use clap::Args;
use proto::admin::v1 as pb;
use serde::Serialize;

use super::super::Session;
use super::super::{collection, paging};
use super::buckets::{limit_id, limit_name, signed};
use super::worst::{self, WorstView};
use crate::amount::SignedAmount;
use crate::link::Link;
use crate::moment::Moment;
use crate::output::{Format, Output};
use crate::resource::{Limit, LimitSpec, LimitUnit, LimitWindow};

#[derive(Debug, Args)]
pub(crate) struct LimitStatus {
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

    /// Print at most N; 0: everything
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: usize,
}

/// A limit for one subject as `-o json` prints it; money is written as in `25.00usd`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusView<'a> {
    limit: &'a str,
    subject: &'a str,
    unit: LimitUnit,
    window: LimitWindow,
    /// Absent: nobody has used it in this window.
    window_start_time: Option<Moment>,
    reset_time: Option<Moment>,
    amount: SignedAmount,
    settled: SignedAmount,
    held: SignedAmount,
    suspended: SignedAmount,
    unaccounted: SignedAmount,
    remaining: SignedAmount,
    /// Null: the limit is not published.
    overshoot: Option<WorstView<'a>>,
}

impl LimitStatus {
    pub(super) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let link = session.link().await?;
        let limits = match self.id.as_str() {
            "" => collection::list_all::<Limit>(&link, "", 0).await?,
            id => vec![collection::fetch::<Limit>(&link, id).await?],
        };
        let limits: BTreeMap<String, LimitSpec> =
            limits.into_iter().map(|one| (one.id, one.spec)).collect();
        let request = pb::ListLimitStatusesRequest {
            limit: limit_name(&self.id),
            subject: self.subject,
            ..Default::default()
        };
        let listed = list(&link, request, self.limit).await?;
        // One that was made or deleted in between is left out.
        let known = listed.iter().filter_map(|status| {
            let bucket = status.bucket.as_ref()?;
            Some((status, bucket, limits.get(limit_id(bucket))?))
        });
        if session.output.format == Format::Json {
            let views: Vec<_> = known
                .map(|(status, bucket, spec)| view(status, bucket, spec))
                .collect();
            return Ok(session.output.json(&views)?);
        }
        for (at, (status, bucket, spec)) in known.enumerate() {
            if at > 0 {
                session.output.line("")?;
            }
            tell(&mut session.output, status, bucket, spec)?;
        }
        Ok(())
    }
}

async fn list(
    link: &Link,
    request: pb::ListLimitStatusesRequest,
    limit: usize,
) -> anyhow::Result<Vec<pb::LimitStatus>> {
    let listed = paging::collect(limit, async |page_size: i32, page_token: String| {
        let request = pb::ListLimitStatusesRequest {
            page_size,
            page_token,
            ..request.clone()
        };
        let page = link.limits().list_limit_statuses(request).await;
        let page = page.map_err(|status| link.explain("list how limits stand", status.into()))?;
        let page = page.into_inner();
        anyhow::Ok((page.statuses, page.next_page_token))
    });
    Ok(listed.await?.entries)
}

fn tell(
    output: &mut Output<'_>,
    status: &pb::LimitStatus,
    bucket: &pb::Bucket,
    spec: &LimitSpec,
) -> anyhow::Result<()> {
    let amount = |value| signed(Some(spec), value).to_string();
    let id = limit_id(bucket);
    let subject = spec.subjects(&bucket.subject);
    output.line(format_args!("{}: {subject}, {}", plain(id), grant(spec)))?;
    let suspended = match status.unaccounted {
        0 => "held by Envoys that were lost; counts as used until their records arrive".to_owned(),
        lost => format!(
            "held by Envoys that were lost; {} of it was given up on: its records are gone",
            amount(lost)
        ),
    };
    let rows = [
        ("used", bucket.settled, "in the ledger".to_owned()),
        (
            "lent",
            bucket.held,
            "to running Envoys; what they do not use comes back".to_owned(),
        ),
        ("suspended", bucket.suspended, suspended),
        ("left", bucket.remaining, reset(bucket, spec)),
    ];
    let cells = rows.map(|(word, value, note)| (word, amount(value), note));
    let widest = cells.iter().map(|(_, value, _)| value.len()).max();
    let widest = widest.unwrap_or_default();
    for (word, value, note) in cells {
        output.line(format_args!("  {word:<10}  {value:>widest$}  {note}"))?;
    }
    let worst = match &status.overshoot {
        Some(overshoot) => worst::words(overshoot, bucket, spec),
        None => vec!["not known: the limit is not published yet".to_owned()],
    };
    for (at, line) in worst.iter().enumerate() {
        match at {
            0 => output.line(format_args!("  at worst    {line}"))?,
            _ => output.line(format_args!("              - {}", plain(line)))?,
        }
    }
    Ok(())
}

/// `at most 25.00usd a month`.
fn grant(spec: &LimitSpec) -> String {
    let amount = spec.amount;
    let what = match spec.unit {
        LimitUnit::Money => amount.to_string(),
        LimitUnit::InFlight => return format!("at most {amount} requests open at a time"),
        unit => format!("{amount} {unit}"),
    };
    match spec.window {
        LimitWindow::None | LimitWindow::Lifetime => format!("at most {what} for ever"),
        window => format!("at most {what} a {window}"),
    }
}

fn reset(bucket: &pb::Bucket, spec: &LimitSpec) -> String {
    let exceeded = if bucket.remaining < 0 {
        "more than the amount is used or lent; "
    } else {
        ""
    };
    let then = match (Moment::from_wire(bucket.reset_time.as_ref()), spec.window) {
        (Some(reset), _) => format!("full again at {reset}"),
        (None, LimitWindow::Lifetime) => "never full again".to_owned(),
        (None, LimitWindow::None) => "full when no request is open".to_owned(),
        (None, LimitWindow::Second | LimitWindow::Minute) => "flows back all the time".to_owned(),
        (None, _) => "nobody has used it in this window".to_owned(),
    };
    format!("{exceeded}{then}")
}

fn view<'a>(
    status: &'a pb::LimitStatus,
    bucket: &'a pb::Bucket,
    spec: &LimitSpec,
) -> StatusView<'a> {
    let signed = |value| signed(Some(spec), value);
    StatusView {
        limit: limit_id(bucket),
        subject: &bucket.subject,
        unit: spec.unit,
        window: spec.window,
        window_start_time: Moment::from_wire(bucket.window_start_time.as_ref()),
        reset_time: Moment::from_wire(bucket.reset_time.as_ref()),
        amount: signed(bucket.amount),
        settled: signed(bucket.settled),
        held: signed(bucket.held),
        suspended: signed(bucket.suspended),
        unaccounted: signed(status.unaccounted),
        remaining: signed(bucket.remaining),
        overshoot: status
            .overshoot
            .as_ref()
            .map(|overshoot| worst::view(overshoot, bucket, spec)),
    }
}

/// A line that cannot move the cursor: names come from other people.
fn plain(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}
