//! Virtual keys and their secrets.

use control_plane_core::name::Collection;
use control_plane_core::published::Kind;
use control_plane_core::resource::{KeySecret, VirtualKey};
use serde::Serialize;
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::edit::Edit;
use crate::store::retry;
use crate::stored::{from_unix_s, to_unix_s, unsigned};
use crate::{Actor, Error, Page, PageRequest, Store, Stored};

const LIST: &str = "virtual_keys";

/// A virtual key with what may be shown of its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyRecord {
    #[serde(flatten)]
    pub key: VirtualKey,
    /// First characters of the secret.
    pub secret_hint: String,
}

impl Store {
    /// Creates a key that one secret opens.
    ///
    /// # Errors
    /// [`Error::Invalid`] (also when the secret opens another key), [`Error::AlreadyExists`], or
    /// when Postgres is away.
    pub async fn create_virtual_key(
        &self,
        actor: &Actor,
        key: VirtualKey,
        secret: KeySecret,
    ) -> Result<Stored<KeyRecord>, Error> {
        key.validate().map_err(Error::Invalid)?;
        let edit = edit("create_virtual_key", "CreateVirtualKey", actor, &key.id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            sqlx::query!(
                "insert into virtual_key
                   (virtual_key_id, team_id, display_name, disabled, models, expires_at)
                 values ($1, $2, $3, $4, $5, $6)",
                key.id,
                key.team,
                key.display_name,
                key.disabled,
                &key.models,
                key.expires_at_s.map(from_unix_s),
            )
            .execute(open.tx())
            .await
            .map_err(|error| Error::of_write(error, &edit.name))?;
            sqlx::query!(
                "insert into key_secret (virtual_key_id, position, sha256, hint, expires_at)
                 values ($1, 1, $2, $3, $4)",
                key.id,
                secret.sha256.as_slice(),
                secret.hint,
                secret.expires_at_s.map(from_unix_s),
            )
            .execute(open.tx())
            .await
            .map_err(|error| Error::of_write(error, &edit.name))?;
            open.publish().await?;
            let stored = found(open.tx(), &key.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// One key.
    ///
    /// # Errors
    /// [`Error::NotFound`], or when Postgres is away.
    pub async fn virtual_key(&self, id: &str) -> Result<Stored<KeyRecord>, Error> {
        found(&mut *self.pool.acquire().await?, id).await
    }

    /// Keys by id, of one team or of all.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn virtual_keys(
        &self,
        team: Option<&str>,
        request: &PageRequest,
    ) -> Result<Page<Stored<KeyRecord>>, Error> {
        let after: Option<String> = request.after(LIST)?;
        let rows = sqlx::query_as!(
            Row,
            r#"select virtual_key_id, team_id, display_name, disabled, models, expires_at,
                      created_at, updated_at,
                      (select hint from key_secret s where s.virtual_key_id = k.virtual_key_id
                       order by position limit 1) as hint,
                      (select version from published_resource
                       where kind = 'virtual_key' and id = virtual_key_id) as version
               from virtual_key k
               where virtual_key_id > $1 and ($2::text is null or team_id = $2)
               order by virtual_key_id limit $3"#,
            after.unwrap_or_default(),
            team,
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let items = rows.into_iter().map(Row::into_stored).collect();
        Ok(request.page(LIST, items, |key: &Stored<KeyRecord>| {
            key.resource.key.id.clone()
        }))
    }

    /// Replaces a key; its team (empty: as it is) and its secrets are fixed.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NotFound`], or when Postgres is away.
    pub async fn update_virtual_key(
        &self,
        actor: &Actor,
        key: VirtualKey,
    ) -> Result<Stored<KeyRecord>, Error> {
        let edit = edit("update_virtual_key", "UpdateVirtualKey", actor, &key.id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let team = found(open.tx(), &key.id).await?.resource.key.team;
            if !key.team.is_empty() && key.team != team {
                return Err(Error::invalid("team", "is fixed at creation"));
            }
            let key = VirtualKey {
                team,
                ..key.clone()
            };
            key.validate().map_err(Error::Invalid)?;
            sqlx::query!(
                "update virtual_key set display_name = $2, disabled = $3, models = $4, expires_at = $5
                 where virtual_key_id = $1",
                key.id,
                key.display_name,
                key.disabled,
                &key.models,
                key.expires_at_s.map(from_unix_s),
            )
            .execute(open.tx())
            .await?;
            open.publish().await?;
            let stored = found(open.tx(), &key.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// Deletes a key; the config version that holds the deletion.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::InUse`] while it has credentials or a limit names it, or when
    /// Postgres is away.
    pub async fn delete_virtual_key(&self, actor: &Actor, id: &str) -> Result<u64, Error> {
        let edit = edit("delete_virtual_key", "DeleteVirtualKey", actor, id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let users = sqlx::query_scalar!(
                r#"select 'credentials/' || credential_id as "by!" from credential
                   where virtual_key_id = $1
                   union all
                   select 'limits/' || limit_id from limit_definition
                   where subject = 'key' and subject_id = $1
                   order by 1"#,
                id,
            )
            .fetch_all(open.tx())
            .await?;
            super::unused(users, &edit.name)?;
            let done = sqlx::query!("delete from virtual_key where virtual_key_id = $1", id)
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

/// A key, if it is there.
pub(crate) async fn load(
    tx: &mut PgConnection,
    id: &str,
) -> Result<Option<Stored<KeyRecord>>, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"select virtual_key_id, team_id, display_name, disabled, models, expires_at,
                  created_at, updated_at,
                  (select hint from key_secret s where s.virtual_key_id = k.virtual_key_id
                   order by position limit 1) as hint,
                  (select version from published_resource
                   where kind = 'virtual_key' and id = virtual_key_id) as version
           from virtual_key k where virtual_key_id = $1"#,
        id,
    )
    .fetch_optional(tx)
    .await?;
    Ok(row.map(Row::into_stored))
}

/// The secrets of a key, in order.
pub(crate) async fn load_secrets(tx: &mut PgConnection, id: &str) -> Result<Vec<KeySecret>, Error> {
    let rows = sqlx::query!(
        "select sha256, hint, expires_at from key_secret where virtual_key_id = $1 order by position",
        id,
    )
    .fetch_all(tx)
    .await?;
    rows.into_iter()
        .map(|row| {
            let sha256 = row.sha256.try_into().map_err(|_| Error::Unreadable {
                resource: format!("virtual_key {id}"),
                reason: "a secret's hash does not have 32 bytes".to_owned(),
            })?;
            Ok(KeySecret {
                sha256,
                hint: row.hint,
                expires_at_s: row.expires_at.map(to_unix_s),
            })
        })
        .collect()
}

async fn found(tx: &mut PgConnection, id: &str) -> Result<Stored<KeyRecord>, Error> {
    load(tx, id)
        .await?
        .ok_or_else(|| Error::NotFound(Collection::VirtualKeys.name(id)))
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
        kind: Kind::VirtualKey,
        id,
        name: Collection::VirtualKeys.name(id),
    }
}

struct Row {
    virtual_key_id: String,
    team_id: String,
    display_name: String,
    disabled: bool,
    models: Vec<String>,
    expires_at: Option<OffsetDateTime>,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    hint: Option<String>,
    version: Option<i64>,
}

impl Row {
    fn into_stored(self) -> Stored<KeyRecord> {
        Stored {
            resource: KeyRecord {
                key: VirtualKey {
                    id: self.virtual_key_id,
                    team: self.team_id,
                    display_name: self.display_name,
                    disabled: self.disabled,
                    models: self.models,
                    expires_at_s: self.expires_at.map(to_unix_s),
                },
                secret_hint: self.hint.unwrap_or_default(),
            },
            created_at: self.created_at,
            updated_at: self.updated_at,
            config_version: self.version.map_or(0, unsigned),
        }
    }
}
