//! `turnpike nodes` and `turnpike wait`: what runs where.

use clap::{Args, Subcommand};
use proto::admin::v1 as pb;
use serde::Serialize;

use super::Session;
use crate::moment::Moment;
use crate::output::Format;
use crate::table::{Column, Table};
use crate::usage::hex;
use crate::wait;

#[derive(Debug, Subcommand)]
pub(crate) enum NodesCommand {
    /// List every node with the config version it runs
    #[command(after_help = "\
Examples:
  turnpike nodes list
  turnpike nodes list -o json | jq -r '.nodes[] | select(.connected | not) | .name'")]
    List,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  turnpike wait
  turnpike wait 12 --timeout 60 -o json")]
pub(crate) struct WaitCommand {
    /// Config version, as other commands print it; 0: the newest
    #[arg(value_name = "VERSION", default_value_t = 0)]
    config_version: u64,

    /// Seconds to wait at most, 1-60
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=60)
    )]
    timeout: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodesView<'a> {
    config_version: u64,
    unpublished: &'a [String],
    nodes: Vec<NodeView<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeView<'a> {
    name: &'a str,
    boot_id: String,
    connected: bool,
    acked_version: u64,
    envoy_version: &'a str,
    connect_time: Option<Moment>,
    last_seen_time: Option<Moment>,
    rejected: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitView<'a> {
    config_version: u64,
    connected: u32,
    acked: u32,
    disconnected: u32,
    elapsed_ms: u128,
    pending: &'a [String],
    rejected: &'a [String],
}

// === impl NodesCommand ===

impl NodesCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let Self::List = self;
        let link = session.link().await?;
        let answer = link.config().list_nodes(pb::ListNodesRequest {}).await;
        let answer = answer.map_err(|status| link.explain("list nodes", status.into()))?;
        let answer = answer.into_inner();
        let output = &mut session.output;
        if output.format == Format::Json {
            output.json(&NodesView {
                config_version: answer.config_version,
                unpublished: &answer.unpublished,
                nodes: answer.nodes.iter().map(view).collect(),
            })?;
            return Ok(());
        }
        output.table(&table(&answer, Moment::now()))?;
        output.note(format_args!("newest config: {}", answer.config_version))?;
        for reason in &answer.unpublished {
            output.note(format_args!("not published: {reason}"))?;
        }
        Ok(())
    }
}

fn view(node: &pb::Node) -> NodeView<'_> {
    NodeView {
        name: &node.name,
        boot_id: hex(&node.boot_id),
        connected: node.connected,
        acked_version: node.acked_version,
        envoy_version: &node.envoy_version,
        connect_time: Moment::from_wire(node.connect_time.as_ref()),
        last_seen_time: Moment::from_wire(node.last_seen_time.as_ref()),
        rejected: &node.rejected,
    }
}

fn table(answer: &pb::ListNodesResponse, now: Moment) -> Table {
    let mut table = Table::new(&[
        Column::text("NODE"),
        Column::text("STATE"),
        Column::number("CONFIG"),
        Column::text("ENVOY"),
        Column::text("SEEN"),
        Column::text("REJECTED"),
    ]);
    for node in &answer.nodes {
        let state = match (node.connected, node.acked_version >= answer.config_version) {
            (false, _) => "disconnected",
            (true, false) => "behind",
            (true, true) => "in sync",
        };
        let seen = Moment::from_wire(node.last_seen_time.as_ref());
        table.push(vec![
            node.name.clone(),
            state.to_owned(),
            node.acked_version.to_string(),
            node.envoy_version.clone(),
            seen.map(|seen| seen.age(now)).unwrap_or_default(),
            node.rejected.join("; "),
        ]);
    }
    table
}

// === impl WaitCommand ===

impl WaitCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let link = session.link().await?;
        let answer = wait::ask(&link, self.config_version, self.timeout).await?;
        match session.output.format {
            Format::Table => session.output.line(wait::summary(&answer))?,
            Format::Json => session.output.json(&WaitView {
                config_version: answer.config_version,
                connected: answer.connected,
                acked: answer.acked,
                disconnected: answer.disconnected,
                elapsed_ms: wait::elapsed(&answer).as_millis(),
                pending: &answer.pending,
                rejected: &answer.rejected,
            })?,
        }
        wait::verdict(&answer)
    }
}
