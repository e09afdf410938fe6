//! Where a dead writer's segment ends.

use super::{
    Disk, DiskError,
    format::{Frame, HEADER_BYTES, Head, MAX_FRAME_BYTES, Parsed, count_damaged, parse, pass_over},
};

/// The end of what can be read of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The sequence after the last whole frame.
    pub(super) next_seq: u64,
    /// Bytes up to there.
    pub(super) bytes: u64,
    /// Frames behind it of which nothing but their number can be read.
    pub(super) damaged: u64,
}

/// Reads the frames of a segment. One whose header is not sound has none that count.
pub(super) fn find_end<D: Disk>(
    disk: &D,
    path: &str,
    first_seq: u64,
    head: Head,
) -> Result<End, DiskError> {
    let mut end = End {
        next_seq: first_seq,
        bytes: HEADER_BYTES as u64,
        damaged: 0,
    };
    let mut buffer = vec![0; MAX_FRAME_BYTES];
    loop {
        let length = disk.read(path, end.bytes, &mut buffer)?;
        let mut bytes = buffer.get(..length).unwrap_or_default();
        let begun = end.bytes;
        while matches!(head, Head::Header(_))
            && let Some((frames, length)) = next_frames(bytes, end.next_seq)
        {
            end.next_seq += frames;
            end.bytes += length as u64;
            bytes = bytes.get(length..).unwrap_or_default();
        }
        if end.bytes == begun {
            end.damaged = count_damaged(bytes);
            return Ok(end);
        }
    }
}

/// Sequences and bytes up to behind a sound frame, or before one.
fn next_frames(bytes: &[u8], seq: u64) -> Option<(u64, usize)> {
    match parse(bytes, seq) {
        Parsed::Frame { frame, bytes } => Some(match frame {
            Frame::Record(_) => (1, bytes),
            Frame::Gap { to, .. } => (to - seq + 1, bytes),
        }),
        Parsed::Corrupt => pass_over(bytes, seq),
        Parsed::Empty | Parsed::Partial => None,
    }
}
