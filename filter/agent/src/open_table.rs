//! The exchanges that a worker has open, in memory that outlives the process: an exchange takes a
//! slot when it is admitted and frees it when its record is in the spool. What a dead process left
//! in its slots is settled as a crash ([`find`], then the spool's adoption).
//!
//! A worker is the only writer of its tables. It never waits for one and never makes one: when all
//! slots are taken the exchange goes on without, until another thread has brought the next table.
//!
//! # Table
//! `open-w<shard>-<number>.map` beside the shard's segments: a page that says whose it is, then
//! [`TABLE_SLOTS`] slots of a page each. All of it is words of the machine's own byte order.
//!
//! ```text
//! page 0   magic | format, shard | boot id, 2 words | crc32c
//! slot     seal | client status | body ...          seal 0: the slot is free
//!          then one for each attempt that has begun, until a seal of 0:
//!          seal | progress, 27 words | body ...
//! seal     length of the body in bytes, crc32c of it
//! ```
//!
//! The exchange's body is its record as known at admission, with what was reserved then; an
//! attempt's is its identity, the price that held, and what it holds of its limits if that is not
//! what the exchange was admitted with. They are written once and never changed. What changes is
//! progress: words that stand for themselves, so that no store needs another one to make sense.
//! Reported usage, which does, has two places; a word says which of them counts.
//!
//! An attempt for which there is no room takes the place of the one before it, if that was left
//! and not billed. Else it becomes one with it: a word counts such attempts, each of which is then
//! taken to have used as much as the first could have.
//!
//! # When the process dies between two stores
//! A seal is stored after everything that it covers, and the seal behind it is cleared before. So
//! a slot is free, or holds an exchange with all attempts of which a byte may have left. The
//! checksums, which also cover the exchange's id, do the same for memory of which only parts
//! reached the medium before a power failure.
//!
//! The record wins: a slot is freed *after* the append, and one whose exchange is in the shard was
//! settled.

mod body;
mod found;
mod layout;
mod slot;
mod table;
mod trim;

pub use found::{Found, NotATable, find};
pub use layout::{TABLE_SLOTS, TABLE_WORDS, format};
pub use slot::Slot;
pub use table::OpenTable;

#[cfg(test)]
mod tests;
