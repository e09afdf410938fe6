//! `Config.Wait`: until every connected node runs a version.

use std::time::Duration;

use control_plane_core::nodes::Progress;
use proto::admin::v1 as admin;
use tokio::time::Instant;
use tonic::Status;

use super::Admin;
use crate::clock::{now_us, to_us};
use crate::status;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
// Nodes of other replicas are known by what those store.
const REFRESH_EVERY: Duration = Duration::from_millis(200);

pub(super) async fn answer(
    admin: &Admin,
    request: admin::WaitRequest,
) -> Result<admin::WaitResponse, Status> {
    let deadline = Instant::now() + timeout(request.timeout)?;
    let version = match request.config_version {
        0 => newest_version(admin).await,
        version => version,
    };
    let began_us = now_us();
    let mut shutdown = admin.shutdown.clone();
    let progress = tokio::select! {
        progress = reached(admin, version, deadline) => progress,
        () = shutdown.requested() => {
            return Err(Status::unavailable("the control plane is stopping"));
        }
    };
    let published_us = match admin.store.published_at(version).await {
        Ok(at) => at.map(to_us),
        // Nodes are served while Postgres is away, and may be waited for.
        Err(_) => None,
    };
    let ended_us = progress.complete_at_us.unwrap_or_else(now_us);
    let elapsed_us = ended_us - published_us.unwrap_or(began_us);
    Ok(admin::WaitResponse {
        config_version: version,
        connected: progress.connected,
        acked: progress.acked,
        disconnected: progress.disconnected,
        elapsed: Some(duration(elapsed_us)),
        pending: progress.pending,
        rejected: progress.rejected,
    })
}

// A change that was just answered may not have come from the database yet.
async fn newest_version(admin: &Admin) -> u64 {
    let here = admin.feed.current().version();
    admin
        .store
        .config_version()
        .await
        .map_or(here, |stored| stored.max(here))
}

async fn reached(admin: &Admin, version: u64, deadline: Instant) -> Progress {
    let mut fleet = admin.fleet.watch();
    let mut feed = admin.feed.watch();
    loop {
        if let Err(error) = admin.fleet.refresh(&admin.store).await {
            tracing::debug!(%error, "other replicas' nodes are not known now");
        }
        let next_refresh = (Instant::now() + REFRESH_EVERY).min(deadline);
        loop {
            fleet.mark_unchanged();
            feed.mark_unchanged();
            let progress = admin.fleet.progress(version, admin.feed.max_stale_s());
            let is_published = admin.feed.current().version() >= version;
            if (is_published && progress.is_complete()) || Instant::now() >= deadline {
                return progress;
            }
            let changed = async {
                tokio::select! {
                    _ = fleet.changed() => {}
                    _ = feed.changed() => {}
                }
            };
            if tokio::time::timeout_at(next_refresh, changed)
                .await
                .is_err()
            {
                break;
            }
        }
    }
}

fn timeout(asked: Option<prost_types::Duration>) -> Result<Duration, Status> {
    let Some(asked) = asked else {
        return Ok(DEFAULT_TIMEOUT);
    };
    Duration::try_from(asked)
        .ok()
        .filter(|timeout| *timeout <= MAX_TIMEOUT)
        .ok_or_else(|| status::invalid("timeout", "must be 0 to 60 seconds"))
}

// The clocks of Postgres and of this process may differ; no time is below zero.
fn duration(us: i64) -> prost_types::Duration {
    let us = us.max(0);
    prost_types::Duration {
        seconds: us / 1_000_000,
        nanos: i32::try_from(us % 1_000_000 * 1000).unwrap_or(0),
    }
}
