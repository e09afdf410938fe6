//! How long acked segments are kept, for a ledger that is restored to an older state.

use super::{Disk, DiskError, ShardReader};

/// Bounds on what is kept after it was acked; what is not acked is always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Of all shards together.
    pub bytes: u64,
    /// Since a segment's last write.
    pub age_ms: u64,
}

impl Default for Retention {
    /// 2 GiB and 72 hours.
    fn default() -> Self {
        Self {
            bytes: 2 << 30,
            age_ms: 72 * 3_600_000,
        }
    }
}

impl Retention {
    /// Removes acked segments, oldest first, that are too old or more than the bytes allow. `now_ms`
    /// is Unix time in milliseconds. Returns how many are gone.
    ///
    /// # Errors
    /// The first failure of the disk; the other segments are still tried.
    pub fn prune<D: Disk>(
        &self,
        readers: &mut [&mut ShardReader<D>],
        now_ms: u64,
    ) -> Result<usize, DiskError> {
        let mut failure = Ok(0);
        let mut done = Vec::new();
        for (reader, kept) in readers
            .iter()
            .enumerate()
            .map(|(at, reader)| (at, reader.kept()))
        {
            match kept {
                Ok(kept) => done.extend(
                    kept.into_iter()
                        .filter(|segment| segment.done)
                        .map(|segment| (segment.entry.modified_ms, reader, segment)),
                ),
                Err(error) => failure = Err(error),
            }
        }
        done.sort_by_key(|(modified_ms, reader, segment)| {
            (*modified_ms, *reader, segment.first_seq)
        });

        let mut bytes: u64 = done.iter().map(|(.., segment)| segment.entry.bytes).sum();
        let mut removed = 0;
        for (modified_ms, reader, segment) in done {
            if bytes <= self.bytes && now_ms.saturating_sub(modified_ms) <= self.age_ms {
                continue;
            }
            bytes -= segment.entry.bytes;
            match readers
                .get_mut(reader)
                .map(|reader| reader.remove(segment.first_seq))
            {
                Some(Err(error)) => failure = Err(error),
                Some(Ok(())) | None => removed += 1,
            }
        }
        failure.map(|_: usize| removed)
    }
}
