//! Waiting until every connected node runs a config version.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use proto::admin::v1 as pb;
use tonic::Request;

use crate::link::Link;
use crate::moment::brief;
use crate::output::Output;

/// Seconds that `--wait` alone stands for.
const DEFAULT_WAIT_S: &str = "10";
/// What the answer itself may take beyond the wait.
const ANSWER_SLACK: Duration = Duration::from_secs(5);

/// `--wait`, for every command that changes the config.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WaitArgs {
    /// Wait until every connected node runs the change, at most SECONDS (1-60; 10 when none is
    /// given); exit code 1 names the nodes that do not
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = DEFAULT_WAIT_S,
        value_parser = clap::value_parser!(u32).range(1..=60)
    )]
    pub(crate) wait: Option<u32>,
}

impl WaitArgs {
    /// Does nothing unless the user asked to wait.
    pub(crate) async fn settle(
        self,
        link: &Link,
        output: &mut Output<'_>,
        config_version: u64,
    ) -> anyhow::Result<()> {
        let Some(timeout_s) = self.wait else {
            return Ok(());
        };
        let answer = ask(link, config_version, timeout_s).await?;
        output.note(summary(&answer))?;
        verdict(&answer)
    }
}

/// Asks the control plane to answer when the version (0: the newest) is everywhere.
pub(crate) async fn ask(
    link: &Link,
    config_version: u64,
    timeout_s: u32,
) -> anyhow::Result<pb::WaitResponse> {
    let mut request = Request::new(pb::WaitRequest {
        config_version,
        timeout: Some(prost_types::Duration {
            seconds: i64::from(timeout_s),
            nanos: 0,
        }),
    });
    request.set_timeout(Duration::from_secs(u64::from(timeout_s)) + ANSWER_SLACK);
    let answer = link.config().wait(request).await;
    let answer = answer.map_err(|status| link.explain("wait for the nodes", status.into()))?;
    Ok(answer.into_inner())
}

/// `config 12: 2 of 2 nodes in 41 ms, 1 disconnected`.
pub(crate) fn summary(answer: &pb::WaitResponse) -> String {
    let nodes = if answer.connected == 1 {
        "node"
    } else {
        "nodes"
    };
    let disconnected = match answer.disconnected {
        0 => String::new(),
        count => format!(", {count} disconnected"),
    };
    format!(
        "config {}: {} of {} {nodes} in {}{disconnected}",
        answer.config_version,
        answer.acked,
        answer.connected,
        brief(elapsed(answer)),
    )
}

pub(crate) fn elapsed(answer: &pb::WaitResponse) -> Duration {
    let elapsed = answer.elapsed.unwrap_or_default();
    Duration::try_from(elapsed).unwrap_or_default()
}

/// Fails when a connected node does not run the version, or runs it without a resource.
pub(crate) fn verdict(answer: &pb::WaitResponse) -> anyhow::Result<()> {
    let mut faults = Vec::new();
    if !answer.pending.is_empty() {
        faults.push(format!("pending: {}", answer.pending.join(", ")));
    } else if answer.acked < answer.connected {
        faults.push(format!("pending: {}", answer.connected - answer.acked));
    }
    if !answer.rejected.is_empty() {
        faults.push(format!("rejected: {}", answer.rejected.join(", ")));
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!(
        "config {} is not in force on every node: {}",
        answer.config_version,
        faults.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> pb::WaitResponse {
        pb::WaitResponse {
            config_version: 12,
            connected: 2,
            acked: 2,
            elapsed: Some(prost_types::Duration {
                seconds: 0,
                nanos: 41_900_000,
            }),
            ..Default::default()
        }
    }

    #[test]
    fn the_summary_counts_nodes_and_time() {
        assert_eq!(summary(&answer()), "config 12: 2 of 2 nodes in 41 ms");
        let lonely = pb::WaitResponse {
            connected: 1,
            acked: 1,
            disconnected: 3,
            ..answer()
        };
        assert_eq!(
            summary(&lonely),
            "config 12: 1 of 1 node in 41 ms, 3 disconnected"
        );
        assert!(verdict(&lonely).is_ok());
    }

    #[test]
    fn pending_nodes_and_rejected_resources_are_named() {
        let late = pb::WaitResponse {
            acked: 1,
            pending: vec!["edge-2".into()],
            rejected: vec!["provider/openai: no host".into()],
            ..answer()
        };
        assert_eq!(
            verdict(&late).unwrap_err().to_string(),
            "config 12 is not in force on every node: pending: edge-2; \
             rejected: provider/openai: no host"
        );
        let unnamed = pb::WaitResponse {
            acked: 0,
            ..answer()
        };
        assert!(
            verdict(&unnamed)
                .unwrap_err()
                .to_string()
                .ends_with("pending: 2")
        );
    }
}
