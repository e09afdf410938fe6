//! The messages of delta ADS, cut down to the fields we use; binary compatible with Envoy's own.

use std::{collections::BTreeMap, fmt};

/// `envoy.config.core.v3.Node`: who asks.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Node {
    /// Name of the node, a label for people.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The group it belongs to; may be empty.
    #[prost(string, tag = "2")]
    pub cluster: String,
    /// `turnpike`
    #[prost(string, tag = "6")]
    pub user_agent_name: String,
    /// Version of the module.
    #[prost(string, tag = "7")]
    pub user_agent_version: String,
}

/// `envoy.service.discovery.v3.DeltaDiscoveryRequest`: a subscription, an ACK or a NACK.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeltaDiscoveryRequest {
    /// On the first request of a stream only.
    #[prost(message, optional, tag = "1")]
    pub node: Option<Node>,
    #[prost(string, tag = "2")]
    pub type_url: String,
    #[prost(string, repeated, tag = "3")]
    pub resource_names_subscribe: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub resource_names_unsubscribe: Vec<String>,
    /// Resource name to version; on the first `Checkpoint` request of a stream only.
    #[prost(btree_map = "string, string", tag = "5")]
    pub initial_resource_versions: BTreeMap<String, String>,
    /// The response that this answers; empty: none.
    #[prost(string, tag = "6")]
    pub response_nonce: String,
    /// Set: a NACK.
    #[prost(message, optional, tag = "7")]
    pub error_detail: Option<Status>,
}

/// `envoy.service.discovery.v3.DeltaDiscoveryResponse`: a part of a push.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeltaDiscoveryResponse {
    /// The push this belongs to, a [`super::PushName`].
    #[prost(string, tag = "1")]
    pub system_version_info: String,
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<WireResource>,
    #[prost(string, tag = "4")]
    pub type_url: String,
    #[prost(string, tag = "5")]
    pub nonce: String,
    /// Names that are gone.
    #[prost(string, repeated, tag = "6")]
    pub removed_resources: Vec<String>,
}

/// `envoy.service.discovery.v3.Resource`: one resource, still encoded.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct WireResource {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(message, optional, tag = "2")]
    pub resource: Option<Any>,
    #[prost(string, tag = "3")]
    pub name: String,
}

/// `google.protobuf.Any`. Its `Debug` shows the length of the value only: it may hold a secret.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `google.rpc.Status`: why something was refused.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Status {
    /// A gRPC status code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// One refused resource, as it stands in [`Status::details`] under [`RefusedDetail::TYPE_URL`].
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RefusedDetail {
    /// Type URL of the resource.
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub reason: String,
}

// === impl Any ===

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Any")
            .field("type_url", &self.type_url)
            .field("value_bytes", &self.value.len())
            .finish()
    }
}

// === impl RefusedDetail ===

impl RefusedDetail {
    /// Of an entry in [`Status::details`] that holds this message.
    pub const TYPE_URL: &'static str = "type.googleapis.com/turnpike.config.v1.RefusedDetail";
}

#[cfg(test)]
mod tests;
