//! What this node may spend of each limit: accounts, the leases that fill them, and reservations.
//!
//! An [`Account`] stands for one limit and one subject. Its credit is on a [`Lease`]: a grant of
//! the control plane for one window and one epoch. Workers take from it with atomics only, all of
//! a request's limits or none ([`reserve`]), and give back what was not used
//! ([`Reservation::settle`], or dropping it). The agent raises and lowers leases, and is the only
//! one that does.
//!
//! Rates are shares of a limit, spent by the clock; see `rate`. Slots of an in-flight limit are
//! credit that always comes back.
//!
//! A worker never refuses because credit is missing here: a rollback elsewhere may be about to put
//! it back, and other nodes may hold some that they do not need. It refuses on a [`Denial`] that
//! the control plane sent, or else asks and waits ([`Account::wait`]). Whoever waits is woken, and
//! then reserves by itself, so that one who went away meanwhile owns nothing.
//!
//! No clock, no threads and no I/O in here: `now_us` is microseconds of one monotonic clock.
//! Amounts are in the limit's unit, at most 2^53.
//!
//! Read next: `lease`, `reservation`, `account`.

mod account;
mod accounts;
mod lease;
mod rate;
mod refusal;
mod reservation;
mod terms;
mod waiting;

pub use account::{Account, Lack, Status};
pub use accounts::Accounts;
pub use lease::{Lease, Span};
pub use refusal::{Cause, Denial, Refusal, Shortage};
pub use reservation::{Charged, Charges, Need, Reservation, reserve, reserve_after_wait};
pub use terms::{Kind, LimitTerms, Mode};
pub use waiting::{Crowded, Waiting, Wake};

#[cfg(test)]
mod tests;
