//! The settings of the deployment.

use control_plane_core::name::SETTINGS;
use control_plane_core::published::Kind;
use control_plane_core::resource::Settings;
use sqlx::PgConnection;

use super::SINGLETON;
use crate::edit::Edit;
use crate::store::retry;
use crate::stored::unsigned;
use crate::{Actor, Error, Store, Stored};

impl Store {
    /// The settings.
    ///
    /// # Errors
    /// [`Error::Unreadable`], or when Postgres is away.
    pub async fn settings(&self) -> Result<Stored<Settings>, Error> {
        load(&mut *self.pool.acquire().await?).await
    }

    /// Replaces the settings.
    ///
    /// # Errors
    /// [`Error::Invalid`], or when Postgres is away.
    pub async fn update_settings(
        &self,
        actor: &Actor,
        settings: Settings,
    ) -> Result<Stored<Settings>, Error> {
        let edit = Edit {
            transaction: "update_settings",
            method: "UpdateSettings",
            actor,
            kind: Kind::Settings,
            id: SINGLETON,
            name: SETTINGS.to_owned(),
        };
        let json = super::to_json(&settings, SETTINGS)?;
        retry(|| async {
            let mut open = self.open(&edit).await?;
            sqlx::query!("update settings set setting = $1::text::jsonb", json)
                .execute(open.tx())
                .await?;
            open.publish().await?;
            let stored = load(open.tx()).await?;
            open.commit(stored).await
        })
        .await
    }
}

/// The settings.
pub(crate) async fn load(tx: &mut PgConnection) -> Result<Stored<Settings>, Error> {
    let row = sqlx::query!(
        r#"select setting::text as "setting!", created_at, updated_at,
                  (select version from published_resource where kind = 'settings') as version
           from settings"#
    )
    .fetch_one(tx)
    .await?;
    Ok(Stored {
        resource: super::from_json(&row.setting, SETTINGS)?,
        created_at: row.created_at,
        updated_at: row.updated_at,
        config_version: row.version.map_or(0, unsigned),
    })
}
