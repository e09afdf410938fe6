//! The host of a cluster specifier.

use std::collections::BTreeMap;

use crate::attribute::Attribute;
use crate::specifier::{HostCount, SpecifierHost};

/// One selection: what the specifier reads, and what it chose.
#[derive(Clone, Debug, Default)]
pub struct FakeSpecifier {
    /// Request headers.
    pub headers: BTreeMap<String, Vec<u8>>,
    /// Numeric attributes.
    pub ints: BTreeMap<Attribute, u64>,
    /// Text attributes.
    pub texts: BTreeMap<Attribute, Vec<u8>>,
    /// Dynamic metadata strings by namespace and key.
    pub metadata: BTreeMap<(String, String), Vec<u8>>,
    /// Dynamic metadata numbers by namespace and key.
    pub numbers: BTreeMap<(String, String), f64>,
    /// Known clusters, all at priority 0.
    pub clusters: BTreeMap<String, HostCount>,
    /// Declared route action overrides.
    pub overrides: Vec<String>,
    /// What `random_value` answers.
    pub random: u64,
    /// The cluster that was set last.
    pub cluster: Option<String>,
    /// The override that was used last.
    pub used_override: Option<String>,
    /// The timeout that was set last.
    pub timeout_ms: Option<u64>,
    /// The idle timeout that was set last.
    pub idle_timeout_ms: Option<u64>,
}

impl SpecifierHost for FakeSpecifier {
    fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(Vec::as_slice)
    }

    fn attribute_int(&self, attribute: Attribute) -> Option<u64> {
        self.ints.get(&attribute).copied()
    }

    fn attribute_str(&self, attribute: Attribute) -> Option<&[u8]> {
        self.texts.get(&attribute).map(Vec::as_slice)
    }

    fn metadata_string(&self, namespace: &str, key: &str) -> Option<&[u8]> {
        self.metadata
            .get(&(namespace.to_owned(), key.to_owned()))
            .map(Vec::as_slice)
    }

    fn metadata_number(&self, namespace: &str, key: &str) -> Option<f64> {
        self.numbers
            .get(&(namespace.to_owned(), key.to_owned()))
            .copied()
    }

    fn cluster_hosts(&self, cluster: &str, priority: u32) -> Option<HostCount> {
        self.clusters
            .get(cluster)
            .copied()
            .filter(|_| priority == 0)
    }

    fn random_value(&self) -> u64 {
        self.random
    }

    fn set_cluster(&mut self, cluster: &str) {
        self.cluster = Some(cluster.to_owned());
    }

    fn set_route_action_override(&mut self, name: &str) -> bool {
        let declared = self.overrides.iter().any(|known| known == name);
        if declared {
            self.used_override = Some(name.to_owned());
        }
        declared
    }

    fn set_timeout_ms(&mut self, timeout_ms: u64) {
        self.timeout_ms = Some(timeout_ms);
    }

    fn set_idle_timeout_ms(&mut self, timeout_ms: u64) {
        self.idle_timeout_ms = Some(timeout_ms);
    }
}
