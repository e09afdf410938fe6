//! Keeps this node's credit: asks for it as requests need it, gives back what lies idle, and lets
//! go of it when the control plane says so.
//!
//! The protocol is `turnpike.metering.v1.Metering/Lease`. The shell owns the stream, the clock and
//! entropy; [`Session`] says what to send. Workers spend from `filter_core::credit` meanwhile, and
//! never hear of this.
//!
//! - A process says Hello with what it holds; the answer names its epoch. All totals are of that
//!   epoch, absolute, and only rise: losing, repeating or reordering messages costs time, not money.
//! - Beats keep the credit usable: until `ttl` after one was sent that was answered.
//! - When the epoch is over (Fenced, or another one in a Welcome) its leases are retired at once:
//!   nothing more is taken from them, what is reserved still settles on them, and a Close follows
//!   when nothing is.
//! - A window's lease ends with the window; the next one is asked for a little before, each account
//!   at a moment of its own.
//!
//! Read next: `session`, then `book`, which is one account.

mod book;
mod closing;
mod pace;
mod session;

pub use session::Session;
