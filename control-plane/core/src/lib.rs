//! The control plane's domain: resources and their rules, minted keys, sealed secrets, the
//! published config with its deltas, which node runs what, and the arithmetic of the usage ledger.
//!
//! Pure: time and entropy are arguments, and there is no I/O. SQL lives in `control-plane-store`,
//! wire handling in `control-plane-grpc`.
//!
//! Read next: `resource` for what operators edit, `published` for what nodes are sent, `ledger`
//! for how usage is counted once.

#![forbid(unsafe_code)]

pub mod compile;
pub mod fault;
pub mod key;
pub mod ledger;
pub mod limit;
pub mod name;
pub mod nodes;
pub mod overshoot;
pub mod published;
pub mod resource;
pub mod seal;
pub mod secret;
