//! The host of a cluster specifier over Envoy's callbacks.

use crate::attribute::Attribute;
use crate::raw::{Buffer, Callbacks, Ptr};
use crate::specifier::{ClusterSpecifier, HostCount, SpecifierHost};

/// What stands behind the specifier pointer that Envoy holds.
pub(crate) struct SpecifierInstance {
    pub(crate) callbacks: &'static Callbacks,
    pub(crate) specifier: Box<dyn ClusterSpecifier>,
}

/// Envoy's side of one selection.
pub(crate) struct EnvoySpecifier {
    pub(crate) callbacks: &'static Callbacks,
    pub(crate) context: Ptr,
}

impl SpecifierHost for EnvoySpecifier {
    fn header(&self, name: &str) -> Option<&[u8]> {
        let mut out = Buffer::NULL;
        // SAFETY: the context is alive during `select`; Envoy fills `out` when it answers true,
        // with bytes of the request headers, which nothing changes meanwhile.
        unsafe {
            (self.callbacks.cluster_specifier_get_request_header_value)(
                self.context,
                Buffer::new(name.as_bytes()),
                &raw mut out,
                0,
                std::ptr::null_mut(),
            )
            .then(|| out.bytes())
        }
    }

    fn attribute_int(&self, attribute: Attribute) -> Option<u64> {
        let mut out = 0;
        // SAFETY: the context is alive during `select`.
        unsafe {
            (self.callbacks.cluster_specifier_get_attribute_int)(
                self.context,
                attribute as u32,
                &raw mut out,
            )
        }
        .then_some(out)
    }

    fn attribute_str(&self, attribute: Attribute) -> Option<&[u8]> {
        let mut out = Buffer::NULL;
        // SAFETY: as for `header`.
        unsafe {
            (self.callbacks.cluster_specifier_get_attribute_string)(
                self.context,
                attribute as u32,
                &raw mut out,
            )
            .then(|| out.bytes())
        }
    }

    fn metadata_string(&self, namespace: &str, key: &str) -> Option<&[u8]> {
        let mut out = Buffer::NULL;
        // SAFETY: as for `header`.
        unsafe {
            (self.callbacks.cluster_specifier_get_dynamic_metadata)(
                self.context,
                Buffer::new(namespace.as_bytes()),
                Buffer::new(key.as_bytes()),
                &raw mut out,
            )
            .then(|| out.bytes())
        }
    }

    fn metadata_number(&self, namespace: &str, key: &str) -> Option<f64> {
        let mut out = 0.0;
        // SAFETY: the context is alive during `select`.
        unsafe {
            (self.callbacks.cluster_specifier_get_dynamic_metadata_number)(
                self.context,
                Buffer::new(namespace.as_bytes()),
                Buffer::new(key.as_bytes()),
                &raw mut out,
            )
        }
        .then_some(out)
    }

    fn cluster_hosts(&self, cluster: &str, priority: u32) -> Option<HostCount> {
        let mut count = HostCount::default();
        // SAFETY: the context is alive during `select`.
        unsafe {
            (self.callbacks.cluster_specifier_get_cluster_host_count)(
                self.context,
                Buffer::new(cluster.as_bytes()),
                priority,
                &raw mut count.total,
                &raw mut count.healthy,
                &raw mut count.degraded,
            )
        }
        .then_some(count)
    }

    fn random_value(&self) -> u64 {
        // SAFETY: the context is alive during `select`.
        unsafe { (self.callbacks.cluster_specifier_get_random_value)(self.context) }
    }

    fn set_cluster(&mut self, cluster: &str) {
        let name = Buffer::new(cluster.as_bytes());
        // SAFETY: the context is alive during `select`; the name is copied.
        unsafe { (self.callbacks.cluster_specifier_set_cluster_name)(self.context, name) }
    }

    fn set_route_action_override(&mut self, name: &str) -> bool {
        let name = Buffer::new(name.as_bytes());
        // SAFETY: as for `set_cluster`.
        unsafe { (self.callbacks.cluster_specifier_set_route_action_override)(self.context, name) }
    }

    fn set_timeout_ms(&mut self, timeout_ms: u64) {
        // SAFETY: the context is alive during `select`.
        unsafe { (self.callbacks.cluster_specifier_set_timeout)(self.context, timeout_ms) }
    }

    fn set_idle_timeout_ms(&mut self, timeout_ms: u64) {
        // SAFETY: the context is alive during `select`.
        unsafe { (self.callbacks.cluster_specifier_set_idle_timeout)(self.context, timeout_ms) }
    }
}
