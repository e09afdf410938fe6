//! Brings usage records from the spool to the ledger, over any number of streams.
//!
//! The protocol is `turnpike.metering.v1.Metering/Usage`. Exactly-once is the ledger's cursor; here
//! each shard is sent in order and without a hole, from wherever the ledger's `Resume` says.

mod session;

pub use session::{Session, Trouble, Window};
