//! What the store needs to run.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use control_plane_core::resource::ClusterBuilder;
use control_plane_core::seal::Keyring;

/// Looks an environment variable up.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Options of a store.
pub struct Options {
    /// `postgres://…`; `?host=/directory` for a Unix socket.
    pub database_url: String,
    /// Connections in the pool. Default 16.
    pub max_connections: u32,
    /// Master keys for secrets at rest.
    pub keyring: Keyring,
    /// Where credentials by file are read; none: there are no such credentials.
    pub secrets_dir: Option<PathBuf>,
    /// Where credentials by environment variable are read. Default: the process's environment.
    pub environment: Environment,
    /// Builds the Envoy clusters of providers.
    pub clusters: ClusterBuilder,
    /// Days that single usage records are kept; 0: for ever. Sums are always. Default 90.
    pub record_days: u32,
    /// Names this replica: no two that run at a time share a name, and one that is started again
    /// has the name it had. Default empty: it has none.
    pub replica: String,
}

impl Options {
    /// Options with defaults.
    pub fn new(database_url: String, keyring: Keyring, clusters: ClusterBuilder) -> Self {
        Self {
            database_url,
            max_connections: 16,
            keyring,
            secrets_dir: None,
            environment: Arc::new(|name| std::env::var(name).ok()),
            clusters,
            record_days: 90,
            replica: String::new(),
        }
    }
}

// The URL may hold a password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("max_connections", &self.max_connections)
            .field("secrets_dir", &self.secrets_dir)
            .field("record_days", &self.record_days)
            .field("replica", &self.replica)
            .finish_non_exhaustive()
    }
}
