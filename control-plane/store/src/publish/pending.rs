//! Publishing what was edited past the API, and everything again after an upgrade.

use control_plane_core::fault::{Fault, OneLine};
use control_plane_core::published::{Kind, is_structural, kind_from_word};
use sqlx::PgConnection;

use super::{Candidate, Locked, lock, published, put, structure};
use crate::audit::{self, Entry};
use crate::store::retry;
use crate::stored::signed;
use crate::{Error, Store};

/// What came of publishing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The newest config version.
    pub version: u64,
    /// What stays unpublished, as `kind id: why`.
    pub unpublished: Vec<String>,
}

/// Resources taken up in one transaction, so that the lock on the config is short.
const BATCH: i64 = 1000;

/// A resource that cannot be published as it stands.
struct Refused {
    kind: Kind,
    id: String,
    why: String,
}

impl Store {
    /// Publishes every edited resource that compiles, having looked at all structural resources
    /// and references again: to be called at start, after [`Store::migrate`].
    ///
    /// # Errors
    /// When Postgres is away. What does not compile is no error: it is in the answer.
    pub async fn publish_pending(&self) -> Result<Publication, Error> {
        retry(|| async {
            let mut tx = self.begin("mark_structural").await?;
            lock(&mut tx).await?;
            mark_structural(&mut tx).await?;
            Ok(tx.commit().await?)
        })
        .await?;
        self.publish_edits().await
    }

    /// Publishes what `pending_edit` names.
    pub(crate) async fn publish_edits(&self) -> Result<Publication, Error> {
        loop {
            let (version, more) = retry(|| async {
                let mut tx = self.begin("publish_edits").await?;
                let done = self.publish_batch(&mut tx).await?;
                tx.commit().await?;
                Ok(done)
            })
            .await?;
            if !more {
                return Ok(Publication {
                    version,
                    unpublished: self.unpublished().await?,
                });
            }
        }
    }

    /// Why stored changes are not published, as `kind id: why`.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn unpublished(&self) -> Result<Vec<String>, Error> {
        let rows = sqlx::query!(
            r#"select kind, id, fault as "fault!" from pending_edit
               where fault is not null order by kind, id limit 100"#
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| format!("{} {}: {}", row.kind, row.id, row.fault))
            .collect())
    }

    /// Marks references whose secret is no longer the published one.
    pub(crate) async fn mark_changed_references(&self) -> Result<(), Error> {
        let rows = sqlx::query!("select credential_id from credential where envelope is null")
            .fetch_all(&self.pool)
            .await?;
        let mut connection = self.pool.acquire().await?;
        for row in rows {
            let id = row.credential_id;
            // One that cannot be read keeps its last published form; its fault is told once the
            // edit itself is looked at.
            let Ok(body) = self.candidate(&mut connection, Kind::Credential, &id).await else {
                continue;
            };
            let known = published(&mut connection, &self.secrets, Kind::Credential, &id).await?;
            if known.body != body {
                sqlx::query!(
                    "insert into pending_edit (kind, id) values ('credential', $1)
                     on conflict on constraint pending_edit_pkey do update set tried_version = null",
                    id,
                )
                .execute(&mut *connection)
                .await?;
            }
        }
        Ok(())
    }

    /// One batch: the version reached, and whether there is more to do.
    async fn publish_batch(&self, tx: &mut PgConnection) -> Result<(u64, bool), Error> {
        let state = lock(tx).await?;
        let rows = sqlx::query!(
            "select kind, id from pending_edit
             where tried_version is null or tried_version < $1
             order by kind, id limit $2",
            signed(state.version),
            BATCH,
        )
        .fetch_all(&mut *tx)
        .await?;
        let more = i64::try_from(rows.len()).is_ok_and(|count| count == BATCH);
        let mut candidates = Vec::new();
        let mut refused = Vec::new();
        for row in rows {
            let Some(kind) = kind_from_word(&row.kind) else {
                continue;
            };
            match self.candidate(tx, kind, &row.id).await {
                Ok(body) => {
                    let known = published(tx, &self.secrets, kind, &row.id).await?;
                    if known.body == body {
                        settle(tx, kind, &row.id).await?;
                    } else {
                        let id = row.id;
                        candidates.push(Candidate { kind, id, body });
                    }
                }
                Err(error) => refused.push(Refused {
                    kind,
                    why: told(error)?,
                    id: row.id,
                }),
            }
        }
        let accepted = select(tx, candidates, &mut refused).await?;
        let version = self.publish_accepted(tx, &state, &accepted).await?;
        for refused in &refused {
            note(tx, refused, version).await?;
        }
        Ok((version, more))
    }

    async fn publish_accepted(
        &self,
        tx: &mut PgConnection,
        state: &Locked,
        accepted: &[Candidate],
    ) -> Result<u64, Error> {
        if accepted.is_empty() {
            return Ok(state.version);
        }
        let version = self.write(tx, state, accepted).await?;
        for candidate in accepted {
            settle(tx, candidate.kind, &candidate.id).await?;
            let resource = format!("{} {}", candidate.kind.word(), candidate.id);
            let entry = Entry {
                actor: "publisher",
                method: "PublishPending",
                resource: &resource,
                config_version: version,
                state: "",
            };
            audit::write(tx, &entry).await?;
        }
        Ok(version)
    }
}

/// Everything whose published form may depend on more than its row: the rest of the config, this
/// release, or what a reference points at.
async fn mark_structural(tx: &mut PgConnection) -> Result<(), Error> {
    sqlx::query!(
        "insert into pending_edit (kind, id)
         select 'provider', provider_id from provider
         union all select 'model', model_id from model
         union all select 'credential', credential_id from credential
         union all select 'limit', limit_id from limit_definition
         union all select unnest(array['rule_set', 'price_book', 'settings']), 'default'
         on conflict on constraint pending_edit_pkey do update set tried_version = null"
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// The candidates that may be published together; the others are added to the refused.
async fn select(
    tx: &mut PgConnection,
    candidates: Vec<Candidate>,
    refused: &mut Vec<Refused>,
) -> Result<Vec<Candidate>, Error> {
    let (mut waiting, mut accepted): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|candidate| is_structural(candidate.kind));
    if waiting.is_empty() {
        return Ok(accepted);
    }
    let mut current = structure(tx).await?;
    let mut all = current.clone();
    for candidate in &waiting {
        put(
            &mut all,
            candidate.kind,
            &candidate.id,
            candidate.body.as_ref(),
        )?;
    }
    if current.check_next(&all, None).is_ok() {
        accepted.append(&mut waiting);
        return Ok(accepted);
    }
    // Something is wrong with some of them: one by one, until none of the rest fits any more.
    loop {
        let mut faulty = Vec::new();
        let before = accepted.len();
        for candidate in waiting {
            let mut next = current.clone();
            put(
                &mut next,
                candidate.kind,
                &candidate.id,
                candidate.body.as_ref(),
            )?;
            let edited = Some((candidate.kind, candidate.id.as_str()));
            match current.check_next(&next, edited) {
                Ok(()) => {
                    current = next;
                    accepted.push(candidate);
                }
                Err(faults) => faulty.push((candidate, faults)),
            }
        }
        if accepted.len() == before {
            refused.extend(faulty.into_iter().map(|(candidate, faults)| Refused {
                kind: candidate.kind,
                id: candidate.id,
                why: one_line(&faults),
            }));
            return Ok(accepted);
        }
        waiting = faulty.into_iter().map(|(candidate, _)| candidate).collect();
    }
}

/// Keeps why a resource was refused, and logs it when that is new.
async fn note(tx: &mut PgConnection, refused: &Refused, version: u64) -> Result<(), Error> {
    let Refused { kind, id, why } = refused;
    let row = sqlx::query!(
        r#"with old as (select fault from pending_edit where kind = $1 and id = $2)
           update pending_edit set fault = $3, tried_version = $4
           where kind = $1 and id = $2
           returning (select fault from old) as old_fault"#,
        kind.word(),
        id,
        why,
        signed(version),
    )
    .fetch_optional(tx)
    .await?;
    if row.is_some_and(|row| row.old_fault.as_ref() != Some(why)) {
        tracing::warn!(
            kind = kind.word(),
            id,
            why,
            "an edited resource stays unpublished"
        );
    }
    Ok(())
}

async fn settle(tx: &mut PgConnection, kind: Kind, id: &str) -> Result<(), Error> {
    sqlx::query!(
        "delete from pending_edit where kind = $1 and id = $2",
        kind.word(),
        id,
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Why a stored row cannot be published; errors of the database go on.
fn told(error: Error) -> Result<String, Error> {
    match error {
        Error::Invalid(faults) => Ok(one_line(&faults)),
        Error::Unreadable { reason, .. } => Ok(reason),
        error => Err(error),
    }
}

fn one_line(faults: &[Fault]) -> String {
    const MAX_FAULTS: usize = 20;
    let shown = faults.get(..MAX_FAULTS).unwrap_or(faults);
    OneLine(shown).to_string().chars().take(4000).collect()
}
