//! A push while it comes in.

use std::collections::{BTreeMap, BTreeSet};

use super::{DeltaDiscoveryResponse, Kind, PushName, Resource, ResourceName};

/// What a push says about one resource; the last word counts.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are of the large one")]
pub(super) enum Staged {
    Put(Resource),
    Remove,
    /// Its body could not be read, for this reason.
    Unreadable(String),
}

/// A push that has begun.
#[derive(Debug)]
pub(super) struct Push {
    pub(super) name: PushName,
    /// It is older than what the node runs on: it is let through, not staged.
    pub(super) stale: bool,
    pub(super) staged: BTreeMap<ResourceName, Staged>,
    /// The types that came.
    pub(super) kinds: BTreeSet<Kind>,
}

impl Push {
    pub(super) fn new(name: PushName, stale: bool) -> Self {
        Self {
            name,
            stale,
            staged: BTreeMap::new(),
            kinds: BTreeSet::new(),
        }
    }

    /// Stages a response and returns the names it carried.
    pub(super) fn stage(
        &mut self,
        kind: Kind,
        response: DeltaDiscoveryResponse,
    ) -> Vec<ResourceName> {
        let removals = response
            .removed_resources
            .into_iter()
            .map(|name| (ResourceName::new(kind, name), Staged::Remove));
        let puts = response.resources.into_iter().map(|wire| {
            let staged = Resource::decode(kind, &wire).map_or_else(Staged::Unreadable, Staged::Put);
            (ResourceName::new(kind, wire.name), staged)
        });
        let mut names = Vec::new();
        for (name, staged) in removals.chain(puts) {
            names.push(name.clone());
            self.staged.insert(name, staged);
        }
        names
    }
}
