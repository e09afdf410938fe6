//! Where things are in a table, and how they are stored.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::spool::BootId;

/// Slots in one table.
pub const TABLE_SLOTS: usize = 511;
/// Words of one table: 2 MiB.
pub const TABLE_WORDS: usize = (1 + TABLE_SLOTS) * SLOT_WORDS;

/// A slot is a page, so that a torn page is one exchange's.
pub(super) const SLOT_WORDS: usize = 512;
pub(super) const WORD_BYTES: usize = size_of::<u64>();

const MAGIC: u64 = u64::from_be_bytes(*b"tp-open\0");
pub(super) const FORMAT: u32 = 2;
const HEADER_WORDS: usize = 5;

/// In a slot, before the body of the exchange: its seal, and the status that the client got.
pub(super) const CLIENT_STATUS: usize = 1;
pub(super) const EXCHANGE_BODY: usize = 2;
/// In an attempt: the words of its progress, from its seal on.
pub(super) const FLAGS: usize = 1;
pub(super) const VISIBLE_BYTES: usize = 2;
pub(super) const REASONING_BYTES: usize = 3;
pub(super) const FIRST_CONTENT_US: usize = 4;
pub(super) const DURATION_US: usize = 5;
pub(super) const LEFT_FOR: usize = 6;
pub(super) const SERVICE_TIER: usize = 8;
/// Of a word that is noted, such as a reason or a tier.
pub(super) const NOTED_TEXT_BYTES: usize = 2 * WORD_BYTES;
/// 0: no usage was reported; else 1 or 2, the place that counts.
pub(super) const USAGE_PLACE: usize = 10;
pub(super) const USAGES: usize = 11;
pub(super) const USAGE_WORDS: usize = 8;
/// How many attempts became one with this.
pub(super) const MORE: usize = USAGES + 2 * USAGE_WORDS;
pub(super) const ATTEMPT_BODY: usize = MORE + 1;

/// Whose table it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Is {
        boot: BootId,
        shard: u32,
    },
    /// It was not finished, so that no worker has had it; or it is damaged.
    Unknown,
    /// Written by a build that knows more; the number is its format.
    Newer(u32),
}

/// A word that covers what is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    /// Length of the body.
    pub(super) bytes: usize,
    checksum: u32,
}

/// Makes a table of words that are all zero, before any worker has it.
pub fn format(words: &[AtomicU64], boot: BootId, shard: u32) {
    let header = header(boot, shard);
    for (at, word) in header.into_iter().enumerate() {
        store(words, at, word, Ordering::Relaxed);
    }
}

fn header(boot: BootId, shard: u32) -> [u64; HEADER_WORDS] {
    let (low, high) = halves(boot);
    let kind = u64::from(FORMAT) << 32 | u64::from(shard);
    let checksum = checksum(0, &[MAGIC, kind, low, high].map(u64::to_ne_bytes).concat());
    [MAGIC, kind, low, high, checksum.into()]
}

fn halves(boot: BootId) -> (u64, u64) {
    let id = u128::from_ne_bytes(boot.0);
    let low = u64::try_from(id & u128::from(u64::MAX)).unwrap_or(0);
    (low, u64::try_from(id >> 64).unwrap_or(0))
}

pub(super) fn owner(words: &[u64], boot: BootId, shard: u32) -> Owner {
    let Some([magic, kind, ..]) = words.first_chunk::<HEADER_WORDS>() else {
        return Owner::Unknown;
    };
    let format = u32::try_from(kind >> 32).unwrap_or(0);
    if *magic == MAGIC && format > FORMAT {
        return Owner::Newer(format);
    }
    if words.starts_with(&header(boot, shard)) {
        Owner::Is { boot, shard }
    } else {
        Owner::Unknown
    }
}

// === impl Seal ===

impl Seal {
    /// `salt` is what a body belongs to, so that one of an earlier exchange is not taken for it.
    pub(super) fn of(body: &[u8], salt: u32) -> Self {
        Self {
            bytes: body.len(),
            checksum: checksum(salt, body),
        }
    }

    pub(super) fn to_word(self) -> u64 {
        let bytes = u32::try_from(self.bytes).unwrap_or(0);
        u64::from(bytes) << 32 | u64::from(self.checksum)
    }

    /// `None` for a seal of 0.
    pub(super) fn from_word(word: u64) -> Option<Self> {
        let bytes = usize::try_from(word >> 32).ok()?;
        let checksum = u32::try_from(word & u64::from(u32::MAX)).ok()?;
        (bytes > 0).then_some(Self { bytes, checksum })
    }

    pub(super) fn is_of(self, body: &[u8], salt: u32) -> bool {
        Self::of(body, salt) == self
    }
}

pub(super) fn checksum(salt: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(salt, bytes)
}

// === stores ===

/// Every store into a table is made here. Outside of it nothing is stored.
pub(super) fn store(words: &[AtomicU64], at: usize, word: u64, order: Ordering) {
    let Some(place) = words.get(at) else { return };
    place.store(word, order);
    #[cfg(test)]
    super::tests::stores::note(place, word);
}

/// Stores bytes into as many words as they take; the last one is filled up with zeros.
pub(super) fn store_bytes(words: &[AtomicU64], at: usize, bytes: &[u8]) {
    for (at, part) in (at..).zip(bytes.chunks(WORD_BYTES)) {
        let mut word = [0; WORD_BYTES];
        for (byte, of_part) in word.iter_mut().zip(part) {
            *byte = *of_part;
        }
        store(words, at, u64::from_ne_bytes(word), Ordering::Relaxed);
    }
}

/// The first `length` bytes of the words from `at` on; `None` if there are not as many.
pub(super) fn load_bytes(words: &[u64], at: usize, length: usize) -> Option<Vec<u8>> {
    let words = words.get(at..at + length.div_ceil(WORD_BYTES))?;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.truncate(length);
    Some(bytes)
}
