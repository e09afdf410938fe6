//! Provider clusters, handed to this Envoy as a file that it watches.
//!
//! The file is a binary `envoy.service.discovery.v3.DiscoveryResponse`, written by rename: Envoy
//! reads it as the whole state of the world. A cluster that is no longer wanted stays for a grace
//! period, since exchanges that were planned with it may still come to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use filter_core::config::Resources;
use prost::Message as _;

/// How long an unwanted cluster stays, in microseconds.
const REMOVAL_GRACE_US: u64 = 5_000_000;

const CLUSTER_TYPE_URL: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// The parts of Envoy's message that we set. A serialized `Any` is put in as it came.
#[derive(Clone, PartialEq, prost::Message)]
struct DiscoveryResponse {
    #[prost(string, tag = "1")]
    version_info: String,
    #[prost(bytes = "vec", repeated, tag = "2")]
    resources: Vec<Vec<u8>>,
    #[prost(string, tag = "4")]
    type_url: String,
}

/// What the file holds.
#[derive(Debug)]
pub(crate) struct ClusterFile {
    path: PathBuf,
    wanted: BTreeMap<String, Vec<u8>>,
    leaving: BTreeMap<String, (Vec<u8>, u64)>,
    written: u64,
}

impl ClusterFile {
    /// Writes the file for the first time, so that Envoy finds one when it starts to watch.
    pub(crate) fn create(path: PathBuf, resources: &Resources) -> io::Result<Self> {
        let wanted = clusters(resources);
        let file = Self {
            path,
            wanted,
            leaving: BTreeMap::new(),
            written: 0,
        };
        file.write()?;
        Ok(file)
    }

    /// Makes sure that a file is there, for an Envoy that only validates its config.
    pub(crate) fn ensure(path: &Path) -> io::Result<()> {
        if path.exists() {
            return Ok(());
        }
        Self::create(path.to_owned(), &Resources::default()).map(drop)
    }

    /// Names of the clusters that are wanted.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.wanted.keys().cloned().collect()
    }

    /// Takes over the clusters of a new config; answers the names that Envoy has not had before.
    pub(crate) fn update(
        &mut self,
        resources: &Resources,
        now_us: u64,
    ) -> io::Result<BTreeSet<String>> {
        let next = clusters(resources);
        if next == self.wanted {
            return Ok(BTreeSet::new());
        }
        let before = std::mem::take(&mut self.wanted);
        let new = next
            .keys()
            .filter(|name| !before.contains_key(*name) && !self.leaving.contains_key(*name))
            .cloned()
            .collect();
        self.leaving.retain(|name, _| !next.contains_key(name));
        for (name, cluster) in before {
            if !next.contains_key(&name) {
                self.leaving
                    .insert(name, (cluster, now_us.saturating_add(REMOVAL_GRACE_US)));
            }
        }
        self.wanted = next;
        self.written += 1;
        self.write()?;
        Ok(new)
    }

    /// Drops clusters whose grace is over.
    pub(crate) fn expire(&mut self, now_us: u64) -> io::Result<()> {
        let before = self.leaving.len();
        self.leaving.retain(|_, (_, until_us)| *until_us > now_us);
        if self.leaving.len() == before {
            return Ok(());
        }
        self.written += 1;
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let leaving = self.leaving.values().map(|(cluster, _)| cluster);
        let response = DiscoveryResponse {
            version_info: self.written.to_string(),
            resources: self.wanted.values().chain(leaving).cloned().collect(),
            type_url: CLUSTER_TYPE_URL.to_owned(),
        };
        let staged = self.path.with_extension("new");
        std::fs::write(&staged, response.encode_to_vec())?;
        // Envoy watches for moves, not for writes.
        std::fs::rename(&staged, &self.path)
    }
}

/// Clusters that this Envoy is to have, by name; the mesh's own are not among them.
fn clusters(resources: &Resources) -> BTreeMap<String, Vec<u8>> {
    resources
        .providers
        .values()
        .filter(|provider| !provider.cluster.is_empty())
        .map(|provider| (provider.cluster_name.clone(), provider.cluster.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use proto::config::v1::Provider;

    use super::*;

    fn resources(names: &[&str]) -> Resources {
        let providers = names.iter().map(|name| {
            let provider = Provider {
                id: (*name).to_owned(),
                cluster_name: format!("turnpike-provider-{name}"),
                cluster: name.as_bytes().to_vec(),
                ..Provider::default()
            };
            ((*name).to_owned(), provider)
        });
        Resources {
            providers: providers.collect(),
            ..Resources::default()
        }
    }

    fn on_disk(path: &Path) -> Vec<Vec<u8>> {
        let bytes = std::fs::read(path).unwrap();
        DiscoveryResponse::decode(bytes.as_slice())
            .unwrap()
            .resources
    }

    #[test]
    fn a_removed_cluster_stays_for_its_grace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clusters.pb");
        let mut file = ClusterFile::create(path.clone(), &resources(&["a", "b"])).unwrap();
        assert!(file.update(&resources(&["b"]), 1_000).unwrap().is_empty());
        assert_eq!(on_disk(&path), [b"b".to_vec(), b"a".to_vec()]);
        file.expire(1_000 + REMOVAL_GRACE_US - 1).unwrap();
        assert_eq!(on_disk(&path).len(), 2);
        file.expire(1_000 + REMOVAL_GRACE_US).unwrap();
        assert_eq!(on_disk(&path), [b"b".to_vec()]);
    }

    #[test]
    fn only_names_that_envoy_does_not_have_are_new() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clusters.pb");
        let mut file = ClusterFile::create(path, &resources(&["a"])).unwrap();
        let new = file.update(&resources(&["a", "c"]), 0).unwrap();
        assert_eq!(new.into_iter().collect::<Vec<_>>(), ["turnpike-provider-c"]);
        file.update(&resources(&["a"]), 0).unwrap();
        assert!(
            file.update(&resources(&["a", "c"]), 1).unwrap().is_empty(),
            "it never left"
        );
    }
}
