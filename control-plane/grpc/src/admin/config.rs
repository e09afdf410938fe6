//! `turnpike.admin.v1.Config`: where the config has come, and who changed it.

use control_plane_core::nodes::Node;
use control_plane_store::AuditEntry;
use proto::admin::v1 as admin;
use proto::admin::v1::config_server::Config;
use tonic::{Request, Response, Status};

use super::{Admin, page_request, wait};
use crate::clock::{to_timestamp, us_to_timestamp};
use crate::status;

#[tonic::async_trait]
impl Config for Admin {
    async fn wait(
        &self,
        request: Request<admin::WaitRequest>,
    ) -> Result<Response<admin::WaitResponse>, Status> {
        wait::answer(self, request.into_inner())
            .await
            .map(Response::new)
    }

    async fn list_nodes(
        &self,
        _: Request<admin::ListNodesRequest>,
    ) -> Result<Response<admin::ListNodesResponse>, Status> {
        self.fleet
            .refresh(&self.store)
            .await
            .map_err(status::from_store)?;
        let unpublished = self.store.unpublished().await.map_err(status::from_store)?;
        Ok(Response::new(admin::ListNodesResponse {
            nodes: self.fleet.list().into_iter().map(node).collect(),
            config_version: self.feed.current().version(),
            unpublished,
        }))
    }

    async fn list_audit_entries(
        &self,
        request: Request<admin::ListAuditEntriesRequest>,
    ) -> Result<Response<admin::ListAuditEntriesResponse>, Status> {
        let request = request.into_inner();
        let page = page_request(request.page_size, request.page_token)?;
        let page = self
            .store
            .audit_entries(&page)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::ListAuditEntriesResponse {
            entries: page.items.into_iter().map(entry).collect(),
            next_page_token: page.next_page_token,
        }))
    }
}

fn node(node: Node) -> admin::Node {
    admin::Node {
        name: node.name,
        boot_id: node.boot_id.0.to_vec(),
        connected: node.connected,
        acked_version: node.acked_version,
        connect_time: Some(us_to_timestamp(node.connected_at_us)),
        last_seen_time: Some(us_to_timestamp(node.last_seen_us)),
        envoy_version: node.envoy_version,
        rejected: node.rejected,
    }
}

fn entry(entry: AuditEntry) -> admin::AuditEntry {
    admin::AuditEntry {
        time: Some(to_timestamp(entry.at)),
        actor: entry.actor,
        method: entry.method,
        resource: entry.resource,
        config_version: entry.config_version,
        state: entry.state,
    }
}
