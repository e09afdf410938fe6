//! A worker's end of its shard.

use proto::metering::v1::GapReason;

use super::{
    BootId, Disk, DiskError,
    format::{HEADER_BYTES, SegmentHeader, push_gap, push_record},
    layout::{boot_dir, segment_path},
};

/// Bytes after which a segment is full.
pub const DEFAULT_SEGMENT_BYTES: u64 = 8 * 1024 * 1024;

/// Appends one worker's records. Never panics and never waits but for the write call itself; no
/// memory is allocated for a record once the buffer has grown to the largest one.
#[derive(Debug)]
pub struct ShardWriter<D: Disk> {
    disk: D,
    boot: BootId,
    shard: u32,
    segment_bytes: u64,
    next_seq: u64,
    segment: Option<OpenSegment<D::File>>,
    /// Sequences that are not on disk and not yet marked there.
    gap: Option<PendingGap>,
    buffer: Vec<u8>,
    lost: u64,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is in the file.
    Stored { seq: u64 },
    /// It is counted and its sequence will be told as lost.
    Lost { seq: u64 },
}

#[derive(Debug)]
struct OpenSegment<F> {
    file: F,
    path: String,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct PendingGap {
    from: u64,
    to: u64,
    reason: GapReason,
}

impl<D: Disk> ShardWriter<D> {
    /// A writer of a new shard, whose boot's directory is locked by this process.
    pub(super) fn new(disk: D, boot: BootId, shard: u32, segment_bytes: u64) -> Self {
        Self {
            disk,
            boot,
            shard,
            segment_bytes,
            next_seq: 1,
            segment: None,
            gap: None,
            buffer: Vec::new(),
            lost: 0,
        }
    }

    /// Appends a record by one write; after a loss, a write of the gap goes before it. One that is
    /// longer than [`super::MAX_RECORD_BYTES`], or that the disk refuses, is lost.
    pub fn append(&mut self, record: &impl prost::Message) -> Appended {
        let seq = self.next_seq;
        if !self.mark_gap() {
            return self.lose(seq, GapReason::DiskFull);
        }
        self.buffer.clear();
        let mut encoded = true;
        let fits = push_record(&mut self.buffer, seq, |body| {
            encoded = record.encode(body).is_ok();
        });
        if !fits || !encoded {
            return self.lose(seq, GapReason::Lost);
        }
        if self.write_frame(seq).is_err() {
            return self.lose(seq, GapReason::DiskFull);
        }
        self.next_seq += 1;
        Appended::Stored { seq }
    }

    /// Writes down what was lost so far, so that a shard which gets no more records shows it too.
    /// True if nothing is left to write down.
    pub fn mark_gap(&mut self) -> bool {
        let Some(PendingGap { from, to, reason }) = self.gap else {
            return true;
        };
        self.buffer.clear();
        push_gap(&mut self.buffer, from, to, reason);
        if self.write_frame(from).is_err() {
            return false;
        }
        self.gap = None;
        true
    }

    /// Records lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The sequence that the next record will have.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    fn lose(&mut self, seq: u64, reason: GapReason) -> Appended {
        self.next_seq += 1;
        self.lost += 1;
        let first = PendingGap {
            from: seq,
            to: seq,
            reason,
        };
        self.gap = Some(PendingGap {
            to: seq,
            ..self.gap.unwrap_or(first)
        });
        Appended::Lost { seq }
    }

    /// Writes the buffer, which holds the frame of sequence `seq` and nothing else: what a failed
    /// write leaves is never a whole frame, so no reader can have taken it.
    fn write_frame(&mut self, seq: u64) -> Result<(), DiskError> {
        let length = self.buffer.len() as u64;
        let full = |segment: &OpenSegment<D::File>| {
            segment.bytes > HEADER_BYTES as u64 && segment.bytes + length > self.segment_bytes
        };
        let mut segment = match self.segment.take().filter(|segment| !full(segment)) {
            Some(segment) => segment,
            None => self.open_segment(seq)?,
        };
        let written = self.disk.append(&mut segment.file, &self.buffer);
        if written.is_ok() {
            segment.bytes += length;
        } else if self.disk.truncate(&segment.path, segment.bytes).is_err() {
            // What there is of the frame cannot be cut off, and nothing may stand behind it: the
            // segment ends here and the next write opens another.
            return written;
        }
        self.segment = Some(segment);
        written
    }

    fn open_segment(&self, first_seq: u64) -> Result<OpenSegment<D::File>, DiskError> {
        let dir = boot_dir(self.boot);
        let path = segment_path(&dir, self.shard, first_seq);
        let mut file = match self.disk.create(&path) {
            // The state directory was emptied under us.
            Err(DiskError::NotFound(_)) => {
                self.disk.create_dir(&dir)?;
                self.disk.create(&path)?
            }
            created => created?,
        };
        let header = SegmentHeader {
            boot: self.boot,
            shard: self.shard,
            first_seq,
        }
        .encode();
        self.disk.append(&mut file, &header)?;
        Ok(OpenSegment {
            file,
            path,
            bytes: header.len() as u64,
        })
    }
}

#[cfg(test)]
impl<D: Disk> ShardWriter<D> {
    /// Where the buffer is and how much it holds.
    pub(super) fn buffer(&self) -> (*const u8, usize) {
        (self.buffer.as_ptr(), self.buffer.capacity())
    }
}
