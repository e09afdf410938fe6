//! Config over Envoy's delta ADS, and the protocol that node and control plane keep on it.
//!
//! The wire is `envoy.service.discovery.v3` (one bidirectional gRPC stream, [`METHOD_PATH`]); the
//! resources are `turnpike.config.v1` messages under the type URLs of [`Kind`].
//!
//! # Opening
//! The node sends one request per type, in the order of [`Kind::ALL`], each subscribing to `*`; the
//! first carries the [`Node`]. The `Checkpoint` request is the last: only it carries
//! `initial_resource_versions`, `{"default": "<version>/<nonce>"}`, the checkpoint that the node
//! runs on, and the server begins when it has come. A node names its checkpoint only if it holds
//! that version whole; one that refused something, or whose stored snapshot lacks credentials,
//! names none and is sent everything again.
//!
//! # A push
//! A push is any number of responses with resources and removals, then one `Checkpoint` response
//! that ends it and carries that one resource. Every response of it names the push in
//! `system_version_info` ([`PushName`]):
//!
//! - `delta <from>..<version>/<nonce>`: what changed after version `from`, removals included. It is
//!   the answer to a named checkpoint that the server still knows, and to each later change.
//! - `full <version>/<nonce>`: everything. What is not in it is gone, once its checkpoint has come.
//!   It is the answer when no checkpoint was named or the server does not know it.
//!
//! The server always answers the opening with a push, an empty delta if nothing changed, so that
//! the node knows it is in sync. A push is not mixed with another one and is given up only with the
//! stream. A delta starts from a checkpoint that the node accepted on this stream or named when
//! opening it. Response nonces are decimal numbers that rise within a stream; one that does not
//! rise is ignored. The name of a resource is its message's `id`, or `default`.
//!
//! # Answers
//! Nothing is answered before the push has ended and compiled. Then comes one request for each type
//! that was in the push, an ACK or a NACK of that type's last nonce, and last the answer to the
//! `Checkpoint`, which is the ACK of the version. A NACK of a type lists what is refused in
//! `error_detail` ([`Refused`]); everything that is refused at a version is listed with that
//! version, also when it came earlier (the nonce may then be empty). The rest of the push applies, and
//! the last good form of a refused resource stays in use. A server does not send a refused resource
//! again until it changes or the node opens a stream without a checkpoint. A refused `Checkpoint`
//! (older than what the node runs on, or nothing in it compiles) leaves the node where it was.
//!
//! # What does not wait
//! A key that is removed, disabled or loses a secret, a disabled team, and a credential with a new
//! secret change the current config as soon as they arrive ([`Urgent`]), and only in that respect:
//! the rest of such a resource waits for its checkpoint.

mod answer;
mod candidate;
mod kind;
mod push;
mod resource;
mod resources;
mod session;
mod snapshot;
mod urgent;
mod version;
mod wire;

pub use answer::Refused;
pub use filter_core::config::Resources;
pub use kind::{Kind, SINGLETON, type_url};
pub use resource::{Resource, ResourceName};
pub use session::{Applied, Outcome, Session, Step, Violation};
pub use snapshot::{Snapshot, SnapshotError};
pub use urgent::Urgent;
pub use version::{Mode, PushName, UnreadableVersion, checkpoint_from_str, checkpoint_to_string};
pub use wire::{
    Any, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Node, RefusedDetail, Status, WireResource,
};

/// The gRPC method of the stream.
pub const METHOD_PATH: &str =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
