//! `turnpike.admin.v1.Teams`

use control_plane_core::name::Collection;
use control_plane_core::resource;
use control_plane_store::Stored;
use proto::admin::v1 as admin;
use proto::admin::v1::teams_server::Teams;
use tonic::{Request, Response, Status};

use super::{Admin, actor, id, no_mask, page_request, required};
use crate::clock::to_timestamp;
use crate::status;

#[tonic::async_trait]
impl Teams for Admin {
    async fn create_team(
        &self,
        request: Request<admin::CreateTeamRequest>,
    ) -> Result<Response<admin::Team>, Status> {
        let request = request.into_inner();
        let team = to_resource(request.team_id, request.team.unwrap_or_default());
        let stored = self.store.create_team(&actor(), team).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn get_team(
        &self,
        request: Request<admin::GetTeamRequest>,
    ) -> Result<Response<admin::Team>, Status> {
        let name = request.into_inner().name;
        let stored = self.store.team(id(Collection::Teams, &name, "name")?).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn list_teams(
        &self,
        request: Request<admin::ListTeamsRequest>,
    ) -> Result<Response<admin::ListTeamsResponse>, Status> {
        let request = request.into_inner();
        let page = page_request(request.page_size, request.page_token)?;
        let page = self.store.teams(&page).await.map_err(status::from_store)?;
        Ok(Response::new(admin::ListTeamsResponse {
            teams: page.items.into_iter().map(to_wire).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn update_team(
        &self,
        request: Request<admin::UpdateTeamRequest>,
    ) -> Result<Response<admin::Team>, Status> {
        let request = request.into_inner();
        no_mask(request.update_mask)?;
        let team = required(request.team, "team")?;
        let team_id = id(Collection::Teams, &team.name, "name")?.to_owned();
        let stored = self
            .store
            .update_team(&actor(), to_resource(team_id, team))
            .await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn delete_team(
        &self,
        request: Request<admin::DeleteTeamRequest>,
    ) -> Result<Response<admin::DeleteTeamResponse>, Status> {
        let name = request.into_inner().name;
        let team_id = id(Collection::Teams, &name, "name")?;
        let config_version = self
            .store
            .delete_team(&actor(), team_id)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::DeleteTeamResponse { config_version }))
    }
}

fn to_resource(id: String, team: admin::Team) -> resource::Team {
    resource::Team {
        id,
        display_name: team.display_name,
        disabled: team.disabled,
        models: team.models,
    }
}

fn to_wire(stored: Stored<resource::Team>) -> admin::Team {
    let team = stored.resource;
    admin::Team {
        name: Collection::Teams.name(&team.id),
        display_name: team.display_name,
        disabled: team.disabled,
        models: team.models,
        create_time: Some(to_timestamp(stored.created_at)),
        update_time: Some(to_timestamp(stored.updated_at)),
        config_version: stored.config_version,
        etag: String::new(),
    }
}

fn answer(stored: Stored<resource::Team>) -> Response<admin::Team> {
    Response::new(to_wire(stored))
}
