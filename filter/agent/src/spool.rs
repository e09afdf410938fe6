//! Usage records on the node's disk, from settlement until the ledger has them.
//!
//! # Layout
//! `boots/<boot id, 32 hex digits>/{lock, w<shard>-<first sequence, 20 digits>.seg}` under the
//! node's state directory. A boot is one process; it holds `lock` as long as it lives, so that the
//! kernel frees it with the process. A shard is one worker: one writer, sequences from 1 without a
//! hole. A new segment begins when one is full; the sequence in its name is the next one of its
//! shard, so that a reader finds it by name.
//!
//! # Segment
//! All numbers are little endian.
//!
//! ```text
//! header   "tp-spool" | format u32 | boot id 16 bytes | shard u32 | first sequence u64 | crc32c u32
//! frame    length u32 | crc32c u32 | tag u8, body        length and checksum cover tag and body,
//!                                                        the checksum also the frame's sequence
//! tag 0    a record: an encoded UsageRecord
//! tag 1    a gap: last sequence u64 | reason u8          from the frame's own sequence on
//! ```
//!
//! A frame is appended by one write. Where the bytes stop making sense, a segment ends: in the last
//! segment of a living writer that is a frame still being written, anywhere else it is torn.
//!
//! # Loss is shown
//! A record that cannot be written still takes its sequence; the range is written as a gap frame
//! with the next record that can be. A reader names what a torn or missing segment held as a gap.
//! Sequences that were lost after the last readable frame of a dead boot are not named: nothing
//! says how many there were.
//!
//! # Room for the open table
//! The table of exchanges in flight is to be a file `open.map` beside the segments, under the same
//! lock and freed slot by slot *after* the append. Adoption then reads it after the shards: a slot
//! whose exchange id is among a shard's last records is settled, any other becomes a record with
//! `end = crash`, appended to the dead boot's own shard before it is sent. That needs no new
//! format: [`adopt`] cuts torn tails, so that the shard can be appended to, and the sequence to go
//! on with is the higher of the shard's end and the ledger's cursor, the difference being a gap.
//! Readers leave files alone whose names they do not know.

mod boot;
mod disk;
mod format;
mod layout;
#[cfg(test)]
pub(crate) mod memory;
mod reader;
mod retention;
mod tail;
mod writer;

pub use boot::{Adopted, Boot, BootError, RecoveredShard, adopt, boots};
pub use disk::{Disk, DiskError, Entry};
pub use format::{BootId, MAX_RECORD_BYTES, NotABootId};
pub use reader::{BatchLimit, Gap, Read, ShardReader};
pub use retention::Retention;
pub use writer::{Appended, DEFAULT_SEGMENT_BYTES, ShardWriter};

#[cfg(test)]
mod tests;
