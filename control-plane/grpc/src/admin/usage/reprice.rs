//! `RepriceUsage` on the wire and in the store.

use control_plane_core::ledger::RepriceFilter;
use control_plane_core::name::Collection;
use control_plane_store::{RepriceAnswer, RepriceRequest, RepricedTarget};
use proto::admin::v1 as admin;
use tonic::Status;

use super::{count, moment};
use crate::admin::optional_id;
use crate::status;

/// What was asked for.
pub(super) fn request(request: admin::RepriceUsageRequest) -> Result<RepriceRequest, Status> {
    let start = moment(request.start_time, "start_time")?;
    Ok(RepriceRequest {
        start: start.ok_or_else(|| status::invalid("start_time", "must be set"))?,
        end: moment(request.end_time, "end_time")?,
        filter: RepriceFilter {
            model: optional_id(Collection::Models, &request.model, "model")?,
            provider: optional_id(Collection::Providers, &request.provider, "provider")?,
        },
        reason: request.reason,
        dry_run: request.dry_run,
        request_id: request.request_id,
    })
}

/// What came of it.
pub(super) fn answer(answer: RepriceAnswer) -> admin::RepriceUsageResponse {
    admin::RepriceUsageResponse {
        price_version: answer.price_version,
        attempts: count(answer.attempts),
        skipped_attempts: count(answer.skipped_attempts),
        from_nusd: answer.from_nusd,
        to_nusd: answer.to_nusd,
        entries: answer.entries,
        targets: answer.targets.into_iter().map(target).collect(),
        repeated_request: answer.is_repeated,
    }
}

fn target(target: RepricedTarget) -> admin::RepricedTarget {
    admin::RepricedTarget {
        provider: target.provider,
        upstream_model: target.upstream_model,
        priced_attempts: target.priced_attempts,
        correction_nusd: target.delta_nusd,
    }
}
