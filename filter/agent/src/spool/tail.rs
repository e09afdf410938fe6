//! Where a dead writer's segment ends.

use super::{
    Disk, DiskError,
    format::{Frame, HEADER_BYTES, MAX_FRAME_BYTES, Parsed, parse},
};

/// The end of what can be read of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The sequence after the last whole frame.
    pub(super) next_seq: u64,
    /// Bytes up to there.
    pub(super) bytes: u64,
}

/// Reads the frames of a segment whose header is sound.
pub(super) fn find_end<D: Disk>(disk: &D, path: &str, first_seq: u64) -> Result<End, DiskError> {
    let mut end = End {
        next_seq: first_seq,
        bytes: HEADER_BYTES as u64,
    };
    let mut buffer = vec![0; MAX_FRAME_BYTES];
    loop {
        let length = disk.read(path, end.bytes, &mut buffer)?;
        let mut bytes = buffer.get(..length).unwrap_or_default();
        let begun = end.bytes;
        while let Parsed::Frame {
            frame,
            bytes: length,
        } = parse(bytes, end.next_seq)
        {
            end.next_seq = match frame {
                Frame::Record(_) => end.next_seq + 1,
                Frame::Gap { to, .. } => to + 1,
            };
            end.bytes += length as u64;
            bytes = bytes.get(length..).unwrap_or_default();
        }
        if end.bytes == begun {
            return Ok(end);
        }
    }
}
