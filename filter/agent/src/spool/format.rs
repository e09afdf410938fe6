//! The bytes of a segment.

use std::{fmt, str::FromStr};

use proto::metering::v1::GapReason;

/// Largest encoded record in bytes; records are a few kilobytes.
pub const MAX_RECORD_BYTES: usize = 256 * 1024;

pub(super) const HEADER_BYTES: usize = 44;
pub(super) const FRAME_HEADER_BYTES: usize = 8;
/// Largest frame: header, tag and record.
pub(super) const MAX_FRAME_BYTES: usize = FRAME_HEADER_BYTES + 1 + MAX_RECORD_BYTES;

/// Damaged frames that are passed over at a time.
const MAX_DAMAGED: u64 = 64;

const MAGIC: &[u8; 8] = b"tp-spool";
const FORMAT: u32 = 1;
const TAG_RECORD: u8 = 0;
const TAG_GAP: u8 = 1;

/// Names one process of a node: 16 random bytes, written as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId(pub [u8; 16]);

/// Whose segment it is, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) boot: BootId,
    pub(super) shard: u32,
    pub(super) first_seq: u64,
}

/// What stands at the start of a segment's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Header(SegmentHeader),
    /// Fewer bytes than a header has.
    Partial,
    Corrupt,
    /// Written by a build that knows more; the number is its format.
    Newer(u32),
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    Record(&'a [u8]),
    /// From the frame's sequence to this one, inclusive.
    Gap {
        to: u64,
        reason: GapReason,
    },
}

/// What the bytes at a frame's place are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// A whole frame, `bytes` long.
    Frame {
        frame: Frame<'a>,
        bytes: usize,
    },
    /// Nothing at all.
    Empty,
    /// The beginning of a frame.
    Partial,
    Corrupt,
}

// === impl BootId ===

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not 32 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a boot id")]
pub struct NotABootId;

impl FromStr for BootId {
    type Err = NotABootId;

    fn from_str(text: &str) -> Result<Self, NotABootId> {
        let lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.bytes().all(lower_hex) {
            return Err(NotABootId);
        }
        let id = u128::from_str_radix(text, 16).map_err(|_| NotABootId)?;
        Ok(Self(id.to_be_bytes()))
    }
}

// === impl SegmentHeader ===

impl SegmentHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&self.boot.0);
        bytes.extend_from_slice(&self.shard.to_le_bytes());
        bytes.extend_from_slice(&self.first_seq.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(super) fn read(bytes: &[u8]) -> Head {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Head::Partial;
        };
        Self::read_whole(bytes).unwrap_or(Head::Corrupt)
    }

    fn read_whole(bytes: &[u8; HEADER_BYTES]) -> Option<Head> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (format, rest) = rest.split_first_chunk()?;
        let (boot, rest) = rest.split_first_chunk()?;
        let (shard, rest) = rest.split_first_chunk()?;
        let (first_seq, rest) = rest.split_first_chunk()?;
        let checksum = u32::from_le_bytes(*rest.first_chunk()?);
        let format = u32::from_le_bytes(*format);
        // A newer format may have another header, so its checksum says nothing.
        if magic == MAGIC && format > FORMAT {
            return Some(Head::Newer(format));
        }
        let covered = bytes.get(..HEADER_BYTES - size_of::<u32>())?;
        if magic != MAGIC || format != FORMAT || crc32c::crc32c(covered) != checksum {
            return None;
        }
        Some(Head::Header(Self {
            boot: BootId(*boot),
            shard: u32::from_le_bytes(*shard),
            first_seq: u64::from_le_bytes(*first_seq),
        }))
    }
}

// === frames ===

/// Appends the frame of record `seq`, whose bytes `write` appends. False, and the buffer is as it
/// was, if the record is too long.
pub(super) fn push_record(
    buffer: &mut Vec<u8>,
    seq: u64,
    write: impl FnOnce(&mut Vec<u8>),
) -> bool {
    push_frame(buffer, seq, TAG_RECORD, write)
}

/// Appends a frame that says that sequences `from` to `to` are lost.
pub(super) fn push_gap(buffer: &mut Vec<u8>, from: u64, to: u64, reason: GapReason) {
    push_frame(buffer, from, TAG_GAP, |body| {
        body.extend_from_slice(&to.to_le_bytes());
        body.push(match reason {
            GapReason::Unspecified | GapReason::Lost => 3,
            GapReason::DiskFull => 1,
            GapReason::Torn => 2,
        });
    });
}

/// Reads the frame of sequence `seq` at the start of `bytes`.
pub(super) fn parse(bytes: &[u8], seq: u64) -> Parsed<'_> {
    if bytes.is_empty() {
        return Parsed::Empty;
    }
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return Parsed::Partial;
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length == 0 || length > 1 + MAX_RECORD_BYTES {
        return Parsed::Corrupt;
    }
    let Some((checksum, rest)) = rest.split_first_chunk() else {
        return Parsed::Partial;
    };
    let Some(content) = rest.get(..length) else {
        return Parsed::Partial;
    };
    if u32::from_le_bytes(*checksum) != frame_checksum(seq, content) {
        return Parsed::Corrupt;
    }
    read_content(content, seq).map_or(Parsed::Corrupt, |frame| Parsed::Frame {
        frame,
        bytes: FRAME_HEADER_BYTES + length,
    })
}

/// Passes over damaged frames: their number and length, if a sound frame stands behind them, which
/// shows that they are as long as they say. `bytes` begin with the damaged frame of `seq`.
pub(super) fn pass_over(bytes: &[u8], seq: u64) -> Option<(u64, usize)> {
    let mut passed = 0;
    for frames in 1..=MAX_DAMAGED {
        passed += claimed_length(bytes.get(passed..)?)?;
        let behind = parse(bytes.get(passed..)?, seq.checked_add(frames)?);
        if matches!(behind, Parsed::Frame { .. }) {
            return Some((frames, passed));
        }
    }
    None
}

/// How many frames can be told apart in bytes that hold no sound one; what is no frame at all
/// counts as one.
pub(super) fn count_damaged(mut bytes: &[u8]) -> u64 {
    let mut frames = 0;
    while !bytes.is_empty() {
        frames += 1;
        let length = claimed_length(bytes).unwrap_or(bytes.len());
        bytes = bytes.get(length..).unwrap_or_default();
    }
    frames
}

/// What a frame's own header says of its length, if a frame can be that long.
fn claimed_length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    (1..=1 + MAX_RECORD_BYTES)
        .contains(&length)
        .then_some(FRAME_HEADER_BYTES + length)
}

fn push_frame(buffer: &mut Vec<u8>, seq: u64, tag: u8, write: impl FnOnce(&mut Vec<u8>)) -> bool {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
    buffer.push(tag);
    write(buffer);
    let framed = buffer.get_mut(start..).and_then(|frame| {
        let (header, content) = frame.split_first_chunk_mut::<FRAME_HEADER_BYTES>()?;
        let length = u32::try_from(content.len()).ok()?;
        let (length_field, checksum_field) = header.split_first_chunk_mut::<4>()?;
        *length_field = length.to_le_bytes();
        checksum_field.copy_from_slice(&frame_checksum(seq, content).to_le_bytes());
        (content.len() <= 1 + MAX_RECORD_BYTES).then_some(())
    });
    if framed.is_none() {
        buffer.truncate(start);
    }
    framed.is_some()
}

/// The sequence is part of it, so that no frame can stand in the place of another.
fn frame_checksum(seq: u64, content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&seq.to_le_bytes()), content)
}

fn read_content(content: &[u8], seq: u64) -> Option<Frame<'_>> {
    let (tag, body) = content.split_first()?;
    match *tag {
        TAG_RECORD => Some(Frame::Record(body)),
        TAG_GAP => {
            let (to, reason) = body.split_first_chunk()?;
            let to = u64::from_le_bytes(*to);
            let reason = match reason {
                [1] => GapReason::DiskFull,
                [2] => GapReason::Torn,
                [3] => GapReason::Lost,
                _ => return None,
            };
            (seq..u64::MAX)
                .contains(&to)
                .then_some(Frame::Gap { to, reason })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            boot: BootId([7; 16]),
            shard: 3,
            first_seq: 42,
        }
    }

    #[test]
    fn a_header_is_read_back_and_any_flipped_bit_is_seen() {
        let bytes = header().encode();
        assert_eq!(bytes.len(), HEADER_BYTES);
        assert_eq!(SegmentHeader::read(&bytes), Head::Header(header()));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(
                SegmentHeader::read(&flipped),
                Head::Header(header()),
                "bit {bit}"
            );
        }
        for length in 0..bytes.len() {
            assert_eq!(SegmentHeader::read(&bytes[..length]), Head::Partial);
        }
    }

    #[test]
    fn a_header_of_a_later_format_is_told_from_a_damaged_one() {
        let mut bytes = header().encode();
        bytes[8] = 2;
        assert_eq!(SegmentHeader::read(&bytes), Head::Newer(2));
    }

    #[test]
    fn a_record_at_another_sequence_is_corrupt() {
        let mut bytes = Vec::new();
        assert!(push_record(&mut bytes, 5, |body| body.extend_from_slice(b"five")));
        assert_eq!(
            parse(&bytes, 5),
            Parsed::Frame {
                frame: Frame::Record(b"five"),
                bytes: 13
            }
        );
        assert_eq!(parse(&bytes, 6), Parsed::Corrupt);
    }

    #[test]
    fn preallocated_zeros_are_no_record() {
        assert_eq!(parse(&[0; 64], 1), Parsed::Corrupt);
    }

    #[test]
    fn a_record_that_is_too_long_leaves_the_buffer_as_it_was() {
        let mut bytes = b"before".to_vec();
        let long = vec![1; MAX_RECORD_BYTES + 1];
        assert!(!push_record(&mut bytes, 1, |body| body.extend_from_slice(&long)));
        assert_eq!(bytes, b"before");
        assert!(push_record(&mut bytes, 1, |body| body.extend_from_slice(&long[1..])));
    }

    #[test]
    fn damaged_frames_are_passed_over_up_to_a_sound_one() {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for seq in 5..10 {
            assert!(push_record(&mut bytes, seq, |body| body
                .extend_from_slice(b"some words")));
            ends.push(bytes.len());
        }
        assert_eq!(
            pass_over(&bytes, 4),
            None,
            "what stands behind is another sequence's"
        );
        bytes[12] ^= 1;
        assert_eq!(pass_over(&bytes, 5), Some((1, ends[0])));
        bytes[ends[0] + 12] ^= 1;
        assert_eq!(pass_over(&bytes, 5), Some((2, ends[1])));
        assert_eq!(pass_over(&bytes[..ends[1]], 5), None);
        bytes[ends[0]] = 0;
        assert_eq!(
            pass_over(&bytes, 5),
            None,
            "a length that cannot be leads nowhere"
        );
    }

    #[test]
    fn damaged_frames_at_an_end_are_counted_as_far_as_they_can_be_told_apart() {
        let mut bytes = Vec::new();
        assert_eq!(count_damaged(&bytes), 0);
        for seq in 1..=3 {
            assert!(push_record(&mut bytes, seq, |body| body
                .extend_from_slice(b"some words")));
        }
        assert_eq!(count_damaged(&bytes), 3);
        assert_eq!(count_damaged(&bytes[..bytes.len() - 1]), 3);
        assert_eq!(count_damaged(&bytes[..3]), 1);
        assert_eq!(count_damaged(&[0; 4096]), 1);
    }

    #[test]
    fn a_gap_keeps_its_end_and_reason() {
        for reason in [GapReason::DiskFull, GapReason::Torn, GapReason::Lost] {
            let mut bytes = Vec::new();
            push_gap(&mut bytes, 3, 9, reason);
            let frame = Frame::Gap { to: 9, reason };
            assert_eq!(
                parse(&bytes, 3),
                Parsed::Frame {
                    frame,
                    bytes: bytes.len()
                }
            );
        }
    }

    #[test]
    fn a_boot_id_is_written_as_hex_and_read_back() {
        let id = BootId(*b"\x00\x01abcdefghijkl\xfe\xff");
        assert_eq!(id.to_string(), "00016162636465666768696a6b6cfeff");
        assert_eq!(id.to_string().parse(), Ok(id));
        for other in [
            "",
            "00",
            "00016162636465666768696A6B6CFEFF",
            "+0016162636465666768696a6b6cfeff",
        ] {
            assert_eq!(other.parse::<BootId>(), Err(NotABootId));
        }
    }

    proptest! {
        #[test]
        fn a_cut_frame_is_partial_and_a_damaged_one_is_never_another_record(
            body in proptest::collection::vec(any::<u8>(), 0..200),
            seq: u64,
            place: prop::sample::Index,
            damage in 1_u8..,
        ) {
            let mut bytes = Vec::new();
            prop_assert!(push_record(&mut bytes, seq, |frame| frame.extend_from_slice(&body)));
            let cut = place.index(bytes.len());
            let expected = if cut == 0 { Parsed::Empty } else { Parsed::Partial };
            prop_assert_eq!(parse(&bytes[..cut], seq), expected);
            bytes[cut] ^= damage;
            let read = matches!(parse(&bytes, seq), Parsed::Frame { .. });
            prop_assert!(!read);
        }
    }
}
