//! Limits as they stand, with what they can be exceeded by at worst.

use control_plane_core::name::Collection;
use control_plane_core::overshoot::{Cause, Deployment, Overshoot, Part};
use control_plane_store::{LimitStatus, StatusFilter};
use proto::admin::v1 as admin;
use tonic::Status;

use super::limits::bucket;
use super::{Admin, optional_id, page_request};
use crate::clock::now_us;
use crate::status;

impl Admin {
    pub(super) async fn statuses(
        &self,
        request: admin::ListLimitStatusesRequest,
    ) -> Result<admin::ListLimitStatusesResponse, Status> {
        let filter = StatusFilter {
            limit: optional_id(Collection::Limits, &request.limit, "limit")?,
            subject: Some(request.subject).filter(|subject| !subject.is_empty()),
        };
        let page = page_request(request.page_size, request.page_token)?;
        let listed = self.store.limit_statuses(&filter, &page).await;
        let page = listed.map_err(status::from_store)?;
        let deployment = self.deployment();
        Ok(admin::ListLimitStatusesResponse {
            statuses: page
                .items
                .into_iter()
                .map(|item| to_wire(item, &deployment))
                .collect(),
            next_page_token: page.next_page_token,
        })
    }

    fn deployment(&self) -> Deployment {
        let published = self.feed.current();
        let nodes = self
            .fleet
            .progress(published.version(), self.feed.max_stale_s());
        let nodes = u64::from(nodes.connected) + u64::from(nodes.disconnected);
        let now_s = u64::try_from(now_us() / 1_000_000).unwrap_or(0);
        Deployment::new(&published, nodes, now_s)
    }
}

/// The bound is absent for a limit that is not published yet.
fn to_wire(item: LimitStatus, deployment: &Deployment) -> admin::LimitStatus {
    let overshoot = deployment.overshoot(&item.bucket.limit, &item.bucket.subject);
    let mut bucket = bucket(item.bucket);
    if !item.is_used {
        bucket.window_start_time = None;
    }
    admin::LimitStatus {
        bucket: Some(bucket),
        unaccounted: i64::try_from(item.unaccounted).unwrap_or(i64::MAX),
        overshoot: overshoot.map(bound),
    }
}

fn bound(overshoot: Overshoot) -> admin::Overshoot {
    admin::Overshoot {
        amount: overshoot.amount(),
        parts: overshoot.parts.into_iter().map(part).collect(),
    }
}

fn part(part: Part) -> admin::OvershootPart {
    let cause = match part.cause {
        Cause::Disabled => admin::OvershootCause::Disabled,
        Cause::Warning => admin::OvershootCause::Warning,
        Cause::Estimates => admin::OvershootCause::Estimates,
        Cause::Unpriced => admin::OvershootCause::Unpriced,
        Cause::Outage => admin::OvershootCause::Outage,
        Cause::Burst => admin::OvershootCause::Burst,
    };
    admin::OvershootPart {
        cause: cause.into(),
        each: part.each,
        count: part.count,
        missing: part.missing,
    }
}
