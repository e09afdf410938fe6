//! Credentials of providers.

use control_plane_core::fault::Fault;
use control_plane_core::name::Collection;
use control_plane_core::published::Kind;
use control_plane_core::resource::{Credential, CredentialSource, clean_secret};
use control_plane_core::secret::Secret;
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::edit::Edit;
use crate::secret_reader::envelope_owner;
use crate::store::retry;
use crate::stored::unsigned;
use crate::{Actor, Error, Page, PageRequest, Store, Stored};

const LIST: &str = "credentials";

impl Store {
    /// Creates a credential; `secret` is its plaintext when its source is
    /// [`CredentialSource::Sealed`].
    ///
    /// # Errors
    /// [`Error::Invalid`] (also when a reference cannot be read), [`Error::AlreadyExists`], or
    /// when Postgres is away.
    pub async fn create_credential(
        &self,
        actor: &Actor,
        credential: Credential,
        secret: Option<Secret>,
    ) -> Result<Stored<Credential>, Error> {
        credential.validate().map_err(Error::Invalid)?;
        let envelope = self.envelope(&credential, secret.as_ref())?;
        if envelope.is_none() && credential.source == CredentialSource::Sealed {
            return Err(Error::invalid("source", "must be set"));
        }
        let edit = edit(
            "create_credential",
            "CreateCredential",
            actor,
            &credential.id,
        );
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let (file, environment_variable) = references(&credential.source);
            sqlx::query!(
                "insert into credential (credential_id, provider_id, team_id, virtual_key_id,
                   weight, envelope, file, environment_variable)
                 values ($1, $2, $3, $4, $5, $6, $7, $8)",
                credential.id,
                credential.provider,
                credential.team,
                credential.virtual_key,
                i32::try_from(credential.weight).unwrap_or(i32::MAX),
                envelope,
                file,
                environment_variable,
            )
            .execute(open.tx())
            .await
            .map_err(|error| Error::of_write(error, &edit.name))?;
            open.publish().await?;
            let stored = found(open.tx(), &credential.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// One credential, without its plaintext.
    ///
    /// # Errors
    /// [`Error::NotFound`], or when Postgres is away.
    pub async fn credential(&self, id: &str) -> Result<Stored<Credential>, Error> {
        found(&mut *self.pool.acquire().await?, id).await
    }

    /// Credentials by id, of one provider or of all.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn credentials(
        &self,
        provider: Option<&str>,
        request: &PageRequest,
    ) -> Result<Page<Stored<Credential>>, Error> {
        let after: Option<String> = request.after(LIST)?;
        let rows = sqlx::query_as!(
            Row,
            r#"select credential_id, provider_id, team_id, virtual_key_id, weight,
                      null::bytea as envelope, file, environment_variable, created_at, updated_at,
                      (select version from published_resource
                       where kind = 'credential' and id = credential_id) as version
               from credential
               where credential_id > $1 and ($2::text is null or provider_id = $2)
               order by credential_id limit $3"#,
            after.unwrap_or_default(),
            provider,
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let items = rows.into_iter().map(|row| row.into_stored().0).collect();
        Ok(
            request.page(LIST, items, |credential: &Stored<Credential>| {
                credential.resource.id.clone()
            }),
        )
    }

    /// Replaces a credential. Its provider (empty: as it is) is fixed; with source
    /// [`CredentialSource::Sealed`] and no secret, where the plaintext comes from stays as it is.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NotFound`], or when Postgres is away.
    pub async fn update_credential(
        &self,
        actor: &Actor,
        credential: Credential,
        secret: Option<Secret>,
    ) -> Result<Stored<Credential>, Error> {
        let edit = edit(
            "update_credential",
            "UpdateCredential",
            actor,
            &credential.id,
        );
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let provider = found(open.tx(), &credential.id).await?.resource.provider;
            if !credential.provider.is_empty() && credential.provider != provider {
                return Err(Error::invalid("provider", "is fixed at creation"));
            }
            let credential = Credential {
                provider,
                ..credential.clone()
            };
            credential.validate().map_err(Error::Invalid)?;
            let envelope = self.envelope(&credential, secret.as_ref())?;
            let (file, environment_variable) = references(&credential.source);
            let keeps_source = envelope.is_none() && credential.source == CredentialSource::Sealed;
            sqlx::query!(
                "update credential set team_id = $2, virtual_key_id = $3, weight = $4,
                   envelope = case when $8 then envelope else $5 end,
                   file = case when $8 then file else $6 end,
                   environment_variable = case when $8 then environment_variable else $7 end
                 where credential_id = $1",
                credential.id,
                credential.team,
                credential.virtual_key,
                i32::try_from(credential.weight).unwrap_or(i32::MAX),
                envelope,
                file,
                environment_variable,
                keeps_source,
            )
            .execute(open.tx())
            .await
            .map_err(|error| Error::of_write(error, &edit.name))?;
            open.publish().await?;
            let stored = found(open.tx(), &credential.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// Deletes a credential; the config version that holds the deletion.
    ///
    /// # Errors
    /// [`Error::NotFound`], or when Postgres is away.
    pub async fn delete_credential(&self, actor: &Actor, id: &str) -> Result<u64, Error> {
        let edit = edit("delete_credential", "DeleteCredential", actor, id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let done = sqlx::query!("delete from credential where credential_id = $1", id)
                .execute(open.tx())
                .await?;
            super::updated(done.rows_affected(), &edit.name)?;
            open.publish().await?;
            open.commit_removal().await
        })
        .await
    }

    /// Seals a plaintext for a credential.
    fn envelope(
        &self,
        credential: &Credential,
        secret: Option<&Secret>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(secret) = secret else {
            return Ok(None);
        };
        if credential.source != CredentialSource::Sealed {
            return Err(Error::invalid(
                "source",
                "must be one of secret and a reference",
            ));
        }
        let secret = clean_secret(secret.expose())
            .map_err(|error| Error::Invalid(vec![Fault::new("secret", error.to_string())]))?;
        let owner = envelope_owner(credential);
        self.secrets
            .seal(secret.expose().as_bytes(), &owner)
            .map(Some)
            .map_err(|source| Error::Sealed {
                resource: Collection::Credentials.name(&credential.id),
                source,
            })
    }
}

/// A credential and its envelope, if it is there.
pub(crate) async fn load(
    tx: &mut PgConnection,
    id: &str,
) -> Result<Option<(Stored<Credential>, Option<Vec<u8>>)>, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"select credential_id, provider_id, team_id, virtual_key_id, weight, envelope, file,
                  environment_variable, created_at, updated_at,
                  (select version from published_resource
                   where kind = 'credential' and id = credential_id) as version
           from credential where credential_id = $1"#,
        id,
    )
    .fetch_optional(tx)
    .await?;
    Ok(row.map(Row::into_stored))
}

async fn found(tx: &mut PgConnection, id: &str) -> Result<Stored<Credential>, Error> {
    match load(tx, id).await? {
        Some((credential, _)) => Ok(credential),
        None => Err(Error::NotFound(Collection::Credentials.name(id))),
    }
}

fn references(source: &CredentialSource) -> (Option<&str>, Option<&str>) {
    match source {
        CredentialSource::Sealed => (None, None),
        CredentialSource::File(path) => (Some(path), None),
        CredentialSource::EnvironmentVariable(name) => (None, Some(name)),
    }
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
        kind: Kind::Credential,
        id,
        name: Collection::Credentials.name(id),
    }
}

struct Row {
    credential_id: String,
    provider_id: String,
    team_id: Option<String>,
    virtual_key_id: Option<String>,
    weight: i32,
    envelope: Option<Vec<u8>>,
    file: Option<String>,
    environment_variable: Option<String>,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    version: Option<i64>,
}

impl Row {
    fn into_stored(self) -> (Stored<Credential>, Option<Vec<u8>>) {
        let source = match (self.file, self.environment_variable) {
            (Some(path), _) => CredentialSource::File(path),
            (None, Some(name)) => CredentialSource::EnvironmentVariable(name),
            (None, None) => CredentialSource::Sealed,
        };
        let stored = Stored {
            resource: Credential {
                id: self.credential_id,
                provider: self.provider_id,
                team: self.team_id,
                virtual_key: self.virtual_key_id,
                weight: u32::try_from(self.weight).unwrap_or(0),
                source,
            },
            created_at: self.created_at,
            updated_at: self.updated_at,
            config_version: self.version.map_or(0, unsigned),
        };
        (stored, self.envelope)
    }
}
