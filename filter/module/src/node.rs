//! This process as a node: its name, its boot id, and its locked directory for the spool.

use std::path::Path;

use filter_agent::spool::{
    Boot, BootError, BootId, DEFAULT_SEGMENT_BYTES, ShardReader, ShardWriter,
};
use thiserror::Error;

use crate::{agent::disk::StateDir, entropy};

/// Why the spool's directory cannot be used.
#[derive(Debug, Error)]
#[error("state_dir: {0}")]
pub(crate) struct NodeError(#[from] BootError);

/// One process of this node; its directory is locked as long as it lives.
#[derive(Debug)]
pub(crate) struct ThisNode {
    pub(crate) name: String,
    pub(crate) disk: StateDir,
    boot: Boot<StateDir>,
}

impl ThisNode {
    pub(crate) fn create(state_dir: &Path, name: &str) -> Result<Self, NodeError> {
        let disk = StateDir::new(state_dir);
        let boot = Boot::create(&disk, BootId(entropy::system()))?;
        Ok(Self {
            name: name.to_owned(),
            disk,
            boot,
        })
    }

    pub(crate) fn boot_id(&self) -> BootId {
        self.boot.id()
    }

    /// The one writer of a worker's shard.
    pub(crate) fn writer(&self, shard: u32) -> ShardWriter<StateDir> {
        self.boot.writer(shard, DEFAULT_SEGMENT_BYTES)
    }

    pub(crate) fn reader(&self, shard: u32) -> ShardReader<StateDir> {
        self.boot.reader(shard)
    }
}
