//! Teams: who is billed and limited together.

use proto::admin::v1 as pb;
use serde::{Deserialize, Serialize};

use super::{Collection, Kind, Page, Status, Stored, all_or, id_of, name_of, same_set, yes};
use crate::failure::CallError;
use crate::link::Link;
use crate::moment::Moment;
use crate::secret::Secret;
use crate::table::Column;

pub(super) const PREFIX: &str = "teams/";

#[derive(Debug)]
pub(crate) enum Team {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct TeamSpec {
    pub(crate) display_name: String,
    pub(crate) disabled: bool,
    /// Public model names, or `prefix/*`. Empty: every model.
    pub(crate) models: Vec<String>,
}

impl Collection for Team {
    type Spec = TeamSpec;
    const KIND: Kind = Kind::Team;
    const COLUMNS: &'static [Column] = &[
        Column::text("ID"),
        Column::text("NAME"),
        Column::text("MODELS"),
        Column::text("DISABLED"),
    ];

    fn row(stored: &Stored<TeamSpec>) -> Vec<String> {
        let Stored { id, spec, .. } = stored;
        vec![
            id.clone(),
            spec.display_name.clone(),
            all_or(&spec.models),
            yes(spec.disabled),
        ]
    }

    async fn create(
        link: &Link,
        id: &str,
        spec: &TeamSpec,
        _secret: Option<&Secret>,
    ) -> Result<(Stored<TeamSpec>, Option<Secret>), CallError> {
        let request = pb::CreateTeamRequest {
            team_id: id.to_owned(),
            team: Some(encode("", spec)),
        };
        let team = link.teams().create_team(request).await?.into_inner();
        Ok((decode(team), None))
    }

    async fn get(link: &Link, id: &str) -> Result<Stored<TeamSpec>, CallError> {
        let name = name_of(PREFIX, id);
        let team = link.teams().get_team(pb::GetTeamRequest { name }).await?;
        Ok(decode(team.into_inner()))
    }

    async fn list(
        link: &Link,
        _owner: &str,
        page_size: i32,
        page_token: String,
    ) -> Result<Page<TeamSpec>, CallError> {
        let request = pb::ListTeamsRequest {
            page_size,
            page_token,
        };
        let page = link.teams().list_teams(request).await?.into_inner();
        let teams = page.teams.into_iter().map(decode).collect();
        Ok((teams, page.next_page_token))
    }

    async fn update(
        link: &Link,
        id: &str,
        spec: &TeamSpec,
        _secret: Option<&Secret>,
    ) -> Result<Stored<TeamSpec>, CallError> {
        let request = pb::UpdateTeamRequest {
            team: Some(encode(id, spec)),
            update_mask: None,
        };
        Ok(decode(
            link.teams().update_team(request).await?.into_inner(),
        ))
    }

    async fn delete(link: &Link, id: &str) -> Result<u64, CallError> {
        let name = name_of(PREFIX, id);
        let answer = link
            .teams()
            .delete_team(pb::DeleteTeamRequest { name })
            .await?;
        Ok(answer.into_inner().config_version)
    }

    fn is_same(stored: &TeamSpec, wanted: &TeamSpec) -> bool {
        let wanted_models = wanted.models.clone();
        let aligned = TeamSpec {
            models: wanted_models,
            ..stored.clone()
        };
        aligned == *wanted && same_set(&stored.models, &wanted.models)
    }
}

fn encode(id: &str, spec: &TeamSpec) -> pb::Team {
    pb::Team {
        name: name_of(PREFIX, id),
        display_name: spec.display_name.clone(),
        disabled: spec.disabled,
        models: spec.models.clone(),
        ..Default::default()
    }
}

fn decode(team: pb::Team) -> Stored<TeamSpec> {
    Stored {
        id: id_of(&team.name, PREFIX),
        status: Status {
            config_version: team.config_version,
            create_time: Moment::from_wire(team.create_time.as_ref()),
            update_time: Moment::from_wire(team.update_time.as_ref()),
            ..Default::default()
        },
        spec: TeamSpec {
            display_name: team.display_name,
            disabled: team.disabled,
            models: team.models,
        },
    }
}
