//! Limits in Postgres: who holds how much of what.
//!
//! What is granted, freed and refused is decided by `control_plane_core::limit`. Here its rows are
//! locked, read, handed to it and written back. Locks are taken in one order everywhere: node_boot,
//! usage_cursor, limit_bucket by id, limit_lease. Rows are read in a statement of their own after
//! the one that locked them, whose snapshot may be older than the locks. A bucket that is missing
//! is made in a transaction of its own before any of this, so that nobody waits for one while
//! holding another.
//!
//! Read next: `locked` for that, `hello` and `holders` for epochs and
//! fencing.

mod buckets;
mod events;
mod hello;
mod holders;
mod locked;
mod maintenance;
mod outcome;
mod published;
mod settle;
mod status;
mod unaccounted;
mod wants;

pub use buckets::{BucketFilter, StoredBucket};
pub use events::LimitEvent;
pub(crate) use holders::LeaseTicks;
pub use holders::{Beats, Closing, ShardEnd};
pub use outcome::{Delivery, EventFilter, ToldEvent};
pub(crate) use published::apply as apply_published;
pub(crate) use settle::{Settled, settle};
pub use status::{LimitStatus, StatusFilter};
pub use unaccounted::Unaccounted;
pub use wants::HolderWants;

use std::collections::BTreeMap;

use control_plane_core::limit::{BucketKey, Span};

use crate::{Error, Store};

/// Buckets that are not there yet, with their windows.
pub(crate) type Missing = BTreeMap<BucketKey, Span>;

/// What a transaction came to: it is done, or buckets are missing and it has written nothing.
pub(crate) enum Attempt<T> {
    Done(T),
    Missing(Missing),
}

/// A bucket is made at the first try; only its removal in between asks for another.
const MAX_ATTEMPTS: u32 = 5;

impl Store {
    /// Runs a transaction, making the buckets that it misses.
    pub(crate) async fn with_buckets<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Attempt<T>, Error>>,
    {
        for _ in 0..MAX_ATTEMPTS {
            match crate::store::retry(&attempt).await? {
                Attempt::Done(done) => return Ok(done),
                Attempt::Missing(missing) => self.make_buckets(&missing).await?,
            }
        }
        Err(Error::Internal {
            code: "bucket".to_owned(),
            message: "a bucket is gone as soon as it is made".to_owned(),
        })
    }
}
