//! Turnpike's wire messages: config pushed to nodes, usage on its way to the ledger, the admin API.
//!
//! The code under `generated/` is written by `cargo xtask codegen` from `proto/turnpike/` and
//! committed; a test compares the two. Messages need only prost; the `grpc` feature adds tonic
//! clients and servers. Wire types stop here: each crate converts them once, at its edge.

mod redact;

pub mod config {
    pub mod v1 {
        include!("generated/turnpike.config.v1.rs");
    }
}

pub mod metering {
    pub mod v1 {
        include!("generated/turnpike.metering.v1.rs");
    }
}

pub mod admin {
    pub mod v1 {
        include!("generated/turnpike.admin.v1.rs");
    }
}

/// The compiled descriptors of every `.proto` here, for gRPC reflection.
#[cfg(feature = "grpc")]
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptors.binpb");
