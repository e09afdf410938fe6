//! Reading what nodes are sent.

use control_plane_core::published::{Change, Published, kind_from_word};

use crate::publish::open;
use crate::store::retry;
use crate::stored::{signed, unsigned};
use crate::{Error, Store};

impl Store {
    /// Everything published, with secrets in the clear: for memory only.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn load_published(&self) -> Result<Published, Error> {
        let mut published = Published::new(String::new(), 0);
        self.refresh_published(&mut published).await?;
        Ok(published)
    }

    /// Brings what is in memory up to date. It is replaced as a whole when it belongs to another
    /// database, or to a later state than this one is in.
    ///
    /// # Errors
    /// When Postgres is away; what is in memory stays as it is.
    pub async fn refresh_published(&self, published: &mut Published) -> Result<(), Error> {
        let state = self.read_state(published.version()).await?;
        let continues = state.nonce == published.nonce() && state.version >= published.version();
        if continues {
            published.apply(state.version, state.changes);
            return Ok(());
        }
        let state = if published.version() == 0 {
            state
        } else {
            self.read_state(0).await?
        };
        let mut whole = Published::new(state.nonce, state.pruned_version);
        whole.apply(state.version, state.changes);
        *published = whole;
        Ok(())
    }

    /// The newest config version.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn config_version(&self) -> Result<u64, Error> {
        let row = sqlx::query!("select version from config_state")
            .fetch_one(&self.pool)
            .await?;
        Ok(unsigned(row.version))
    }

    /// Forgets removals up to a config version: nodes that are further behind get everything.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn prune_removals(&self, through_version: u64) -> Result<(), Error> {
        retry(|| async {
            let mut tx = self.begin("prune_removals").await?;
            let row = sqlx::query!(
                "update config_state
                 set pruned_version = greatest(pruned_version, least($1, version))
                 returning pruned_version",
                signed(through_version),
            )
            .fetch_one(&mut *tx)
            .await?;
            sqlx::query!(
                "delete from published_resource where body is null and version <= $1",
                row.pruned_version,
            )
            .execute(&mut *tx)
            .await?;
            Ok(tx.commit().await?)
        })
        .await
    }

    /// Forgets removals that are older than nodes may be.
    pub(crate) async fn prune_old_removals(&self) -> Result<(), Error> {
        let row = sqlx::query!(
            "select max(config_version) as version from audit_entry
             where occurred_at < turnpike_now() - interval '7 days'"
        )
        .fetch_one(&self.pool)
        .await?;
        match row.version {
            Some(version) => self.prune_removals(unsigned(version)).await,
            None => Ok(()),
        }
    }

    /// What changed after a version, as of one moment: one statement, one snapshot.
    async fn read_state(&self, after: u64) -> Result<State, Error> {
        let rows = sqlx::query!(
            r#"select s.version as state_version, s.nonce, s.pruned_version,
                      r.kind as "kind?", r.id as "id?", r.version as "version?", r.body
               from config_state s left join published_resource r on r.version > $1"#,
            signed(after),
        )
        .fetch_all(&self.pool)
        .await?;
        let mut state = State::default();
        for row in rows {
            state.version = unsigned(row.state_version);
            state.nonce = row.nonce;
            state.pruned_version = unsigned(row.pruned_version);
            let (Some(word), Some(id), Some(version)) = (row.kind, row.id, row.version) else {
                continue;
            };
            let Some(kind) = kind_from_word(&word) else {
                tracing::warn!(kind = word, "a published kind is not known to this release");
                continue;
            };
            let sealed = row.body.is_some();
            let body = row
                .body
                .and_then(|body| open(&self.secrets, kind, &id, body));
            // One that does not open here is not gone: nodes keep what they have of it.
            if sealed && body.is_none() {
                continue;
            }
            state.changes.push(Change {
                kind,
                id,
                version: unsigned(version),
                body,
            });
        }
        Ok(state)
    }
}

#[derive(Default)]
struct State {
    version: u64,
    nonce: String,
    pruned_version: u64,
    changes: Vec<Change>,
}
