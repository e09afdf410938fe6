//! The cluster specifier: names the cluster of each attempt.

use crate::attribute::Attribute;

/// Chooses a cluster at the first route resolution, after a cleared route cache and before every
/// retry; shared by all workers.
///
/// `Attribute::UpstreamRequestAttemptCount` is 0 on the first two and 2, 3, … on retries.
pub trait ClusterSpecifier: Send + Sync {
    /// Sets a cluster and answers true, or answers false to keep the previous choice.
    fn select(&self, host: &mut dyn SpecifierHost) -> bool;
}

/// Hosts of a cluster at one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCount {
    /// All hosts.
    pub total: usize,
    /// Healthy hosts.
    pub healthy: usize,
    /// Degraded hosts.
    pub degraded: usize,
}

/// What a cluster specifier may call, during `select` only. No call re-enters a hook.
pub trait SpecifierHost {
    /// The first value of a request header; `name` in lower case.
    fn header(&self, name: &str) -> Option<&[u8]>;
    /// A numeric attribute.
    fn attribute_int(&self, attribute: Attribute) -> Option<u64>;
    /// A text attribute.
    fn attribute_str(&self, attribute: Attribute) -> Option<&[u8]>;
    /// A dynamic metadata string.
    fn metadata_string(&self, namespace: &str, key: &str) -> Option<&[u8]>;
    /// A dynamic metadata number.
    fn metadata_number(&self, namespace: &str, key: &str) -> Option<f64>;
    /// Hosts of a cluster at a priority; `None` when this worker does not know the cluster (yet).
    fn cluster_hosts(&self, cluster: &str, priority: u32) -> Option<HostCount>;
    /// A random number that is the same for all selections of one request.
    fn random_value(&self) -> u64;
    /// Names the cluster.
    fn set_cluster(&mut self, cluster: &str);
    /// Uses one of the declared route action overrides; false when it is not declared.
    fn set_route_action_override(&mut self, name: &str) -> bool;
    /// Sets the route timeout in milliseconds; 0 is none.
    fn set_timeout_ms(&mut self, timeout_ms: u64);
    /// Sets the route idle timeout in milliseconds; 0 is none.
    fn set_idle_timeout_ms(&mut self, timeout_ms: u64);
}
