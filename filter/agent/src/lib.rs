//! A node's side of the control plane: what it says, what it keeps, what it writes to disk.
//!
//! State machines, each pure: [`ads`] takes config in, [`lease`] keeps credit for limits, [`spool`]
//! keeps usage records on the node's disk, [`usage`] brings them to the ledger. Bytes, time and
//! entropy are arguments; the disk is a trait.
//!
//! It is not a client: the shell owns the gRPC streams, the clock, the files and the encryption of
//! the snapshot, and compiles what [`ads::Session`] hands it. Start reading at [`ads`], whose
//! documentation is the protocol of both sides.
#![forbid(unsafe_code)]

pub mod ads;
mod backoff;
pub mod lease;
pub mod open_table;
pub mod spool;
pub mod usage;

pub use backoff::Backoff;
