//! Limits as edited.

use control_plane_core::name::Collection;
use control_plane_core::published::Kind;
use control_plane_core::resource::{
    Enforcement, Limit, LimitSubject, LimitUnit, LimitWindow, OnExceed, OnUnavailable, OnUnbounded,
};
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::edit::Edit;
use crate::store::retry;
use crate::stored::{signed, unsigned};
use crate::{Actor, Error, Page, PageRequest, Store, Stored};

const LIST: &str = "limits";

impl Store {
    /// Creates a limit. An id that was used before must count the same as it did then: its
    /// buckets are still there.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::AlreadyExists`], or when Postgres is away.
    pub async fn create_limit(&self, actor: &Actor, limit: Limit) -> Result<Stored<Limit>, Error> {
        limit.validate().map_err(Error::Invalid)?;
        let edit = edit("create_limit", "CreateLimit", actor, &limit.id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            check_subject(open.tx(), &limit).await?;
            sqlx::query!(
                "insert into limit_definition (limit_id, display_name, subject, subject_id, models,
                   providers, rules, unit, amount, limit_window, time_zone, enforcement, on_exceed,
                   on_unavailable, outage_allowance, on_unbounded, burst, clamp, thresholds,
                   disabled)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                   $17, $18, $19, $20)",
                limit.id,
                limit.display_name,
                limit.subject.word(),
                limit.subject_id,
                &limit.models,
                &limit.providers,
                &limit.rules,
                limit.unit.word(),
                signed(limit.amount),
                limit.window.word(),
                limit.time_zone,
                limit.enforcement.map(Enforcement::word),
                limit.on_exceed.map(OnExceed::word),
                limit.on_unavailable.map(OnUnavailable::word),
                signed(limit.outage_allowance),
                limit.on_unbounded.map(OnUnbounded::word),
                signed(limit.burst),
                limit.clamp,
                &percents(&limit),
                limit.disabled,
            )
            .execute(open.tx())
            .await
            .map_err(|error| Error::of_write(error, &edit.name))?;
            open.publish().await?;
            let stored = found(open.tx(), &limit.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// One limit.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`], or when Postgres is away.
    pub async fn limit(&self, id: &str) -> Result<Stored<Limit>, Error> {
        found(&mut *self.pool.acquire().await?, id).await
    }

    /// Limits by id.
    ///
    /// # Errors
    /// [`Error::BadPageToken`], [`Error::Unreadable`], or when Postgres is away.
    pub async fn limits(&self, request: &PageRequest) -> Result<Page<Stored<Limit>>, Error> {
        let after: Option<String> = request.after(LIST)?;
        let rows = sqlx::query_as!(
            Row,
            r#"select limit_id, display_name, subject, subject_id, models, providers, rules, unit,
                      amount, limit_window, time_zone, enforcement, on_exceed, on_unavailable,
                      outage_allowance, on_unbounded, burst, clamp, thresholds, disabled,
                      created_at, updated_at,
                      (select version from published_resource
                       where kind = 'limit' and id = limit_id) as version
               from limit_definition where limit_id > $1 order by limit_id limit $2"#,
            after.unwrap_or_default(),
            request.limit(),
        )
        .fetch_all(&self.pool)
        .await?;
        let items: Vec<_> = rows
            .into_iter()
            .map(Row::into_stored)
            .collect::<Result<_, _>>()?;
        Ok(request.page(LIST, items, |limit: &Stored<Limit>| {
            limit.resource.id.clone()
        }))
    }

    /// Replaces a limit. Its buckets have the new amount when this returns.
    ///
    /// # Errors
    /// [`Error::Invalid`], also when what it counts would change, [`Error::NotFound`], or when
    /// Postgres is away.
    pub async fn update_limit(&self, actor: &Actor, limit: Limit) -> Result<Stored<Limit>, Error> {
        limit.validate().map_err(Error::Invalid)?;
        let edit = edit("update_limit", "UpdateLimit", actor, &limit.id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let done = sqlx::query!(
                "update limit_definition set display_name = $2, subject = $3, subject_id = $4,
                   models = $5, providers = $6, rules = $7, unit = $8, amount = $9,
                   limit_window = $10, time_zone = $11, enforcement = $12, on_exceed = $13,
                   on_unavailable = $14, outage_allowance = $15, on_unbounded = $16, burst = $17,
                   clamp = $18, thresholds = $19, disabled = $20
                 where limit_id = $1",
                limit.id,
                limit.display_name,
                limit.subject.word(),
                limit.subject_id,
                &limit.models,
                &limit.providers,
                &limit.rules,
                limit.unit.word(),
                signed(limit.amount),
                limit.window.word(),
                limit.time_zone,
                limit.enforcement.map(Enforcement::word),
                limit.on_exceed.map(OnExceed::word),
                limit.on_unavailable.map(OnUnavailable::word),
                signed(limit.outage_allowance),
                limit.on_unbounded.map(OnUnbounded::word),
                signed(limit.burst),
                limit.clamp,
                &percents(&limit),
                limit.disabled,
            )
            .execute(open.tx())
            .await
            .map_err(|error| Error::of_write(error, &edit.name))?;
            super::updated(done.rows_affected(), &edit.name)?;
            open.publish().await?;
            let stored = found(open.tx(), &limit.id).await?;
            open.commit(stored).await
        })
        .await
    }

    /// Deletes a limit; the config version that holds the deletion. Its buckets stay.
    ///
    /// # Errors
    /// [`Error::NotFound`], or when Postgres is away.
    pub async fn delete_limit(&self, actor: &Actor, id: &str) -> Result<u64, Error> {
        let edit = edit("delete_limit", "DeleteLimit", actor, id);
        retry(|| async {
            let mut open = self.open(&edit).await?;
            let done = sqlx::query!("delete from limit_definition where limit_id = $1", id)
                .execute(open.tx())
                .await?;
            super::updated(done.rows_affected(), &edit.name)?;
            open.publish().await?;
            open.commit_removal().await
        })
        .await
    }
}

/// A limit, if it is there.
pub(crate) async fn load(tx: &mut PgConnection, id: &str) -> Result<Option<Stored<Limit>>, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"select limit_id, display_name, subject, subject_id, models, providers, rules, unit,
                  amount, limit_window, time_zone, enforcement, on_exceed, on_unavailable,
                  outage_allowance, on_unbounded, burst, clamp, thresholds, disabled, created_at,
                  updated_at,
                  (select version from published_resource
                   where kind = 'limit' and id = limit_id) as version
           from limit_definition where limit_id = $1"#,
        id,
    )
    .fetch_optional(tx)
    .await?;
    row.map(Row::into_stored).transpose()
}

async fn found(tx: &mut PgConnection, id: &str) -> Result<Stored<Limit>, Error> {
    load(tx, id)
        .await?
        .ok_or_else(|| Error::NotFound(Collection::Limits.name(id)))
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
        kind: Kind::Limit,
        id,
        name: Collection::Limits.name(id),
    }
}

/// Whom a limit names has to be there when it is created, and stays while it does.
async fn check_subject(tx: &mut PgConnection, limit: &Limit) -> Result<(), Error> {
    let id = limit.subject_id.as_str();
    let (team, key) = match limit.subject {
        _ if id.is_empty() => return Ok(()),
        LimitSubject::Everything => return Ok(()),
        LimitSubject::Team => (id, ""),
        LimitSubject::Key => ("", id),
        LimitSubject::EndUser => (id.split('/').next().unwrap_or(id), ""),
    };
    let row = sqlx::query!(
        r#"select exists (select from team where team_id = $1)
               or exists (select from virtual_key where virtual_key_id = $2) as "is_there!""#,
        team,
        key,
    )
    .fetch_one(tx)
    .await?;
    if row.is_there {
        Ok(())
    } else {
        Err(Error::invalid(
            "values.subject_id",
            "names nobody that exists",
        ))
    }
}

fn percents(limit: &Limit) -> Vec<i32> {
    let percents = limit.thresholds.iter();
    percents
        .map(|percent| i32::try_from(*percent).unwrap_or(i32::MAX))
        .collect()
}

struct Row {
    limit_id: String,
    display_name: String,
    subject: String,
    subject_id: String,
    models: Vec<String>,
    providers: Vec<String>,
    rules: Vec<String>,
    unit: String,
    amount: i64,
    limit_window: String,
    time_zone: String,
    enforcement: Option<String>,
    on_exceed: Option<String>,
    on_unavailable: Option<String>,
    outage_allowance: i64,
    on_unbounded: Option<String>,
    burst: i64,
    clamp: bool,
    thresholds: Vec<i32>,
    disabled: bool,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    version: Option<i64>,
}

impl Row {
    fn into_stored(self) -> Result<Stored<Limit>, Error> {
        let name = Collection::Limits.name(&self.limit_id);
        let unknown = |column: &str| Error::Unreadable {
            resource: name.clone(),
            reason: format!("{column} is not a word that is known here"),
        };
        let thresholds = self.thresholds.into_iter();
        Ok(Stored {
            resource: Limit {
                subject: LimitSubject::from_word(&self.subject)
                    .ok_or_else(|| unknown("subject"))?,
                unit: LimitUnit::from_word(&self.unit).ok_or_else(|| unknown("unit"))?,
                window: LimitWindow::from_word(&self.limit_window)
                    .ok_or_else(|| unknown("limit_window"))?,
                enforcement: known(self.enforcement.as_deref(), Enforcement::from_word)
                    .map_err(|()| unknown("enforcement"))?,
                on_exceed: known(self.on_exceed.as_deref(), OnExceed::from_word)
                    .map_err(|()| unknown("on_exceed"))?,
                on_unavailable: known(self.on_unavailable.as_deref(), OnUnavailable::from_word)
                    .map_err(|()| unknown("on_unavailable"))?,
                on_unbounded: known(self.on_unbounded.as_deref(), OnUnbounded::from_word)
                    .map_err(|()| unknown("on_unbounded"))?,
                id: self.limit_id,
                display_name: self.display_name,
                subject_id: self.subject_id,
                models: self.models,
                providers: self.providers,
                rules: self.rules,
                amount: unsigned(self.amount),
                time_zone: self.time_zone,
                outage_allowance: unsigned(self.outage_allowance),
                burst: unsigned(self.burst),
                clamp: self.clamp,
                thresholds: thresholds
                    .map(|percent| u32::try_from(percent).unwrap_or(0))
                    .collect(),
                disabled: self.disabled,
            },
            created_at: self.created_at,
            updated_at: self.updated_at,
            config_version: self.version.map_or(0, unsigned),
        })
    }
}

/// The value of a word, if there is one; a word that is not known is an error.
fn known<T>(word: Option<&str>, from_word: fn(&str) -> Option<T>) -> Result<Option<T>, ()> {
    match word {
        None => Ok(None),
        Some(word) => from_word(word).map(Some).ok_or(()),
    }
}
