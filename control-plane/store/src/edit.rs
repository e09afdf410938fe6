//! A mutation: rows, config version, published form, audit row and notification in one
//! transaction.

use control_plane_core::published::Kind;
use serde::Serialize;
use sqlx::{PgConnection, PgTransaction};

use crate::audit::{self, Entry};
use crate::publish::{self, Locked};
use crate::{Actor, Error, Store, Stored};

/// What is mutated, and by whom.
pub(crate) struct Edit<'a> {
    /// Name of the transaction, as `updated_by` shows it.
    pub(crate) transaction: &'static str,
    /// The RPC.
    pub(crate) method: &'static str,
    pub(crate) actor: &'a Actor,
    pub(crate) kind: Kind,
    /// The resource's id; `default` for singletons.
    pub(crate) id: &'a str,
    /// The resource's name.
    pub(crate) name: String,
}

/// The open transaction of an edit: rows are written, then published, then committed.
pub(crate) struct OpenEdit<'a> {
    store: &'a Store,
    edit: &'a Edit<'a>,
    tx: PgTransaction<'static>,
    locked: Locked,
    version: u64,
}

impl Store {
    /// Opens the transaction of an edit.
    pub(crate) async fn open<'a>(&'a self, edit: &'a Edit<'a>) -> Result<OpenEdit<'a>, Error> {
        let mut tx = self.begin(edit.transaction).await?;
        // Before any other lock: the order of versions is the order of commits.
        let locked = publish::lock(&mut tx).await?;
        Ok(OpenEdit {
            store: self,
            edit,
            version: locked.version,
            tx,
            locked,
        })
    }
}

impl OpenEdit<'_> {
    /// The connection, inside the transaction.
    pub(crate) fn tx(&mut self) -> &mut PgConnection {
        &mut self.tx
    }

    /// Publishes what was written, or refuses it.
    pub(crate) async fn publish(&mut self) -> Result<(), Error> {
        let Edit { kind, id, .. } = *self.edit;
        self.version = self
            .store
            .publish_one(&mut self.tx, &self.locked, kind, id)
            .await?;
        Ok(())
    }

    /// Writes the audit row of a resource as it stands and commits.
    pub(crate) async fn commit<T: Serialize>(self, stored: Stored<T>) -> Result<Stored<T>, Error> {
        let state = serde_json::to_string(&stored.resource).unwrap_or_default();
        self.finish(&state).await?;
        Ok(stored)
    }

    /// Writes the audit row of a deletion and commits; the config version that holds it.
    pub(crate) async fn commit_removal(self) -> Result<u64, Error> {
        let version = self.version;
        self.finish("").await?;
        Ok(version)
    }

    async fn finish(mut self, state: &str) -> Result<(), Error> {
        let entry = Entry {
            actor: self.edit.actor.name(),
            method: self.edit.method,
            resource: &self.edit.name,
            config_version: self.version,
            state,
        };
        audit::write(&mut self.tx, &entry).await?;
        self.tx.commit().await?;
        Ok(())
    }
}
