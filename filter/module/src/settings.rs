//! What the Envoy bootstrap tells the module: the JSON in the extension's config.

use std::path::PathBuf;

use serde::Deserialize;
use thiserror::Error;

/// The bootstrap extension's config. Unknown fields are refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// `http://host:port` of the control plane's gRPC.
    pub(crate) control_plane: String,
    /// File that holds this node's token.
    pub(crate) node_token_file: PathBuf,
    /// Local directory of this node: snapshot, clusters, spool. Made if it does not exist.
    pub(crate) state_dir: PathBuf,
    /// Name of this node, a label in the ledger and in `turnpike nodes list`.
    pub(crate) node: String,
    /// File with a 32-byte key, raw or in hexadecimal, that encrypts the snapshot. Without one,
    /// no credentials are in it.
    #[serde(default)]
    pub(crate) snapshot_key_file: Option<PathBuf>,
    /// How long Envoy's listeners wait for a first config, in milliseconds.
    #[serde(default = "default_start_deadline_ms")]
    pub(crate) start_deadline_ms: u64,
    /// How long a shutdown waits for open exchanges, in milliseconds.
    #[serde(default = "default_drain_deadline_ms")]
    pub(crate) drain_deadline_ms: u64,
}

const fn default_start_deadline_ms() -> u64 {
    15_000
}

const fn default_drain_deadline_ms() -> u64 {
    10_000
}

/// Why the extension's config is refused.
#[derive(Debug, Error)]
pub(crate) enum SettingsError {
    #[error("extension_config: {0}")]
    Json(#[from] serde_json::Error),
    #[error(
        "extension_config: control_plane must start with http:// (TLS to the control plane is not in this release)"
    )]
    Scheme,
    #[error("extension_config: node must have 1 to 128 visible characters")]
    Node,
}

impl Settings {
    /// Reads the JSON, which Envoy passes as the raw bytes of a StringValue.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, SettingsError> {
        let settings: Self = serde_json::from_slice(json)?;
        if !settings.control_plane.starts_with("http://") {
            return Err(SettingsError::Scheme);
        }
        let visible = settings.node.bytes().all(|byte| byte.is_ascii_graphic());
        if settings.node.is_empty() || settings.node.len() > 128 || !visible {
            return Err(SettingsError::Node);
        }
        Ok(settings)
    }

    /// The file that Envoy watches for clusters.
    pub(crate) fn clusters_file(&self) -> PathBuf {
        self.state_dir.join("clusters.pb")
    }

    /// The last config that was applied.
    pub(crate) fn snapshot_file(&self) -> PathBuf {
        self.state_dir.join("snapshot.bin")
    }
}
