//! Envoy, as the core wants to see it.

use filter_core::{
    exchange::Reply,
    host::{Clusters, HeaderSink},
};
use filter_envoy_abi::{HeaderMap, HttpHost, SpecifierHost};

/// One of a stream's header maps.
pub(crate) struct Sink<'a, H: HttpHost + ?Sized> {
    pub(crate) host: &'a mut H,
    pub(crate) map: HeaderMap,
}

impl<H: HttpHost + ?Sized> HeaderSink for Sink<'_, H> {
    fn set(&mut self, name: &str, value: &[u8]) {
        self.host.set_header(self.map, name, value);
    }

    fn remove(&mut self, name: &str) {
        self.host.remove_header(self.map, name);
    }
}

/// The clusters that this worker knows.
pub(crate) struct WorkerClusters<'a>(pub(crate) &'a dyn SpecifierHost);

impl Clusters for WorkerClusters<'_> {
    fn has_hosts(&self, cluster: &str) -> bool {
        self.0
            .cluster_hosts(cluster, 0)
            .is_some_and(|hosts| hosts.total > 0)
    }
}

/// The headers of a reply, in the form that Envoy takes.
pub(crate) fn reply_headers(reply: &Reply) -> Vec<(&str, &[u8])> {
    reply
        .headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()))
        .collect()
}
