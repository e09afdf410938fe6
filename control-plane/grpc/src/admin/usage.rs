//! `turnpike.admin.v1.Usage`

use control_plane_core::ledger::RollupSums;
use control_plane_core::name::Collection;
use control_plane_store::{GroupBy, RecordFilter, StoredRecord, UsageQuery, UsageRow};
use prost_types::Timestamp;
use proto::admin::v1 as admin;
use proto::admin::v1::UsageDimension;
use proto::admin::v1::usage_server::Usage;
use time::OffsetDateTime;
use tonic::{Request, Response, Status};

use super::{Admin, actor, optional_id, page_request};
use crate::clock::{from_timestamp, to_timestamp};
use crate::status;

mod reprice;

#[tonic::async_trait]
impl Usage for Admin {
    async fn query_usage(
        &self,
        request: Request<admin::QueryUsageRequest>,
    ) -> Result<Response<admin::QueryUsageResponse>, Status> {
        let query = to_query(request.into_inner())?;
        let rows = self
            .store
            .query_usage(&query)
            .await
            .map_err(status::from_store)?;
        let rows = rows
            .into_iter()
            .map(|row| to_wire(row, &query.group_by))
            .collect();
        Ok(Response::new(admin::QueryUsageResponse { rows }))
    }

    async fn reprice_usage(
        &self,
        request: Request<admin::RepriceUsageRequest>,
    ) -> Result<Response<admin::RepriceUsageResponse>, Status> {
        let request = reprice::request(request.into_inner())?;
        let answer = self.store.reprice_usage(&actor(), &request).await;
        let answer = answer.map_err(status::from_store)?;
        Ok(Response::new(reprice::answer(answer)))
    }

    async fn list_usage_records(
        &self,
        request: Request<admin::ListUsageRecordsRequest>,
    ) -> Result<Response<admin::ListUsageRecordsResponse>, Status> {
        let request = request.into_inner();
        let filter = RecordFilter {
            request_id: Some(request.request_id).filter(|id| !id.is_empty()),
            team: optional_id(Collection::Teams, &request.team, "team")?,
            virtual_key: optional_id(Collection::VirtualKeys, &request.virtual_key, "virtual_key")?,
            start: moment(request.start_time, "start_time")?,
            end: moment(request.end_time, "end_time")?,
        };
        let page = page_request(request.page_size, request.page_token)?;
        let page = self
            .store
            .usage_records(&filter, &page)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::ListUsageRecordsResponse {
            records: page.items.into_iter().map(record).collect(),
            next_page_token: page.next_page_token,
        }))
    }
}

fn to_query(request: admin::QueryUsageRequest) -> Result<UsageQuery, Status> {
    let mut group_by = GroupBy::default();
    for (position, number) in request.group_by.iter().enumerate() {
        let chosen = match UsageDimension::try_from(*number) {
            Ok(UsageDimension::Team) => &mut group_by.team,
            Ok(UsageDimension::VirtualKey) => &mut group_by.virtual_key,
            Ok(UsageDimension::Model) => &mut group_by.model,
            Ok(UsageDimension::Provider) => &mut group_by.provider,
            Ok(UsageDimension::Slot) => &mut group_by.slot,
            Ok(UsageDimension::Day) => &mut group_by.day,
            Ok(UsageDimension::Unspecified) | Err(_) => {
                let field = format!("group_by[{position}]");
                return Err(status::invalid(&field, "is not a dimension known here"));
            }
        };
        *chosen = true;
    }
    if group_by.slot && group_by.day {
        return Err(status::invalid(
            "group_by",
            "must not name both slot and day",
        ));
    }
    Ok(UsageQuery {
        start: moment(request.start_time, "start_time")?,
        end: moment(request.end_time, "end_time")?,
        group_by,
        team: optional_id(Collection::Teams, &request.team, "team")?,
        virtual_key: optional_id(Collection::VirtualKeys, &request.virtual_key, "virtual_key")?,
        model: optional_id(Collection::Models, &request.model, "model")?,
    })
}

fn moment(timestamp: Option<Timestamp>, field: &str) -> Result<Option<OffsetDateTime>, Status> {
    timestamp
        .map(|timestamp| {
            from_timestamp(timestamp)
                .ok_or_else(|| status::invalid(field, "must be a moment of the years 1 to 9999"))
        })
        .transpose()
}

fn to_wire(row: UsageRow, group_by: &GroupBy) -> admin::UsageRow {
    // An exchange may have had no model, and the name of none is none.
    let name = |grouped: bool, collection: Collection, id: &str| {
        if grouped && !id.is_empty() {
            collection.name(id)
        } else {
            String::new()
        }
    };
    let RollupSums {
        requests,
        attempts,
        input_tokens,
        cached_input_tokens,
        cache_write_tokens,
        output_tokens,
        reasoning_tokens,
        estimated_attempts,
        unpriced_attempts,
        cost_nusd,
    } = row.sums;
    admin::UsageRow {
        team: name(group_by.team, Collection::Teams, &row.team),
        virtual_key: name(
            group_by.virtual_key,
            Collection::VirtualKeys,
            &row.virtual_key,
        ),
        model: name(group_by.model, Collection::Models, &row.model),
        provider: name(group_by.provider, Collection::Providers, &row.provider),
        slot: row.slot.map(to_timestamp),
        requests: count(requests),
        attempts: count(attempts),
        input_tokens: count(input_tokens),
        cached_input_tokens: count(cached_input_tokens),
        cache_write_tokens: count(cache_write_tokens),
        output_tokens: count(output_tokens),
        reasoning_tokens: count(reasoning_tokens),
        estimated_attempts: count(estimated_attempts),
        cost_nusd: count(cost_nusd),
        unpriced_attempts: count(unpriced_attempts),
        correction_nusd: row.correction_nusd,
    }
}

fn count(sum: i64) -> u64 {
    u64::try_from(sum).unwrap_or(0)
}

fn record(stored: StoredRecord) -> admin::StoredUsageRecord {
    admin::StoredUsageRecord {
        boot_id: stored.shard.boot_id.0.to_vec(),
        shard: stored.shard.number,
        seq: stored.seq,
        receive_time: Some(to_timestamp(stored.received_at)),
        node: stored.node,
        record: stored.record,
    }
}
