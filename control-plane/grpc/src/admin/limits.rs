//! `turnpike.admin.v1.Limits`

use control_plane_core::name::Collection;
use control_plane_core::resource;
use control_plane_store::{BucketFilter, Stored, StoredBucket};
use proto::admin::v1 as admin;
use proto::admin::v1::limits_server::Limits;
use tonic::{Request, Response, Status};

use super::{Admin, actor, id, no_mask, optional_id, page_request, required};
use crate::clock::to_timestamp;
use crate::status;

#[tonic::async_trait]
impl Limits for Admin {
    async fn create_limit(
        &self,
        request: Request<admin::CreateLimitRequest>,
    ) -> Result<Response<admin::Limit>, Status> {
        let request = request.into_inner();
        let limit = required(request.limit, "limit")?;
        let limit = to_resource(request.limit_id, limit)?;
        let stored = self.store.create_limit(&actor(), limit).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn get_limit(
        &self,
        request: Request<admin::GetLimitRequest>,
    ) -> Result<Response<admin::Limit>, Status> {
        let name = request.into_inner().name;
        let limit_id = id(Collection::Limits, &name, "name")?;
        let stored = self.store.limit(limit_id).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn list_limits(
        &self,
        request: Request<admin::ListLimitsRequest>,
    ) -> Result<Response<admin::ListLimitsResponse>, Status> {
        let request = request.into_inner();
        let page = page_request(request.page_size, request.page_token)?;
        let page = self.store.limits(&page).await.map_err(status::from_store)?;
        Ok(Response::new(admin::ListLimitsResponse {
            limits: page.items.into_iter().map(to_wire).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn update_limit(
        &self,
        request: Request<admin::UpdateLimitRequest>,
    ) -> Result<Response<admin::Limit>, Status> {
        let request = request.into_inner();
        no_mask(request.update_mask)?;
        let limit = required(request.limit, "limit")?;
        let limit_id = id(Collection::Limits, &limit.name, "name")?.to_owned();
        let limit = to_resource(limit_id, limit)?;
        let stored = self.store.update_limit(&actor(), limit).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn delete_limit(
        &self,
        request: Request<admin::DeleteLimitRequest>,
    ) -> Result<Response<admin::DeleteLimitResponse>, Status> {
        let name = request.into_inner().name;
        let limit_id = id(Collection::Limits, &name, "name")?;
        let deleted = self.store.delete_limit(&actor(), limit_id).await;
        let config_version = deleted.map_err(status::from_store)?;
        Ok(Response::new(admin::DeleteLimitResponse { config_version }))
    }

    async fn list_buckets(
        &self,
        request: Request<admin::ListBucketsRequest>,
    ) -> Result<Response<admin::ListBucketsResponse>, Status> {
        let request = request.into_inner();
        let filter = BucketFilter {
            limit: optional_id(Collection::Limits, &request.limit, "limit")?,
            subject: Some(request.subject).filter(|subject| !subject.is_empty()),
            include_past: request.include_past,
        };
        let page = page_request(request.page_size, request.page_token)?;
        let buckets = self.store.buckets(&filter, &page).await;
        let page = buckets.map_err(status::from_store)?;
        Ok(Response::new(admin::ListBucketsResponse {
            buckets: page.items.into_iter().map(bucket).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn list_limit_statuses(
        &self,
        request: Request<admin::ListLimitStatusesRequest>,
    ) -> Result<Response<admin::ListLimitStatusesResponse>, Status> {
        self.statuses(request.into_inner()).await.map(Response::new)
    }

    async fn list_limit_events(
        &self,
        request: Request<admin::ListLimitEventsRequest>,
    ) -> Result<Response<admin::ListLimitEventsResponse>, Status> {
        self.events(request.into_inner()).await.map(Response::new)
    }

    async fn list_unaccounted(
        &self,
        request: Request<admin::ListUnaccountedRequest>,
    ) -> Result<Response<admin::ListUnaccountedResponse>, Status> {
        self.lost(request.into_inner()).await.map(Response::new)
    }

    async fn adjust_bucket(
        &self,
        request: Request<admin::AdjustBucketRequest>,
    ) -> Result<Response<admin::Bucket>, Status> {
        let request = request.into_inner();
        let actor = actor();
        let adjusted = self.store.adjust_bucket(
            &actor,
            id(Collection::Limits, &request.limit, "limit")?,
            &request.subject,
            request.delta,
            &request.reason,
        );
        let adjusted = adjusted.await.map_err(status::from_store)?;
        Ok(Response::new(bucket(adjusted)))
    }
}

fn to_resource(limit_id: String, limit: admin::Limit) -> Result<resource::Limit, Status> {
    let values = proto::config::v1::Limit {
        id: limit_id,
        ..required(limit.values, "values")?
    };
    resource::Limit::from_wire(values, limit.display_name)
        .map_err(|faults| status::from_faults(&faults))
}

fn to_wire(stored: Stored<resource::Limit>) -> admin::Limit {
    let limit = stored.resource;
    admin::Limit {
        name: Collection::Limits.name(&limit.id),
        values: Some(limit.to_wire()),
        display_name: limit.display_name,
        create_time: Some(to_timestamp(stored.created_at)),
        update_time: Some(to_timestamp(stored.updated_at)),
        config_version: stored.config_version,
        etag: String::new(),
    }
}

fn answer(stored: Stored<resource::Limit>) -> Response<admin::Limit> {
    Response::new(to_wire(stored))
}

pub(super) fn bucket(bucket: StoredBucket) -> admin::Bucket {
    let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
    admin::Bucket {
        limit: Collection::Limits.name(&bucket.limit),
        subject: bucket.subject,
        window_start_time: Some(to_timestamp(bucket.window_start)),
        reset_time: bucket.window_end.map(to_timestamp),
        amount: signed(bucket.amount),
        settled: bucket.settled,
        held: signed(bucket.held),
        suspended: signed(bucket.suspended),
        remaining: bucket.free,
    }
}
