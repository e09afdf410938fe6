//! ② The cluster specifier: names the cluster of each attempt.

use filter_envoy_abi::{Attribute, ClusterSpecifier, SpecifierHost};

use crate::{
    clock::SystemClock,
    exchanges::{self, Handle},
    host::WorkerClusters,
    upstream,
};

/// Asks the exchange which target comes next.
pub(crate) struct Specifier;

impl ClusterSpecifier for Specifier {
    fn select(&self, host: &mut dyn SpecifierHost) -> bool {
        // The first route resolution comes before the request was read: there is no exchange yet.
        let Some(handle) = handle(host) else {
            return false;
        };
        let count = host
            .attribute_int(Attribute::UpstreamRequestAttemptCount)
            .unwrap_or(0);
        let attempt = u32::try_from(count).unwrap_or(u32::MAX).max(1);
        let has_failed_unconnected = count > 0 && host.attribute_str(upstream::CONNECTED).is_none();
        let chosen = exchanges::with(handle, |exchange| {
            if has_failed_unconnected {
                exchange.on_unconnected();
            }
            let clusters = WorkerClusters(&*host);
            let cluster = exchange.select(attempt, &clusters, &SystemClock).to_owned();
            (cluster, exchange.idle_override())
        });
        let Some((cluster, idle_override)) = chosen else {
            return false;
        };
        host.set_cluster(&cluster);
        host.set_route_action_override(idle_override);
        true
    }
}

/// From the request header; on a retry from metadata, since the upstream filter of the attempt
/// before took the header away.
fn handle(host: &dyn SpecifierHost) -> Option<Handle> {
    host.header(exchanges::HEADER)
        .or_else(|| host.metadata_string(exchanges::METADATA_NAMESPACE, exchanges::METADATA_KEY))
        .and_then(Handle::decode)
}
