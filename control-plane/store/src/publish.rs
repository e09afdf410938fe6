//! From edited to published: what compiles is published, what does not stays as it was and says
//! why.
//!
//! Triggers note every edited resource in `pending_edit`. A mutation through the API publishes its
//! own resource or is refused. Rows that were changed past the API, references whose secret
//! changed, and everything after an upgrade are taken up by [`Store::publish_pending`].

mod candidate;
mod pending;

pub use pending::Publication;

use control_plane_core::compile::Structure;
use control_plane_core::published::{Body, Kind, is_structural, kind_from_word};
use sqlx::PgConnection;

use crate::limits;
use crate::secret_reader::{SecretReader, published_owner};
use crate::stored::{signed, unsigned};
use crate::{Error, Store};

/// Channel on which replicas are told of a new config version.
pub(crate) const CHANNEL: &str = "turnpike_config";

/// The state of the config, whose row this transaction has locked.
pub(crate) struct Locked {
    pub(crate) version: u64,
}

/// A resource that is about to be published; no body: removed.
pub(crate) struct Candidate {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    pub(crate) body: Option<Body>,
}

/// Locks the config for the rest of the transaction.
pub(crate) async fn lock(tx: &mut PgConnection) -> Result<Locked, Error> {
    let row = sqlx::query!("select version from config_state for update")
        .fetch_one(tx)
        .await?;
    Ok(Locked {
        version: unsigned(row.version),
    })
}

impl Store {
    /// Publishes one edited resource, or refuses it. The config version that holds it: a new one,
    /// unless what nodes are sent did not change.
    pub(crate) async fn publish_one(
        &self,
        tx: &mut PgConnection,
        state: &Locked,
        kind: Kind,
        id: &str,
    ) -> Result<u64, Error> {
        let body = self.candidate(tx, kind, id).await?;
        let known = published(tx, &self.secrets, kind, id).await?;
        sqlx::query!(
            "delete from pending_edit where kind = $1 and id = $2",
            kind.word(),
            id,
        )
        .execute(&mut *tx)
        .await?;
        if known.body == body {
            return Ok(known.version.unwrap_or(state.version));
        }
        if is_structural(kind) {
            let before = structure(tx).await?;
            let mut next = before.clone();
            put(&mut next, kind, id, body.as_ref())?;
            before
                .check_next(&next, Some((kind, id)))
                .map_err(Error::Invalid)?;
        }
        let candidate = Candidate {
            kind,
            id: id.to_owned(),
            body,
        };
        self.write(tx, state, &[candidate]).await
    }

    /// Writes published forms under the next version.
    async fn write(
        &self,
        tx: &mut PgConnection,
        state: &Locked,
        candidates: &[Candidate],
    ) -> Result<u64, Error> {
        let version = state.version + 1;
        for candidate in candidates {
            let body = candidate.body.as_ref().map(Body::bytes);
            let body = match (candidate.kind, body) {
                (Kind::Credential, Some(plain)) => Some(self.seal(&candidate.id, plain)?),
                (_, body) => body.map(<[u8]>::to_vec),
            };
            sqlx::query!(
                "insert into published_resource (kind, id, version, body) values ($1, $2, $3, $4)
                 on conflict on constraint published_resource_pkey
                 do update set version = excluded.version, body = excluded.body",
                candidate.kind.word(),
                candidate.id,
                signed(version),
                body,
            )
            .execute(&mut *tx)
            .await?;
            if let (Kind::Limit, Some(body)) = (candidate.kind, &candidate.body) {
                limits::apply_published(tx, &candidate.id, body.bytes()).await?;
            }
        }
        sqlx::query!("update config_state set version = $1", signed(version))
            .execute(&mut *tx)
            .await?;
        // Sent at commit, and only then.
        sqlx::query!("select pg_notify($1, $2)", CHANNEL, version.to_string())
            .fetch_one(tx)
            .await?;
        Ok(version)
    }

    fn seal(&self, id: &str, plain: &[u8]) -> Result<Vec<u8>, Error> {
        self.secrets
            .seal(plain, &published_owner(id))
            .map_err(|source| Error::Sealed {
                resource: format!("credential {id}"),
                source,
            })
    }
}

/// The last published state of a resource.
struct Known {
    /// None: it was never published.
    version: Option<u64>,
    body: Option<Body>,
}

async fn published(
    tx: &mut PgConnection,
    secrets: &SecretReader,
    kind: Kind,
    id: &str,
) -> Result<Known, Error> {
    let row = sqlx::query!(
        "select version, body from published_resource where kind = $1 and id = $2",
        kind.word(),
        id,
    )
    .fetch_optional(tx)
    .await?;
    let Some(row) = row else {
        return Ok(Known {
            version: None,
            body: None,
        });
    };
    Ok(Known {
        version: Some(unsigned(row.version)),
        body: row.body.and_then(|stored| open(secrets, kind, id, stored)),
    })
}

/// The message of a stored body; none for a credential whose master key is gone: it can be given
/// a new secret, and the rest of the config goes on.
pub(crate) fn open(secrets: &SecretReader, kind: Kind, id: &str, stored: Vec<u8>) -> Option<Body> {
    if kind != Kind::Credential {
        return Some(Body::new(stored.into()));
    }
    match secrets.open(&stored, &published_owner(id)) {
        Ok(plain) => Some(Body::new(plain)),
        Err(error) => {
            tracing::error!(credential = id, %error, "a published credential does not open");
            None
        }
    }
}

/// Everything published that is compiled.
async fn structure(tx: &mut PgConnection) -> Result<Structure, Error> {
    let rows = sqlx::query!(
        r#"select kind, id, body as "body!" from published_resource
           where body is not null
             and kind in ('provider', 'model', 'rule_set', 'price_book', 'settings', 'limit')"#
    )
    .fetch_all(tx)
    .await?;
    let mut structure = Structure::default();
    for row in rows {
        let Some(kind) = kind_from_word(&row.kind) else {
            continue;
        };
        put(
            &mut structure,
            kind,
            &row.id,
            Some(&Body::new(row.body.into())),
        )?;
    }
    Ok(structure)
}

fn put(structure: &mut Structure, kind: Kind, id: &str, body: Option<&Body>) -> Result<(), Error> {
    structure
        .set(kind, id, body.map(Body::bytes))
        .map_err(|error| Error::Unreadable {
            resource: format!("published {kind} {id}"),
            reason: error.to_string(),
        })
}
