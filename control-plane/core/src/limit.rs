//! Limits: calendar windows, what a bucket holds, and the arithmetic of leases.
//!
//! A bucket is one limit's account for one subject in one window. Processes of nodes hold leases
//! on it. All totals of a lease are absolute and only rise, so that any message may be repeated:
//! `outstanding = max(0, granted - consumed - returned)`. A bucket keeps
//! `held = Σ outstanding` over live leases and `suspended = Σ outstanding` over lost ones, and
//! credit is granted while `settled + held + suspended ≤ amount`.
//!
//! Read next: `bucket` for that arithmetic, `slice` for how much is granted at a time, `holder`
//! for epochs and fencing, `book` for all of it in memory, which simulations run on and the
//! database is compared with.

mod book;
mod bucket;
mod holder;
mod message;
mod slice;
mod terms;
mod window;

pub use book::{LeaseBook, Recall, Welcome};
pub use bucket::{Bucket, Imbalance, Lease, LeaseKey, Sums};
pub use holder::{Greeting, Holder, Refusal, Standing};
pub use message::{Answer, BucketKey, Charge, Deny, DenyKind, Grant, Holding, Want};
pub use slice::{Ask, slice};
pub use terms::{Kind, Terms};
pub use window::{Calendar, NotATimeZone, Span, Window};

/// Largest amount: 2^53, the largest integer that every JSON reader keeps exactly.
pub const MAX_AMOUNT: u64 = 1 << 53;

/// Time between a node's beats.
pub const BEAT_MS: u32 = 5_000;
/// A node may use its credit this long after it sent a beat that was answered.
pub const TTL_MS: u32 = 15_000;
/// A node is fenced this long after its ttl at the earliest.
pub const GRACE_MS: u32 = 5_000;

/// A holder that wanted credit of a bucket within this time counts among those that share it.
pub const ACTIVE_US: i64 = 60_000_000;
/// A mark to recall idle credit is told to holders for this long.
pub const RECALL_US: i64 = 3_000_000;

/// From a beat to the moment from which its node may be fenced, in microseconds.
pub const EXPIRY_US: i64 = (TTL_MS as i64 + GRACE_MS as i64) * 1000;
/// In-flight slots of a lost holder are free after this long: its streams have ended by then.
pub const LOST_IN_FLIGHT_US: i64 = 3_600_000_000;
/// Counted credit of a lost holder is free after this long, unless the limit is strict.
pub const LOST_RELEASED_US: i64 = 600_000_000;
/// Strict credit of a lost holder is written down as unaccounted after this long, or at the end
/// of its window.
pub const LOST_KEPT_US: i64 = 86_400_000_000;
