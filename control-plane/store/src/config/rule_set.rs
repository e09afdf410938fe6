//! The rule set.

use control_plane_core::name::RULE_SET;
use control_plane_core::published::Kind;
use control_plane_core::resource::RuleSet;
use sqlx::PgConnection;

use super::SINGLETON;
use crate::edit::Edit;
use crate::store::retry;
use crate::stored::unsigned;
use crate::{Actor, Error, Store, Stored};

impl Store {
    /// The rule set; without rules until there are some.
    ///
    /// # Errors
    /// [`Error::Unreadable`], or when Postgres is away.
    pub async fn rule_set(&self) -> Result<Stored<RuleSet>, Error> {
        load(&mut *self.pool.acquire().await?).await
    }

    /// Replaces the rule set.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every fault and its place, or when Postgres is away.
    pub async fn update_rule_set(
        &self,
        actor: &Actor,
        rule_set: RuleSet,
    ) -> Result<Stored<RuleSet>, Error> {
        rule_set.validate().map_err(Error::Invalid)?;
        let edit = Edit {
            transaction: "update_rule_set",
            method: "UpdateRuleSet",
            actor,
            kind: Kind::RuleSet,
            id: SINGLETON,
            name: RULE_SET.to_owned(),
        };
        let rules = super::to_json(&rule_set.rules, RULE_SET)?;
        retry(|| async {
            let mut open = self.open(&edit).await?;
            sqlx::query!("update rule_set set rules = $1::text::jsonb", rules)
                .execute(open.tx())
                .await?;
            open.publish().await?;
            let stored = load(open.tx()).await?;
            open.commit(stored).await
        })
        .await
    }
}

/// The rule set.
pub(crate) async fn load(tx: &mut PgConnection) -> Result<Stored<RuleSet>, Error> {
    let row = sqlx::query!(
        r#"select rules::text as "rules!", created_at, updated_at,
                  (select version from published_resource where kind = 'rule_set') as version
           from rule_set"#
    )
    .fetch_one(tx)
    .await?;
    let rules = super::from_json(&row.rules, RULE_SET)?;
    Ok(Stored {
        resource: RuleSet { rules },
        created_at: row.created_at,
        updated_at: row.updated_at,
        config_version: row.version.map_or(0, unsigned),
    })
}
