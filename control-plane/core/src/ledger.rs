//! The usage ledger's arithmetic: what of a batch is new, and what it adds up to.
//!
//! A shard is one worker's sequence of records in one boot of a node, contiguous from 1. The
//! cursor of a shard is the last sequence that was committed; nothing behind it counts again and
//! nothing beyond a hole is taken, so that each record counts exactly once.

mod reprice;
mod rollup;
mod summary;

pub use filter_core::config::PriceList;
pub use reprice::{Corrected, Correction, RepriceFilter, Repriced, Repricing};
pub use rollup::{RollupKey, RollupSums, Rollups, SLOT_S};
pub use summary::{Summary, Undecodable};

use crate::fault::Fault;
use crate::nodes::BootId;

/// Names a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    pub boot_id: BootId,
    pub number: u32,
}

/// What a node sends for a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub shard: Shard,
    pub content: Content,
}

/// Records, or the statement that some no longer exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Encoded `UsageRecord` messages `first_seq`, `first_seq` + 1, …
    Records {
        first_seq: u64,
        records: Vec<Vec<u8>>,
    },
    /// Sequences `from_seq` to `to_seq`, both included, are lost.
    Gap {
        from_seq: u64,
        to_seq: u64,
        /// `GapReason` as a number, known here or not.
        reason: i32,
    },
}

/// The answer to a delivery, to be sent after the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Everything up to and including this sequence is committed.
    Ack { shard: Shard, through_seq: u64 },
    /// Nothing was taken: this sequence is wanted next.
    Resume { shard: Shard, next_seq: u64 },
}

/// What of a delivery is new to a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// All of it was committed before.
    Nothing,
    /// The records from this position on; the first of them has this sequence.
    Records { skip: usize, first_seq: u64 },
    /// A gap, without the part that is behind the cursor.
    Gap { from_seq: u64, to_seq: u64 },
    /// It starts beyond the next sequence.
    Hole,
}

/// Largest sequence: Postgres keeps it as a signed number.
const MAX_SEQ: u64 = i64::MAX.unsigned_abs();

impl Delivery {
    /// Checks that sequences start at 1 and run forward.
    ///
    /// # Errors
    /// The first field that cannot be.
    pub fn validate(&self) -> Result<(), Fault> {
        let (first, last, place) = match &self.content {
            Content::Records { first_seq, records } => {
                let count = u64::try_from(records.len()).unwrap_or(MAX_SEQ);
                (
                    *first_seq,
                    first_seq.saturating_add(count),
                    "batch.first_seq",
                )
            }
            Content::Gap {
                from_seq, to_seq, ..
            } => {
                if to_seq < from_seq {
                    return Err(Fault::new("gap.to_seq", "must not be below from_seq"));
                }
                (*from_seq, *to_seq, "gap.from_seq")
            }
        };
        if first == 0 || last > MAX_SEQ {
            return Err(Fault::new(place, "must be 1 to 2^63 - 1"));
        }
        Ok(())
    }

    /// What of it is new to a shard whose last committed sequence is `last_seq`.
    pub fn taken_after(&self, last_seq: u64) -> Taken {
        let next_seq = last_seq.saturating_add(1);
        match &self.content {
            Content::Records { first_seq, .. } if *first_seq > next_seq => Taken::Hole,
            Content::Records { first_seq, records } => {
                let known = next_seq - first_seq;
                match usize::try_from(known) {
                    Ok(skip) if skip < records.len() => Taken::Records {
                        skip,
                        first_seq: next_seq,
                    },
                    _ => Taken::Nothing,
                }
            }
            Content::Gap { from_seq, .. } if *from_seq > next_seq => Taken::Hole,
            Content::Gap { to_seq, .. } if *to_seq < next_seq => Taken::Nothing,
            Content::Gap { to_seq, .. } => Taken::Gap {
                from_seq: next_seq,
                to_seq: *to_seq,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(first_seq: u64, count: usize) -> Delivery {
        deliver(Content::Records {
            first_seq,
            records: vec![vec![]; count],
        })
    }

    fn gap(from_seq: u64, to_seq: u64) -> Delivery {
        deliver(Content::Gap {
            from_seq,
            to_seq,
            reason: 1,
        })
    }

    fn deliver(content: Content) -> Delivery {
        let shard = Shard {
            boot_id: BootId([1; 16]),
            number: 0,
        };
        Delivery { shard, content }
    }

    #[test]
    fn only_what_lies_beyond_the_cursor_is_taken() {
        for (delivery, last_seq, taken) in [
            (
                records(1, 3),
                0,
                Taken::Records {
                    skip: 0,
                    first_seq: 1,
                },
            ),
            (
                records(1, 3),
                2,
                Taken::Records {
                    skip: 2,
                    first_seq: 3,
                },
            ),
            (records(1, 3), 3, Taken::Nothing),
            (records(1, 0), 0, Taken::Nothing),
            (records(5, 1), 3, Taken::Hole),
            (
                gap(1, 9),
                0,
                Taken::Gap {
                    from_seq: 1,
                    to_seq: 9,
                },
            ),
            (
                gap(1, 9),
                4,
                Taken::Gap {
                    from_seq: 5,
                    to_seq: 9,
                },
            ),
            (gap(1, 9), 9, Taken::Nothing),
            (gap(3, 9), 1, Taken::Hole),
        ] {
            assert_eq!(
                delivery.taken_after(last_seq),
                taken,
                "{delivery:?} after {last_seq}"
            );
        }
    }

    #[test]
    fn sequences_that_cannot_be_are_refused() {
        for wrong in [
            records(0, 1),
            records(u64::MAX, 1),
            gap(0, 1),
            gap(5, 4),
            gap(1, u64::MAX),
        ] {
            assert!(wrong.validate().is_err(), "{wrong:?}");
        }
        records(1, 1).validate().unwrap();
        gap(7, 7).validate().unwrap();
    }
}
