//! What happened to limits: thresholds that were passed, and what was never accounted for.

use std::collections::BTreeMap;

use clap::Args;
use proto::admin::v1 as pb;
use proto::admin::v1::DeliveryState;
use serde::Serialize;

use super::super::Session;
use super::super::collection;
use super::super::paging::{self, Listed};
use super::buckets::{limit_name, signed};
use crate::amount::SignedAmount;
use crate::link::Link;
use crate::moment::Moment;
use crate::output::Format;
use crate::resource::{LIMIT_PREFIX, Limit, LimitSpec};
use crate::table::{Column, Table};

const EVENT_COLUMNS: &[Column] = &[
    Column::text("TIME"),
    Column::text("LIMIT"),
    Column::text("SUBJECT"),
    Column::number("PERCENT"),
    Column::number("SETTLED"),
    Column::number("AMOUNT"),
    Column::text("DELIVERY"),
    Column::number("TRIES"),
    Column::text("FAILURE"),
];
const LOST_COLUMNS: &[Column] = &[
    Column::text("LIMIT"),
    Column::text("SUBJECT"),
    Column::text("WINDOW START"),
    Column::number("AT MOST"),
    Column::text("NODE"),
    Column::text("BOOT"),
    Column::text("LOST"),
];

#[derive(Debug, Args)]
pub(crate) struct ListEvents {
    /// Id of the limit [default: every limit]
    #[arg(default_value = "", hide_default_value = true)]
    id: String,

    /// Only those that no webhook has taken
    #[arg(long)]
    undelivered: bool,

    /// Print at most N; 0: everything
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct ListUnaccounted {
    /// Id of the limit [default: every limit]
    #[arg(default_value = "", hide_default_value = true)]
    id: String,

    /// Print at most N; 0: everything
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: usize,
}

/// An event as `-o json` prints it; money is written as in `25.00usd`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventView<'a> {
    id: &'a str,
    limit: &'a str,
    subject: &'a str,
    window_start_time: Option<Moment>,
    reset_time: Option<Moment>,
    threshold: u32,
    settled: SignedAmount,
    amount: SignedAmount,
    raise_time: Option<Moment>,
    state: &'static str,
    tries: u32,
    failure: &'a str,
    next_try_time: Option<Moment>,
    delivery_time: Option<Moment>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LostView<'a> {
    limit: &'a str,
    subject: &'a str,
    window_start_time: Option<Moment>,
    /// At most this was used.
    amount: SignedAmount,
    node: &'a str,
    boot_id: String,
    epoch: u64,
    loss_time: Option<Moment>,
}

/// Limits that are there, by id; amounts of others are plain numbers.
type Limits = BTreeMap<String, LimitSpec>;

// === impl ListEvents ===

impl ListEvents {
    pub(super) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let link = session.link().await?;
        let limits = limits(&link).await?;
        let listed = self.list(&link).await?;
        let events = listed.newest(&mut session.output)?;
        match session.output.format {
            Format::Json => {
                let views: Vec<_> = events.iter().map(|event| view(&limits, event)).collect();
                session.output.json(&views)?;
            }
            Format::Table => {
                let mut table = Table::new(EVENT_COLUMNS);
                for event in &events {
                    table.push(row(&limits, event));
                }
                session.output.table(&table)?;
            }
        }
        Ok(())
    }

    async fn list(&self, link: &Link) -> anyhow::Result<Listed<pb::LimitEvent>> {
        paging::collect(self.limit, async |page_size: i32, page_token: String| {
            let request = pb::ListLimitEventsRequest {
                limit: limit_name(&self.id),
                undelivered: self.undelivered,
                page_size,
                page_token,
            };
            let page = link.limits().list_limit_events(request).await;
            let page = page.map_err(|status| link.explain("list limit events", status.into()))?;
            let page = page.into_inner();
            anyhow::Ok((page.events, page.next_page_token))
        })
        .await
    }
}

// === impl ListUnaccounted ===

impl ListUnaccounted {
    pub(super) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let link = session.link().await?;
        let limits = limits(&link).await?;
        let lost = self.list(&link).await?;
        match session.output.format {
            Format::Json => {
                let views: Vec<_> = lost.iter().map(|one| lost_view(&limits, one)).collect();
                session.output.json(&views)?;
            }
            Format::Table => {
                let mut table = Table::new(LOST_COLUMNS);
                for one in &lost {
                    table.push(lost_row(&limits, one));
                }
                session.output.table(&table)?;
            }
        }
        Ok(())
    }

    async fn list(&self, link: &Link) -> anyhow::Result<Vec<pb::Unaccounted>> {
        let listed = paging::collect(self.limit, async |page_size: i32, page_token: String| {
            let request = pb::ListUnaccountedRequest {
                limit: limit_name(&self.id),
                page_size,
                page_token,
            };
            let page = link.limits().list_unaccounted(request).await;
            let page = page.map_err(|status| link.explain("list what was lost", status.into()))?;
            let page = page.into_inner();
            anyhow::Ok((page.unaccounted, page.next_page_token))
        });
        Ok(listed.await?.entries)
    }
}

async fn limits(link: &Link) -> anyhow::Result<Limits> {
    let listed = collection::list_all::<Limit>(link, "", 0).await?;
    Ok(listed.into_iter().map(|one| (one.id, one.spec)).collect())
}

fn id_of(name: &str) -> &str {
    name.strip_prefix(LIMIT_PREFIX).unwrap_or(name)
}

fn subject_of(limits: &Limits, id: &str, subject: &str) -> String {
    let spec = limits.get(id);
    spec.map_or_else(|| subject.to_owned(), |spec| spec.subjects(subject))
}

fn time(moment: Option<Moment>) -> String {
    moment.map(|moment| moment.to_string()).unwrap_or_default()
}

fn state_word(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Unspecified => "unknown",
        DeliveryState::Pending => "pending",
        DeliveryState::Delivered => "delivered",
        DeliveryState::GivenUp => "given-up",
    }
}

fn row(limits: &Limits, event: &pb::LimitEvent) -> Vec<String> {
    let id = id_of(&event.limit);
    let amount = |value| signed(limits.get(id), value).to_string();
    vec![
        time(Moment::from_wire(event.raise_time.as_ref())),
        id.to_owned(),
        subject_of(limits, id, &event.subject),
        event.threshold.to_string(),
        amount(event.settled),
        amount(event.amount),
        state_word(event.state()).to_owned(),
        event.tries.to_string(),
        event.failure.clone(),
    ]
}

fn view<'a>(limits: &Limits, event: &'a pb::LimitEvent) -> EventView<'a> {
    let limit = id_of(&event.limit);
    let spec = limits.get(limit);
    EventView {
        id: &event.id,
        limit,
        subject: &event.subject,
        window_start_time: Moment::from_wire(event.window_start_time.as_ref()),
        reset_time: Moment::from_wire(event.reset_time.as_ref()),
        threshold: event.threshold,
        settled: signed(spec, event.settled),
        amount: signed(spec, event.amount),
        raise_time: Moment::from_wire(event.raise_time.as_ref()),
        state: state_word(event.state()),
        tries: event.tries,
        failure: &event.failure,
        next_try_time: Moment::from_wire(event.next_try_time.as_ref()),
        delivery_time: Moment::from_wire(event.delivery_time.as_ref()),
    }
}

fn lost_row(limits: &Limits, lost: &pb::Unaccounted) -> Vec<String> {
    let id = id_of(&lost.limit);
    vec![
        id.to_owned(),
        subject_of(limits, id, &lost.subject),
        time(Moment::from_wire(lost.window_start_time.as_ref())),
        signed(limits.get(id), lost.amount).to_string(),
        lost.node.clone(),
        digits(&lost.boot_id),
        time(Moment::from_wire(lost.loss_time.as_ref())),
    ]
}

fn lost_view<'a>(limits: &Limits, lost: &'a pb::Unaccounted) -> LostView<'a> {
    let limit = id_of(&lost.limit);
    LostView {
        limit,
        subject: &lost.subject,
        window_start_time: Moment::from_wire(lost.window_start_time.as_ref()),
        amount: signed(limits.get(limit), lost.amount),
        node: &lost.node,
        boot_id: digits(&lost.boot_id),
        epoch: lost.epoch,
        loss_time: Moment::from_wire(lost.loss_time.as_ref()),
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
