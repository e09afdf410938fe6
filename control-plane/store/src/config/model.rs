//! Models and their targets.

use control_plane_core::fault::Faults;
use control_plane_core::name::Collection;
use control_plane_core::published::Kind;
use control_plane_core::resource::{Capability, Effort, Model, Target};
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::edit::Edit;
use crate::store::retry;
use crate::stored::{signed, unsigned};
use crate::{Actor, Error, Page, PageRequest, Store, Stored};

const LIST: &str = "models";

impl Store {
    /// Creates a model.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::AlreadyExists`], or when Postgres is away.
    pub async fn create_model(&self, actor: &Actor, model: Model) -> Result<Stored<Model>, Error> {
        model.validate().map_err(Error::Invalid)?;
        let edit = edit("create_model", "CreateModel", actor, &model.id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            sqlx::query!(
                "insert into model (model_id, capabilities, efforts, context_window, disabled)
                 values ($1, $2, $3, $4, $5)",
                model.id,
                &words(&model.capabilities, Capability::word),
                &words(&model.efforts, Effort::word),
                signed(model.context_window),
                model.disabled,
            )
            .execute(open.tx())
            .await
            .map_err(|error| Error::of_write(error, &edit.name))?;
            write_targets(open.tx(), &model).await?;
            open.publish().await?;
            let stored = found(open.tx(), &model.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// One model.
    ///
    /// # Errors
    /// [`Error::NotFound`], or when Postgres is away.
    pub async fn model(&self, id: &str) -> Result<Stored<Model>, Error> {
        found(&mut *self.pool.acquire().await?, id).await
    }

    /// Models by public name.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], or when Postgres is away.
    pub async fn models(&self, request: &PageRequest) -> Result<Page<Stored<Model>>, Error> {
        let after: Option<String> = request.after(LIST)?;
        let mut connection = self.pool.acquire().await?;
        let rows = sqlx::query_as!(
            Row,
            r#"select model_id, capabilities, efforts, context_window, disabled, created_at,
                      updated_at,
                      (select version from published_resource
                       where kind = 'model' and id = model_id) as version
               from model where model_id > $1 order by model_id limit $2"#,
            after.unwrap_or_default(),
            request.limit(),
        )
        .fetch_all(&mut *connection)
        .await?;
        let mut items: Vec<_> = rows.into_iter().map(Row::into_stored).collect();
        load_targets(&mut connection, &mut items).await?;
        Ok(request.page(LIST, items, |model: &Stored<Model>| {
            model.resource.id.clone()
        }))
    }

    /// Replaces a model.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NotFound`], or when Postgres is away.
    pub async fn update_model(&self, actor: &Actor, model: Model) -> Result<Stored<Model>, Error> {
        model.validate().map_err(Error::Invalid)?;
        let edit = edit("update_model", "UpdateModel", actor, &model.id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let done = sqlx::query!(
                "update model set capabilities = $2, efforts = $3, context_window = $4,
                   disabled = $5
                 where model_id = $1",
                model.id,
                &words(&model.capabilities, Capability::word),
                &words(&model.efforts, Effort::word),
                signed(model.context_window),
                model.disabled,
            )
            .execute(open.tx())
            .await?;
            super::updated(done.rows_affected(), &edit.name)?;
            write_targets(open.tx(), &model).await?;
            open.publish().await?;
            let stored = found(open.tx(), &model.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// Deletes a model; the config version that holds the deletion.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::InUse`] while a limit or a rule names it, or when Postgres is
    /// away.
    pub async fn delete_model(&self, actor: &Actor, id: &str) -> Result<u64, Error> {
        let edit = edit("delete_model", "DeleteModel", actor, id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let users = sqlx::query_scalar!(
                r#"select 'limits/' || limit_id as "by!" from limit_definition
                   where $1 = any(models)
                   union all
                   select 'rule ' || coalesce(rule ->> 'name', '')
                   from rule_set, jsonb_array_elements(rules) as rule
                   where rule -> 'models' ? $1 or rule ->> 'match_model' = $1
                      or rule -> 'context_length_models' ? $1
                      or rule -> 'content_policy_models' ? $1
                   order by 1"#,
                id,
            )
            .fetch_all(open.tx())
            .await?;
            super::unused(users, &edit.name)?;
            let done = sqlx::query!("delete from model where model_id = $1", id)
                .execute(open.tx())
                .await?;
            super::updated(done.rows_affected(), &edit.name)?;
            open.publish().await?;
            open.commit_removal().await
        })
        .await
    }
}

/// A model, if it is there.
pub(crate) async fn load(tx: &mut PgConnection, id: &str) -> Result<Option<Stored<Model>>, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"select model_id, capabilities, efforts, context_window, disabled, created_at,
                  updated_at,
                  (select version from published_resource
                   where kind = 'model' and id = model_id) as version
           from model where model_id = $1"#,
        id,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let mut items: Vec<_> = row.map(Row::into_stored).into_iter().collect();
    load_targets(tx, &mut items).await?;
    Ok(items.pop())
}

async fn found(tx: &mut PgConnection, id: &str) -> Result<Stored<Model>, Error> {
    load(tx, id)
        .await?
        .ok_or_else(|| Error::NotFound(Collection::Models.name(id)))
}

/// Replaces the targets of a model; all providers that do not exist are named at once.
async fn write_targets(tx: &mut PgConnection, model: &Model) -> Result<(), Error> {
    let wanted: Vec<String> = model.targets.iter().map(|t| t.provider.clone()).collect();
    let there = sqlx::query_scalar!(
        "select provider_id from provider where provider_id = any($1)",
        &wanted,
    )
    .fetch_all(&mut *tx)
    .await?;
    let mut faults = Faults::default();
    for (position, provider) in wanted.iter().enumerate() {
        if !there.contains(provider) {
            faults.push(
                format!("targets[{position}].provider"),
                format!("there is no provider {provider}"),
            );
        }
    }
    faults.into_result().map_err(Error::Invalid)?;
    sqlx::query!("delete from model_target where model_id = $1", model.id)
        .execute(&mut *tx)
        .await?;
    for (position, target) in (1_i16..).zip(&model.targets) {
        sqlx::query!(
            "insert into model_target
               (model_id, position, provider_id, upstream_model, first_token_timeout_ms)
             values ($1, $2, $3, $4, $5)",
            model.id,
            position,
            target.provider,
            target.upstream_model,
            i64::from(target.first_token_timeout_ms),
        )
        .execute(&mut *tx)
        .await
        .map_err(|error| Error::of_write(error, &model.id))?;
    }
    Ok(())
}

async fn load_targets(tx: &mut PgConnection, models: &mut [Stored<Model>]) -> Result<(), Error> {
    let ids: Vec<String> = models.iter().map(|m| m.resource.id.clone()).collect();
    let rows = sqlx::query!(
        "select model_id, provider_id, upstream_model, first_token_timeout_ms from model_target
         where model_id = any($1) order by model_id, position",
        &ids,
    )
    .fetch_all(tx)
    .await?;
    for row in rows {
        // Both are in the order of the names.
        let found = models.binary_search_by(|model| model.resource.id.cmp(&row.model_id));
        if let Some(model) = found.ok().and_then(|at| models.get_mut(at)) {
            model.resource.targets.push(Target {
                provider: row.provider_id,
                upstream_model: row.upstream_model,
                first_token_timeout_ms: u32::try_from(row.first_token_timeout_ms).unwrap_or(0),
            });
        }
    }
    Ok(())
}

fn words<T: Copy>(values: &[T], word: fn(T) -> &'static str) -> Vec<String> {
    values.iter().map(|value| word(*value).to_owned()).collect()
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
        kind: Kind::Model,
        id,
        name: Collection::Models.name(id),
    }
}

struct Row {
    model_id: String,
    capabilities: Vec<String>,
    efforts: Vec<String>,
    context_window: i64,
    disabled: bool,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    version: Option<i64>,
}

impl Row {
    /// Without its targets. Constraints keep the words; one of a newer release is left out.
    fn into_stored(self) -> Stored<Model> {
        let capabilities = self.capabilities.iter();
        let efforts = self.efforts.iter();
        Stored {
            resource: Model {
                id: self.model_id,
                targets: Vec::new(),
                capabilities: capabilities
                    .filter_map(|word| Capability::from_word(word))
                    .collect(),
                efforts: efforts.filter_map(|word| Effort::from_word(word)).collect(),
                context_window: unsigned(self.context_window),
                disabled: self.disabled,
            },
            created_at: self.created_at,
            updated_at: self.updated_at,
            config_version: self.version.map_or(0, unsigned),
        }
    }
}
