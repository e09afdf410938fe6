//! Providers.

use control_plane_core::name::Collection;
use control_plane_core::published::Kind;
use control_plane_core::resource::{CredentialPlace, Dialect, Provider, Quirk};
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::edit::Edit;
use crate::store::retry;
use crate::stored::unsigned;
use crate::{Actor, Error, Page, PageRequest, Store, Stored};

const LIST: &str = "providers";

impl Store {
    /// Creates a provider.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::AlreadyExists`], or when Postgres is away.
    pub async fn create_provider(
        &self,
        actor: &Actor,
        provider: Provider,
    ) -> Result<Stored<Provider>, Error> {
        provider.validate().map_err(Error::Invalid)?;
        let edit = edit("create_provider", "CreateProvider", actor, &provider.id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            sqlx::query!(
                "insert into provider (provider_id, display_name, dialect, base_url,
                   existing_cluster, ca_pem, credential_place, stream_usage_option,
                   query, header_names, header_values, region, quirks)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
                provider.id,
                provider.display_name,
                provider.dialect.word(),
                provider.base_url,
                provider.existing_cluster,
                provider.ca_pem,
                provider.credential_place.word(),
                provider.stream_usage_option,
                provider.query,
                &header_names(&provider),
                &header_values(&provider),
                provider.region,
                &quirk_words(&provider),
            )
            .execute(open.tx())
            .await
            .map_err(|error| Error::of_write(error, &edit.name))?;
            open.publish().await?;
            let stored = found(open.tx(), &provider.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// One provider.
    ///
    /// # Errors
    /// [`Error::NotFound`], or when Postgres is away.
    pub async fn provider(&self, id: &str) -> Result<Stored<Provider>, Error> {
        found(&mut *self.pool.acquire().await?, id).await
    }

    /// Providers by id.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn providers(&self, request: &PageRequest) -> Result<Page<Stored<Provider>>, Error> {
        let after: Option<String> = request.after(LIST)?;
        let rows = sqlx::query_as!(
            Row,
            r#"select provider_id, display_name, dialect, base_url, existing_cluster, ca_pem,
                      credential_place, stream_usage_option, query, header_names,
                      header_values, region, quirks, created_at, updated_at,
                      (select version from published_resource
                       where kind = 'provider' and id = provider_id) as version
               from provider where provider_id > $1 order by provider_id limit $2"#,
            after.unwrap_or_default(),
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let items: Vec<_> = rows
            .into_iter()
            .map(Row::into_stored)
            .collect::<Result<_, _>>()?;
        Ok(request.page(LIST, items, |provider: &Stored<Provider>| {
            provider.resource.id.clone()
        }))
    }

    /// Replaces a provider.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NotFound`], or when Postgres is away.
    pub async fn update_provider(
        &self,
        actor: &Actor,
        provider: Provider,
    ) -> Result<Stored<Provider>, Error> {
        provider.validate().map_err(Error::Invalid)?;
        let edit = edit("update_provider", "UpdateProvider", actor, &provider.id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let done = sqlx::query!(
                "update provider set display_name = $2, dialect = $3, base_url = $4,
                   existing_cluster = $5, ca_pem = $6, credential_place = $7,
                   stream_usage_option = $8, query = $9, header_names = $10,
                   header_values = $11, region = $12, quirks = $13
                 where provider_id = $1",
                provider.id,
                provider.display_name,
                provider.dialect.word(),
                provider.base_url,
                provider.existing_cluster,
                provider.ca_pem,
                provider.credential_place.word(),
                provider.stream_usage_option,
                provider.query,
                &header_names(&provider),
                &header_values(&provider),
                provider.region,
                &quirk_words(&provider),
            )
            .execute(open.tx())
            .await?;
            super::updated(done.rows_affected(), &edit.name)?;
            open.publish().await?;
            let stored = found(open.tx(), &provider.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// Deletes a provider; the config version that holds the deletion.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::InUse`] while a model, a credential or a limit names it, or
    /// when Postgres is away.
    pub async fn delete_provider(&self, actor: &Actor, id: &str) -> Result<u64, Error> {
        let edit = edit("delete_provider", "DeleteProvider", actor, id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let users = sqlx::query_scalar!(
                r#"select 'models/' || model_id as "by!" from model_target where provider_id = $1
                   union
                   select 'credentials/' || credential_id from credential where provider_id = $1
                   union
                   select 'limits/' || limit_id from limit_definition where $1 = any(providers)
                   order by 1"#,
                id,
            )
            .fetch_all(open.tx())
            .await?;
            super::unused(users, &edit.name)?;
            let done = sqlx::query!("delete from provider where provider_id = $1", id)
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

/// A provider, if it is there.
pub(crate) async fn load(
    tx: &mut PgConnection,
    id: &str,
) -> Result<Option<Stored<Provider>>, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"select provider_id, display_name, dialect, base_url, existing_cluster, ca_pem,
                  credential_place, stream_usage_option, query, header_names,
                      header_values, region, quirks, created_at, updated_at,
                  (select version from published_resource
                   where kind = 'provider' and id = provider_id) as version
           from provider where provider_id = $1"#,
        id,
    )
    .fetch_optional(tx)
    .await?;
    row.map(Row::into_stored).transpose()
}

async fn found(tx: &mut PgConnection, id: &str) -> Result<Stored<Provider>, Error> {
    load(tx, id)
        .await?
        .ok_or_else(|| Error::NotFound(Collection::Providers.name(id)))
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
        kind: Kind::Provider,
        id,
        name: Collection::Providers.name(id),
    }
}

fn header_names(provider: &Provider) -> Vec<String> {
    provider
        .headers
        .iter()
        .map(|(name, _)| name.clone())
        .collect()
}

fn header_values(provider: &Provider) -> Vec<String> {
    provider
        .headers
        .iter()
        .map(|(_, value)| value.clone())
        .collect()
}

fn quirk_words(provider: &Provider) -> Vec<String> {
    provider
        .quirks
        .iter()
        .map(|quirk| quirk.word().to_owned())
        .collect()
}

struct Row {
    provider_id: String,
    display_name: String,
    dialect: String,
    base_url: String,
    existing_cluster: String,
    ca_pem: String,
    credential_place: String,
    stream_usage_option: bool,
    query: String,
    header_names: Vec<String>,
    header_values: Vec<String>,
    region: String,
    quirks: Vec<String>,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    version: Option<i64>,
}

impl Row {
    fn into_stored(self) -> Result<Stored<Provider>, Error> {
        // Constraints keep the words; one that is not known was written by a newer release.
        let unreadable = |field: &str| Error::Unreadable {
            resource: format!("provider {}", self.provider_id),
            reason: format!("{field} holds a word that is not known here"),
        };
        let dialect = Dialect::from_word(&self.dialect).ok_or_else(|| unreadable("dialect"))?;
        let credential_place = CredentialPlace::from_word(&self.credential_place)
            .ok_or_else(|| unreadable("credential_place"))?;
        let quirks = self.quirks.iter().map(|word| Quirk::from_word(word));
        let quirks: Option<Vec<Quirk>> = quirks.collect();
        let quirks = quirks.ok_or_else(|| unreadable("quirks"))?;
        Ok(Stored {
            resource: Provider {
                id: self.provider_id,
                display_name: self.display_name,
                dialect,
                base_url: self.base_url,
                existing_cluster: self.existing_cluster,
                ca_pem: self.ca_pem,
                credential_place,
                stream_usage_option: self.stream_usage_option,
                query: self.query,
                headers: self
                    .header_names
                    .into_iter()
                    .zip(self.header_values)
                    .collect(),
                region: self.region,
                quirks,
            },
            created_at: self.created_at,
            updated_at: self.updated_at,
            config_version: self.version.map_or(0, unsigned),
        })
    }
}
