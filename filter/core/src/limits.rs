//! What a request needs of each limit that it falls under, before it is sent.
//!
//! `need` turns a request and a target into an amount in a limit's unit: an upper bound where the
//! limit is strict, what was learned of the target otherwise. `learned` is where that is kept.
//! What is reserved, and where, is [`crate::credit`].

use std::sync::Arc;

use crate::credit::Accounts;

mod learned;
mod need;

pub use learned::Learned;
pub(crate) use learned::TargetStats;
pub use need::Most;
pub(crate) use need::{Asked, Offer, Unbounded, Used, most_of, need, used};

/// What a process keeps for its limits, shared by its workers and its agent.
#[derive(Debug, Default)]
pub struct NodeLimits {
    /// What it may spend.
    pub accounts: Arc<Accounts>,
    /// What it knows of targets.
    pub learned: Learned,
}
