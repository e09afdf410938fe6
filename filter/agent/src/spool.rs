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
//! A frame is appended by one write. A damaged frame with a sound one behind it is passed over.
//! Where the bytes stop making sense, a segment ends: in the last segment of a living writer that
//! is a frame still being written, anywhere else it is torn.
//!
//! # Loss is shown
//! A record that cannot be written still takes its sequence; the range is written as a gap frame
//! as soon as the disk takes one, with the next record or without. A process that ends in order
//! while the disk is still full tells the ledger itself ([`ShardWriter::finish`],
//! [`ShardReader::end_at`]). A reader names what a torn or missing segment held as a gap; of the
//! frames at the end of a dead boot's shard, those that can still be told apart. Not named, since
//! nothing says how many there were, are sequences whose frames are gone altogether from there, and
//! those lost to a full disk by a process that was then killed.
//!
//! # What is durable when
//! An appended record survives the death of its process at once, and a power failure once its
//! writer's [`Upkeep`] has run, which is asked for about once a second.
//!
//! # Room
//! A segment's bytes are set aside before they are needed, so that a full disk is met by the
//! upkeep first. A segment that is half full has its successor waiting beside it as
//! `w<shard>.spare`, so that a worker begins a segment by a rename.
//!
//! # Exchanges in flight
//! Those that a worker has open are in tables beside its segments, `open-w<shard>-<number>.map`
//! ([`open_table`](crate::open_table)), freed slot by slot *after* the append. Adoption reads them
//! after the shards: a slot whose exchange is in the shard is settled, any other becomes a record
//! with `end = crash`, which [`Adopted::settle`] appends to the dead boot's own shard before it is
//! sent. It goes into a segment of its own, so that a torn tail before it may stay. The sequence to
//! go on with is the higher of the shard's end and the ledger's cursor; so it waits until the
//! ledger has told that. The tables are removed when all that was in them is appended: should the
//! adopter die in between, the next one finds both, and the records win.
//!
//! Readers leave files alone whose names they do not know.

mod boot;
mod disk;
mod format;
mod in_flight;
mod layout;
#[cfg(test)]
pub(crate) mod memory;
mod reader;
mod retention;
mod tail;
mod upkeep;
mod writer;

pub use boot::{Adopted, Boot, BootError, RecoveredShard, adopt, boots};
pub use disk::{Disk, DiskError, Entry};
pub use format::{BootId, MAX_RECORD_BYTES, NotABootId};
pub use reader::{BatchLimit, Gap, Read, ShardReader};
pub use retention::Retention;
pub use upkeep::{Kept, Upkeep};
pub use writer::{Appended, DEFAULT_SEGMENT_BYTES, ShardEnd, ShardWriter};

#[cfg(test)]
mod tests;
