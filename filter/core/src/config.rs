//! The config a node decides by: resources as they came, compiled into indexes.
//!
//! `resources` is what goes over the wire and onto the disk; `compile` turns it into [`Compiled`],
//! one submodule per resource: `keys`, `credentials`, `providers`, `models`, `rules`, `prices`, `limits`, `settings`.

use std::fmt;

mod compile;
pub(crate) mod credentials;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod models;
pub(crate) mod prices;
pub(crate) mod providers;
mod resources;
pub(crate) mod rules;
mod settings;

pub use compile::compile;
pub use prices::{PriceFault, PriceList, price_faults};
pub use resources::{ResourceKind, Resources, SINGLETON_NAME};
pub use settings::Settings;

use credentials::Credentials;
use keys::Keys;
use limits::Limits;
use models::Model;
use prices::Prices;
use providers::Provider;
use rules::Rules;

/// Why one resource, or a part of it, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of the resource.
    pub kind: ResourceKind,
    /// Its name on the wire.
    pub name: String,
    /// The field at fault, such as `rules[2].models[0]`; empty: the whole resource.
    pub place: String,
    /// What is wrong, in lower case, without any secret.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)?;
        if !self.place.is_empty() {
            write!(f, ": {}", self.place)?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for Fault {}

/// A config ready to decide by. Refers to its parts by index, so that an exchange can hold on to
/// them without counting references.
pub struct Compiled {
    pub(crate) version: u64,
    pub(crate) settings: Settings,
    pub(crate) keys: Keys,
    pub(crate) providers: Vec<Provider>,
    pub(crate) credentials: Credentials,
    /// Sorted by public name.
    pub(crate) models: Vec<Model>,
    pub(crate) rules: Rules,
    pub(crate) prices: Prices,
    pub(crate) limits: Limits,
}

impl Compiled {
    /// The version of the checkpoint that this config was compiled at; 0 without one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The names of the clusters that the providers are reached by, sorted by provider id.
    pub fn expected_clusters(&self) -> impl Iterator<Item = &str> {
        self.providers
            .iter()
            .map(|provider| &*provider.cluster_name)
    }

    /// The deployment's settings, defaults filled in.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The index of a model that is served under this public name.
    pub(crate) fn model_index(&self, public_name: &str) -> Option<usize> {
        self.models
            .binary_search_by(|model| (*model.id).cmp(public_name))
            .ok()
    }
}

/// Counts only: the config holds credentials.
impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("version", &self.version)
            .field("keys", &self.keys.len())
            .field("providers", &self.providers.len())
            .field("models", &self.models.len())
            .finish_non_exhaustive()
    }
}
