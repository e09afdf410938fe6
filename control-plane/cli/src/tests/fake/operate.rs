//! Usage, nodes and the audit log: answers as scripted, requests kept.

use proto::admin::v1 as pb;
use proto::admin::v1::config_server::Config;
use proto::admin::v1::usage_server::Usage;
use tonic::{Request, Response, Status, async_trait};

use super::{PAGE, Shared};

#[async_trait]
impl Usage for Shared {
    async fn query_usage(
        &self,
        request: Request<pb::QueryUsageRequest>,
    ) -> Result<Response<pb::QueryUsageResponse>, Status> {
        let mut state = self.enter("query_usage", "")?;
        state.usage_query = Some(request.into_inner());
        let rows = state.usage_rows.clone();
        Ok(Response::new(pb::QueryUsageResponse { rows }))
    }

    async fn reprice_usage(
        &self,
        request: Request<pb::RepriceUsageRequest>,
    ) -> Result<Response<pb::RepriceUsageResponse>, Status> {
        let mut state = self.enter("reprice_usage", "")?;
        state.reprice_request = Some(request.into_inner());
        Ok(Response::new(state.reprice_answer.clone()))
    }

    async fn list_usage_records(
        &self,
        request: Request<pb::ListUsageRecordsRequest>,
    ) -> Result<Response<pb::ListUsageRecordsResponse>, Status> {
        let mut state = self.enter("list_usage_records", "")?;
        let request = request.into_inner();
        let (records, next_page_token) =
            slice(&state.records, request.page_size, &request.page_token);
        state.records_query = Some(request);
        Ok(Response::new(pb::ListUsageRecordsResponse {
            records,
            next_page_token,
        }))
    }
}

#[async_trait]
impl Config for Shared {
    async fn wait(
        &self,
        request: Request<pb::WaitRequest>,
    ) -> Result<Response<pb::WaitResponse>, Status> {
        let request = request.into_inner();
        let mut state = self.enter("wait", &request.config_version.to_string())?;
        let answer = pb::WaitResponse {
            config_version: request.config_version,
            ..state.wait_answer.clone()
        };
        state.wait_request = Some(request);
        Ok(Response::new(answer))
    }

    async fn list_nodes(
        &self,
        _request: Request<pb::ListNodesRequest>,
    ) -> Result<Response<pb::ListNodesResponse>, Status> {
        let (nodes, is_silent) = {
            let state = self.enter("list_nodes", "")?;
            (state.nodes.clone(), state.is_silent)
        };
        if is_silent {
            std::future::pending::<()>().await;
        }
        Ok(Response::new(nodes))
    }

    async fn list_audit_entries(
        &self,
        request: Request<pb::ListAuditEntriesRequest>,
    ) -> Result<Response<pb::ListAuditEntriesResponse>, Status> {
        let state = self.enter("list_audit_entries", "")?;
        let request = request.into_inner();
        let (entries, next_page_token) =
            slice(&state.audit, request.page_size, &request.page_token);
        Ok(Response::new(pb::ListAuditEntriesResponse {
            entries,
            next_page_token,
        }))
    }
}

/// A page of a log; its token is the position of the next entry.
fn slice<T: Clone>(log: &[T], size: i32, token: &str) -> (Vec<T>, String) {
    let start: usize = token.parse().unwrap_or(0);
    let end = (start + usize::try_from(size).unwrap().clamp(1, PAGE)).min(log.len());
    let next = if end < log.len() {
        end.to_string()
    } else {
        String::new()
    };
    (log[start..end].to_vec(), next)
}
