//! A worker's end of its shard.

use proto::metering::v1::GapReason;

use super::{
    BootId, Disk, DiskError,
    format::{HEADER_BYTES, SegmentHeader, push_gap, push_record},
    layout::{BOOTS, boot_dir, segment_path},
    upkeep::{Kept, Spare, Upkeep},
};

/// Bytes after which a segment is full.
pub const DEFAULT_SEGMENT_BYTES: u64 = 8 * 1024 * 1024;

/// Appends one worker's records. Never panics and never waits but for the write call itself; no
/// memory is allocated for a record once the buffer has grown to the largest one.
///
/// What takes longer is its [`Upkeep`], to be done by another thread about once a second.
#[derive(Debug)]
pub struct ShardWriter<D: Disk> {
    disk: D,
    boot: BootId,
    shard: u32,
    segment_bytes: u64,
    next_seq: u64,
    segment: Option<OpenSegment<D::File>>,
    /// Takes the place of the segment when that is full.
    spare: Option<Spare<D::File>>,
    /// Full segments with bytes that are not on the medium.
    full: Vec<String>,
    /// There are segments whose names are not on the medium.
    unnamed: bool,
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

/// The end of a shard whose writer is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardEnd {
    pub shard: u32,
    /// Its last sequence; 0 if there was none.
    pub last_seq: u64,
    /// Why what is missing before it is lost, if the disk would not even take the gap.
    pub unmarked: Option<GapReason>,
}

#[derive(Debug)]
struct OpenSegment<F> {
    file: F,
    path: String,
    bytes: u64,
    /// Room for a whole segment is set aside.
    has_room: bool,
    /// It has bytes that are not on the medium.
    dirty: bool,
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
        Self::resumed(disk, boot, shard, segment_bytes, 1)
    }

    /// A writer that goes on with a shard at `next_seq`, in a segment of its own.
    pub(super) fn resumed(
        disk: D,
        boot: BootId,
        shard: u32,
        segment_bytes: u64,
        next_seq: u64,
    ) -> Self {
        Self {
            disk,
            boot,
            shard,
            segment_bytes,
            next_seq,
            segment: None,
            spare: None,
            full: Vec::new(),
            unnamed: false,
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

    /// Records that are lost and not yet written down as such.
    #[must_use]
    pub fn unmarked(&self) -> u64 {
        self.gap.map_or(0, |gap| gap.to - gap.from + 1)
    }

    /// Records lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Number of the shard: that of its worker.
    #[must_use]
    pub fn shard(&self) -> u32 {
        self.shard
    }

    /// The sequence that the next record will have.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// What is to be done for this shard; to be handed back by [`Self::kept`]. `None`: nothing.
    pub fn upkeep(&mut self) -> Option<Upkeep<D>> {
        let dir = boot_dir(self.boot);
        let mut sync = std::mem::take(&mut self.full);
        let mut upkeep = Upkeep::new(self.disk.clone(), self.shard, self.segment_bytes);
        if let Some(segment) = &mut self.segment {
            if std::mem::take(&mut segment.dirty) {
                sync.push(segment.path.clone());
            }
            if !segment.has_room && segment.bytes < self.segment_bytes {
                upkeep.make_room = Some(segment.path.clone());
            }
            // The other half takes longer to fill than the next upkeep to come.
            if self.spare.is_none() && segment.bytes >= self.segment_bytes / 2 {
                upkeep.make_spare = Some(dir.clone());
            }
        }
        if std::mem::take(&mut self.unnamed) {
            sync.extend([dir, BOOTS.to_owned()]);
        }
        upkeep.sync = sync;
        upkeep.is_needed().then_some(upkeep)
    }

    /// Takes back what was done. A segment that is gone from the disk, its directory with it, is
    /// given up for a new one, so that what was in it is missed at once; true if it was.
    pub fn kept(&mut self, kept: Kept<D>) -> bool {
        let is_current = |path: &String| {
            let segment = self.segment.as_ref();
            segment.is_some_and(|segment| segment.path == *path)
        };
        if kept.vanished.iter().any(is_current) {
            self.segment = None;
            self.spare = None;
            let first_seq = self.gap.map_or(self.next_seq, |gap| gap.from);
            // Failing, it is tried again with the next record.
            self.segment = self.open_segment(first_seq).ok();
            return true;
        }
        let made_room = kept.made_room.as_ref().is_some_and(is_current);
        if let (true, Some(segment)) = (made_room, &mut self.segment) {
            segment.has_room = true;
        }
        self.spare = self.spare.take().or(kept.spare);
        false
    }

    /// The last call of a process that ends in order: marks the gap, if the disk lets it, and gives
    /// back the room that is not used.
    pub fn finish(&mut self) -> ShardEnd {
        let reason = self.gap.map(|gap| gap.reason);
        let marked = self.mark_gap();
        if let Some(segment) = self.segment.take() {
            drop(self.disk.truncate(&segment.path, segment.bytes));
            self.full.extend(segment.dirty.then_some(segment.path));
        }
        if let Some(spare) = self.spare.take() {
            drop(self.disk.remove(&spare.path));
        }
        ShardEnd {
            shard: self.shard,
            last_seq: self.next_seq - 1,
            unmarked: reason.filter(|_| !marked),
        }
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
        let segment = match self.segment.take() {
            Some(segment) if full(&segment) => {
                self.full.extend(segment.dirty.then_some(segment.path));
                None
            }
            segment => segment,
        };
        let mut segment = match segment {
            Some(segment) => segment,
            None => self.open_segment(seq)?,
        };
        let written = self.disk.append(&mut segment.file, &self.buffer);
        segment.dirty = true;
        if written.is_ok() {
            segment.bytes += length;
        } else if self.disk.truncate(&segment.path, segment.bytes).is_err() {
            // What there is of the frame cannot be cut off, and nothing may stand behind it: the
            // segment ends here and the next write opens another.
            self.full.push(segment.path);
            return written;
        } else {
            // The cut gave the room back as well.
            segment.has_room = false;
        }
        self.segment = Some(segment);
        written
    }

    fn open_segment(&mut self, first_seq: u64) -> Result<OpenSegment<D::File>, DiskError> {
        let path = segment_path(&boot_dir(self.boot), self.shard, first_seq);
        let spare = self.spare.take();
        // One that cannot be renamed is gone, and its directory perhaps too.
        let spare = spare.filter(|spare| self.disk.rename(&spare.path, &path).is_ok());
        let has_room = spare.is_some();
        let mut file = match spare {
            Some(spare) => spare.file,
            None => self.create(&path)?,
        };
        self.unnamed = true;
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
            has_room,
            dirty: true,
        })
    }

    fn create(&self, path: &str) -> Result<D::File, DiskError> {
        match self.disk.create(path) {
            // The state directory was emptied under us.
            Err(DiskError::NotFound(_)) => {
                self.disk.create_dir(&boot_dir(self.boot))?;
                self.disk.create(path)
            }
            created => created,
        }
    }
}

#[cfg(test)]
impl<D: Disk> ShardWriter<D> {
    /// Where the buffer is and how much it holds.
    pub(super) fn buffer(&self) -> (*const u8, usize) {
        (self.buffer.as_ptr(), self.buffer.capacity())
    }
}
