//! Teams.

use control_plane_core::name::Collection;
use control_plane_core::published::Kind;
use control_plane_core::resource::Team;
use sqlx::PgConnection;

use crate::edit::Edit;
use crate::store::retry;
use crate::stored::unsigned;
use crate::{Actor, Error, Page, PageRequest, Store, Stored};

const LIST: &str = "teams";

impl Store {
    /// Creates a team.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::AlreadyExists`], or when Postgres is away.
    pub async fn create_team(&self, actor: &Actor, team: Team) -> Result<Stored<Team>, Error> {
        team.validate().map_err(Error::Invalid)?;
        let edit = edit("create_team", "CreateTeam", actor, &team.id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            sqlx::query!(
                "insert into team (team_id, display_name, disabled, models) values ($1, $2, $3, $4)",
                team.id,
                team.display_name,
                team.disabled,
                &team.models,
            )
            .execute(open.tx())
            .await
            .map_err(|error| Error::of_write(error, &edit.name))?;
            open.publish().await?;
            let stored = found(open.tx(), &team.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// One team.
    ///
    /// # Errors
    /// [`Error::NotFound`], or when Postgres is away.
    pub async fn team(&self, id: &str) -> Result<Stored<Team>, Error> {
        found(&mut *self.pool.acquire().await?, id).await
    }

    /// Teams by id.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn teams(&self, request: &PageRequest) -> Result<Page<Stored<Team>>, Error> {
        let after: Option<String> = request.after(LIST)?;
        let rows = sqlx::query_as!(
            Row,
            r#"select team_id, display_name, disabled, models, created_at, updated_at,
                      (select version from published_resource
                       where kind = 'team' and id = team_id) as version
               from team where team_id > $1 order by team_id limit $2"#,
            after.unwrap_or_default(),
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let items = rows.into_iter().map(Row::into_stored).collect();
        Ok(request.page(LIST, items, |team: &Stored<Team>| team.resource.id.clone()))
    }

    /// Replaces a team.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NotFound`], or when Postgres is away.
    pub async fn update_team(&self, actor: &Actor, team: Team) -> Result<Stored<Team>, Error> {
        team.validate().map_err(Error::Invalid)?;
        let edit = edit("update_team", "UpdateTeam", actor, &team.id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let done = sqlx::query!(
                "update team set display_name = $2, disabled = $3, models = $4 where team_id = $1",
                team.id,
                team.display_name,
                team.disabled,
                &team.models,
            )
            .execute(open.tx())
            .await?;
            super::updated(done.rows_affected(), &edit.name)?;
            open.publish().await?;
            let stored = found(open.tx(), &team.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// Deletes a team; the config version that holds the deletion.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::InUse`] while it has keys or credentials or a limit names it
    /// or one of its end users, or when Postgres is away.
    pub async fn delete_team(&self, actor: &Actor, id: &str) -> Result<u64, Error> {
        let edit = edit("delete_team", "DeleteTeam", actor, id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let users = sqlx::query_scalar!(
                r#"select 'virtualKeys/' || virtual_key_id as "by!" from virtual_key where team_id = $1
                   union all
                   select 'credentials/' || credential_id from credential where team_id = $1
                   union all
                   select 'limits/' || limit_id from limit_definition
                   where (subject = 'team' and subject_id = $1)
                      or (subject = 'end_user' and split_part(subject_id, '/', 1) = $1)
                   order by 1"#,
                id,
            )
            .fetch_all(open.tx())
            .await?;
            super::unused(users, &edit.name)?;
            let done = sqlx::query!("delete from team where team_id = $1", id)
                .execute(open.tx())
                .await
                .map_err(|error| Error::of_delete(error, &edit.name))?;
            super::updated(done.rows_affected(), &edit.name)?;
            open.publish().await?;
            open.commit_removal().await
        })
        .await
    }
}

/// A team, if it is there.
pub(crate) async fn load(tx: &mut PgConnection, id: &str) -> Result<Option<Stored<Team>>, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"select team_id, display_name, disabled, models, created_at, updated_at,
                  (select version from published_resource
                   where kind = 'team' and id = team_id) as version
           from team where team_id = $1"#,
        id,
    )
    .fetch_optional(tx)
    .await?;
    Ok(row.map(Row::into_stored))
}

async fn found(tx: &mut PgConnection, id: &str) -> Result<Stored<Team>, Error> {
    load(tx, id)
        .await?
        .ok_or_else(|| Error::NotFound(Collection::Teams.name(id)))
}

fn edit<'a>(
    transaction: &'static str,
    method: &'static str,
    actor: &'a Actor,
    id: &'a str,
) -> Edit<'a> {
    Edit {
        transaction,
        method,
        actor,
        kind: Kind::Team,
        id,
        name: Collection::Teams.name(id),
    }
}

struct Row {
    team_id: String,
    display_name: String,
    disabled: bool,
    models: Vec<String>,
    created_at: time::OffsetDateTime,
    updated_at: time::OffsetDateTime,
    version: Option<i64>,
}

impl Row {
    fn into_stored(self) -> Stored<Team> {
        Stored {
            resource: Team {
                id: self.team_id,
                display_name: self.display_name,
                disabled: self.disabled,
                models: self.models,
            },
            created_at: self.created_at,
            updated_at: self.updated_at,
            config_version: self.version.map_or(0, unsigned),
        }
    }
}
