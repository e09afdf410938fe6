//! What nodes are sent: every published resource with the config version that last changed it,
//! and what was removed since.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

pub use filter_core::config::ResourceKind as Kind;

/// The kind that has a word; see [`Kind::word`].
pub fn kind_from_word(word: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.word() == word)
}

/// Whether a change of the kind is compiled with the rest of the config before it is published.
pub fn is_structural(kind: Kind) -> bool {
    match kind {
        Kind::Settings
        | Kind::Provider
        | Kind::Model
        | Kind::PriceBook
        | Kind::RuleSet
        | Kind::Limit => true,
        Kind::Team | Kind::VirtualKey | Kind::Credential | Kind::Checkpoint => false,
    }
}

/// An encoded message of `turnpike.config.v1`. Shared, wiped when dropped, never printed: it may
/// hold a provider's secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Body(Arc<Zeroizing<Vec<u8>>>);

impl Body {
    /// Takes the bytes over.
    pub fn new(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(Arc::new(bytes))
    }

    /// The encoded message.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

/// A resource as of the version that last changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    /// The resource name on the wire; `default` for singletons.
    pub id: String,
    /// Config version of this state.
    pub version: u64,
    /// None: removed.
    pub body: Option<Body>,
}

/// What brings a node to a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The version reached.
    pub version: u64,
    /// Each resource once.
    pub changes: Vec<Change>,
}

/// The published config.
#[derive(Clone, Debug)]
pub struct Published {
    nonce: String,
    version: u64,
    pruned_version: u64,
    resources: BTreeMap<(Kind, String), Change>,
}

impl Published {
    /// An empty config. `nonce` names the database lineage; removals up to and including
    /// `pruned_version` are forgotten.
    pub fn new(nonce: String, pruned_version: u64) -> Self {
        Self {
            nonce,
            version: 0,
            pruned_version,
            resources: BTreeMap::new(),
        }
    }

    /// Takes changes in and moves to a version. Older states of a resource never replace newer
    /// ones, so changes may come twice and in any order.
    pub fn apply(&mut self, version: u64, changes: impl IntoIterator<Item = Change>) {
        self.version = self.version.max(version);
        for change in changes {
            let key = (change.kind, change.id.clone());
            let newer = self
                .resources
                .get(&key)
                .is_none_or(|known| known.version <= change.version);
            if newer {
                self.resources.insert(key, change);
            }
        }
    }

    /// The newest version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The database lineage that versions belong to.
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Every resource that is there, without removals.
    pub fn full(&self) -> Delta {
        Delta {
            version: self.version,
            changes: self
                .resources
                .values()
                .filter(|change| change.body.is_some())
                .cloned()
                .collect(),
        }
    }

    /// What changed after a version, removals included. None when that is not known any more, or
    /// the version is not ours: then the node needs everything, and told what is gone.
    pub fn delta_since(&self, version: u64) -> Option<Delta> {
        if version < self.pruned_version || version > self.version {
            return None;
        }
        Some(Delta {
            version: self.version,
            changes: self
                .resources
                .values()
                .filter(|change| change.version > version)
                .cloned()
                .collect(),
        })
    }

    /// One published resource, if it is there.
    pub fn body(&self, kind: Kind, id: &str) -> Option<&Body> {
        self.resources
            .get(&(kind, id.to_owned()))
            .and_then(|change| change.body.as_ref())
    }
}

#[cfg(test)]
mod tests;
