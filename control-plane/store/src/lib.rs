//! Postgres: the only crate that knows SQL. Keeps what operators edit, what nodes are sent, who
//! changed what, and the usage ledger.
//!
//! Not here: what a resource may be and how usage adds up (`control-plane-core`), and the wire
//! (`control-plane-grpc`). The tables are explained in `migrations/`.
//!
//! Read next: `store` for transactions, `edit` for how a mutation becomes a config version,
//! `publish` for what nodes get, `ledger` for how usage is counted once, `limits` for
//! who holds how much of what.

#![forbid(unsafe_code)]

mod audit;
mod config;
mod edit;
mod error;
mod ledger;
mod limits;
mod nodes;
mod options;
mod page;
mod publish;
mod published;
mod secret_reader;
mod store;
mod stored;
mod watch;

pub use audit::AuditEntry;
pub use config::KeyRecord;
pub use error::Error;
pub use ledger::{
    GroupBy, Intake, RecordFilter, RepriceAnswer, RepriceRequest, RepricedTarget, StoredRecord,
    UsageQuery, UsageRow,
};
pub use limits::{
    Beats, BucketFilter, Closing, Delivery, EventFilter, HolderWants, LimitEvent, LimitStatus,
    ShardEnd, StatusFilter, StoredBucket, ToldEvent, Unaccounted,
};
pub use options::{Environment, Options};
pub use page::{Page, PageRequest};
pub use publish::Publication;
pub use store::{Connections, Store};
pub use stored::{Actor, Stored};
