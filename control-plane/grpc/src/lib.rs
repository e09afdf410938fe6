//! The control plane's gRPC services: admin, delta ADS, metering.
//!
//! Each service turns wire messages into calls of the store and back; what a config means is
//! decided in `control-plane-core`, and SQL stays in `control-plane-store`.
//!
//! [`ControlPlane`] is all of it behind one start and one set of routes. Read next: `ads` for how
//! nodes get their config, `admin` for how it is changed, `metering` for how usage comes back, `leases`
//! for how credit goes out.

#![forbid(unsafe_code)]

mod admin;
mod ads;
mod auth;
mod clock;
mod cluster;
mod control_plane;
mod feed;
mod fleet;
mod leases;
mod metering;
mod metrics;
mod node_certificate;
mod shutdown;
mod status;

pub use auth::{BearerToken, TokenError};
pub use cluster::provider_cluster;
pub use control_plane::{ControlPlane, Policy};
pub use metrics::{Metrics, RpcLayer, Timed};
pub use shutdown::{Shutdown, shutdown};
