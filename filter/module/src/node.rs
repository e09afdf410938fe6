//! This process as a node: its name, its boot id, and its locked directory for the spool.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use filter_agent::{
    open_table,
    spool::{Boot, BootError, BootId, DEFAULT_SEGMENT_BYTES, DiskError, ShardReader, ShardWriter},
};
use filter_shared_memory::SharedFile;
use thiserror::Error;

use crate::{agent::disk::StateDir, entropy, open_table::Supply};

/// Why the spool's directory cannot be used.
#[derive(Debug, Error)]
#[error("state_dir: {0}")]
pub(crate) struct NodeError(#[from] BootError);

/// One process of this node; its directory is locked as long as it lives.
#[derive(Debug)]
pub(crate) struct ThisNode {
    pub(crate) name: String,
    pub(crate) disk: StateDir,
    boot_id: BootId,
    /// Locked when a worker handles its first stream, and by the agent.
    boot: Mutex<Boot<StateDir>>,
    /// By worker. Locked when one handles its first stream.
    supplies: Mutex<BTreeMap<u32, Arc<Supply>>>,
}

impl ThisNode {
    pub(crate) fn create(state_dir: &Path, name: &str) -> Result<Self, NodeError> {
        let disk = StateDir::new(state_dir);
        let boot = Boot::create(&disk, BootId(entropy::system()))?;
        Ok(Self {
            name: name.to_owned(),
            disk,
            boot_id: boot.id(),
            boot: Mutex::new(boot),
            supplies: Mutex::default(),
        })
    }

    pub(crate) fn boot_id(&self) -> BootId {
        self.boot_id
    }

    /// The one writer of a worker's shard.
    pub(crate) fn writer(&self, shard: u32) -> ShardWriter<StateDir> {
        self.boot().writer(shard, DEFAULT_SEGMENT_BYTES)
    }

    pub(crate) fn reader(&self, shard: u32) -> ShardReader<StateDir> {
        self.boot().reader(shard)
    }

    /// What brings a worker its tables of open exchanges.
    pub(crate) fn supply(&self, shard: u32) -> Arc<Supply> {
        let mut supplies = self.supplies.lock().unwrap_or_else(PoisonError::into_inner);
        let supply = supplies
            .entry(shard)
            .or_insert_with(|| Arc::new(Supply::new(shard)));
        Arc::clone(supply)
    }

    /// Makes a table of open exchanges; `number` is 1 for a worker's first.
    pub(crate) fn open_table(&self, shard: u32, number: u32) -> Result<SharedFile, DiskError> {
        let path = self.boot().open_table_path(shard, number);
        let table = self.disk.create_shared(&path, open_table::TABLE_WORDS)?;
        open_table::format(table.as_ref(), self.boot_id, shard);
        Ok(table)
    }

    /// Takes the directory again if somebody emptied the state directory; true if so.
    pub(crate) fn relock(&self) -> Result<bool, NodeError> {
        Ok(self.boot().relock()?)
    }

    fn boot(&self) -> MutexGuard<'_, Boot<StateDir>> {
        self.boot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
