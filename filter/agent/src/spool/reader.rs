//! The sending end of a shard: reads it in order while its writer appends, again if asked.

use proto::metering::v1::GapReason;

use super::{
    BootId, Disk, DiskError, Entry, ShardEnd,
    format::{Frame, HEADER_BYTES, Head, MAX_FRAME_BYTES, Parsed, SegmentHeader, parse, pass_over},
    layout::{segment_path, segments},
};

/// How much one read may give. At least one record is given, however long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimit {
    /// On disk, which is 9 bytes a record more than on the wire.
    pub bytes: usize,
    /// Their number.
    pub records: usize,
}

/// Sequences that no longer exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first of them.
    pub from: u64,
    /// Inclusive.
    pub to: u64,
    pub reason: GapReason,
}

/// What comes next in a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// Encoded records `first_seq`, `first_seq + 1`, …; at least one.
    Records {
        first_seq: u64,
        records: Vec<Vec<u8>>,
    },
    /// Sequences in whose place there is nothing.
    Gap(Gap),
}

/// Reads one shard. Everything from the wanted sequence on comes in order, each sequence once, as a
/// record or in a gap.
#[derive(Debug)]
pub struct ShardReader<D> {
    disk: D,
    dir: String,
    boot: BootId,
    shard: u32,
    /// The last sequence of a shard whose writer is dead.
    end: Option<u64>,
    /// Why sequences before the end are missing, if the writer said so.
    end_reason: Option<GapReason>,
    /// The sequence that [`Self::read`] gives next.
    next_seq: u64,
    acked: u64,
    oldest_kept: u64,
    place: Option<Place>,
}

/// A place in a segment.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// First sequence of the segment, which names it.
    segment: u64,
    /// 0 while the header has not been checked.
    offset: u64,
    /// The sequence of the frame at `offset`.
    seq: u64,
}

/// A segment of a shard, as far as keeping it is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptSegment {
    pub(super) first_seq: u64,
    pub(super) entry: Entry,
    /// Everything in it is acked and nothing will be appended.
    pub(super) done: bool,
}

enum Scan {
    Found(Read),
    /// Nothing more can be read here.
    End(Tail),
    Missing,
}

/// What stands behind the last whole frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    Clean,
    /// The beginning of something.
    Partial,
    Corrupt,
}

impl Tail {
    /// Why sequences are missing behind it.
    fn missing_behind(self) -> GapReason {
        match self {
            Self::Clean => GapReason::Lost,
            Self::Partial | Self::Corrupt => GapReason::Torn,
        }
    }
}

impl<D: Disk> ShardReader<D> {
    /// A reader from sequence 1 on, or from the oldest that is kept. `end` is the last sequence if
    /// the writer is dead.
    pub(super) fn new(disk: D, dir: String, boot: BootId, shard: u32, end: Option<u64>) -> Self {
        Self {
            disk,
            dir,
            boot,
            shard,
            end,
            end_reason: None,
            next_seq: 1,
            acked: 0,
            oldest_kept: 1,
            place: None,
        }
    }

    /// The process that wrote the shard.
    #[must_use]
    pub fn boot(&self) -> BootId {
        self.boot
    }

    /// The worker that wrote it.
    #[must_use]
    pub fn shard(&self) -> u32 {
        self.shard
    }

    /// The sequence that [`Self::read`] gives next.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Everything up to here is in the ledger, as far as it said.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// The lowest sequence that can still be read.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub fn oldest_kept_seq(&mut self) -> Result<u64, DiskError> {
        if let Some((first_seq, _)) = self.list()?.first() {
            self.oldest_kept = *first_seq;
        }
        Ok(self.oldest_kept)
    }

    /// The ledger has everything up to `seq`. Never goes back; [`Self::rewind`] does.
    pub fn acked_through(&mut self, seq: u64) {
        self.acked = self.acked.max(seq);
    }

    /// The ledger wants `next_seq` next and has everything before it, whatever it said earlier.
    pub fn rewind(&mut self, next_seq: u64) {
        let next_seq = next_seq.max(1);
        self.acked = next_seq - 1;
        if next_seq != self.next_seq {
            self.next_seq = next_seq;
            self.place = None;
        }
    }

    /// The writer is done; nothing comes after its end.
    pub fn end_at(&mut self, end: ShardEnd) {
        self.end = Some(end.last_seq);
        self.end_reason = end.unmarked;
    }

    /// The next records or the next gap; `None` if there is nothing yet, or nothing more.
    ///
    /// # Errors
    /// Whatever the disk says; the place stays, so that the call may be repeated.
    pub fn read(&mut self, limit: BatchLimit) -> Result<Option<Read>, DiskError> {
        loop {
            let Some(place) = self.place else {
                match self.locate()? {
                    Some(gap) => return Ok(Some(gap)),
                    None if self.place.is_none() => return Ok(self.rest(Tail::Clean)),
                    None => continue,
                }
            };
            let tail = match self.scan(place, limit)? {
                Scan::Found(read) => return Ok(Some(read)),
                Scan::End(tail) => tail,
                Scan::Missing => {
                    self.place = None;
                    continue;
                }
            };
            let Some(successor) = self.successor(tail)? else {
                if tail == Tail::Corrupt && self.end.is_none() {
                    // The writer may have cut a frame off and put another in its place, so that
                    // this is not where a frame begins.
                    self.place = None;
                }
                return Ok(self.rest(tail));
            };
            // Now that a successor exists, this segment is final; the writer may have finished it
            // after the scan.
            let tail = match self.scan(self.place.unwrap_or(place), limit)? {
                Scan::Found(read) => return Ok(Some(read)),
                Scan::End(tail) => tail,
                Scan::Missing => Tail::Clean,
            };
            if let Some(hole) = self.cross(successor, tail) {
                return Ok(Some(hole));
            }
        }
    }

    /// True if the writer is dead and all it wrote is acked.
    pub(crate) fn is_done(&self) -> bool {
        self.end.is_some_and(|end| end <= self.acked)
    }

    /// Every segment there is, oldest first.
    pub(super) fn kept(&self) -> Result<Vec<KeptSegment>, DiskError> {
        let segments = self.list()?;
        let ends = segments
            .iter()
            .skip(1)
            .map(|(first_seq, _)| Some(first_seq - 1));
        let ends: Vec<Option<u64>> = ends.chain([self.end]).collect();
        let kept = segments
            .into_iter()
            .zip(ends)
            .map(|((first_seq, entry), end)| KeptSegment {
                first_seq,
                entry,
                done: end.is_some_and(|end| end <= self.acked),
            });
        Ok(kept.collect())
    }

    pub(super) fn remove(&mut self, first_seq: u64) -> Result<(), DiskError> {
        self.disk.remove(&self.path(first_seq))?;
        if self.place.is_some_and(|place| place.segment == first_seq) {
            self.place = None;
        }
        Ok(())
    }

    /// Finds the segment that holds `next_seq`; a gap if only later ones are kept.
    fn locate(&mut self) -> Result<Option<Read>, DiskError> {
        let segments = self.list()?;
        let Some((oldest, _)) = segments.first() else {
            return Ok(None);
        };
        self.oldest_kept = *oldest;
        let holder = segments
            .iter()
            .rev()
            .find(|(first_seq, _)| *first_seq <= self.next_seq);
        let segment = holder.map_or(*oldest, |(first_seq, _)| *first_seq);
        self.place = Some(Place {
            segment,
            offset: 0,
            seq: segment,
        });
        Ok(self.skip_to(segment, GapReason::Lost))
    }

    /// The segment that follows the one being read.
    fn successor(&self, tail: Tail) -> Result<Option<u64>, DiskError> {
        let Some(place) = self.place else {
            return Ok(None);
        };
        if place.seq != place.segment {
            match self.disk.read(&self.path(place.seq), 0, &mut [0]) {
                Ok(_) => return Ok(Some(place.seq)),
                Err(DiskError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        // A successor that does not follow exactly needs a listing; after the last whole frame of
        // a living writer there is none, and idle shards must not list the directory at each call.
        if tail == Tail::Clean && self.end.is_none() {
            return Ok(None);
        }
        let later = |(first_seq, _): (u64, Entry)| (first_seq > place.segment).then_some(first_seq);
        Ok(self.list()?.into_iter().find_map(later))
    }

    /// Goes on to the next segment; a gap if sequences are missing between the two.
    fn cross(&mut self, successor: u64, tail: Tail) -> Option<Read> {
        self.place = Some(Place {
            segment: successor,
            offset: 0,
            seq: successor,
        });
        self.skip_to(successor, tail.missing_behind())
    }

    /// What a dead writer had written and is not there any more.
    fn rest(&mut self, tail: Tail) -> Option<Read> {
        let reason = self.end_reason.unwrap_or(tail.missing_behind());
        self.end.and_then(|end| self.skip_to(end + 1, reason))
    }

    fn skip_to(&mut self, seq: u64, reason: GapReason) -> Option<Read> {
        let from = self.next_seq;
        if from >= seq {
            return None;
        }
        self.next_seq = seq;
        Some(Read::Gap(Gap {
            from,
            to: seq - 1,
            reason,
        }))
    }

    /// Reads on from a place, and leaves `self.place` behind what it has read.
    fn scan(&mut self, mut place: Place, limit: BatchLimit) -> Result<Scan, DiskError> {
        let path = self.path(place.segment);
        let mut buffer = vec![0; limit.bytes.max(MAX_FRAME_BYTES)];
        loop {
            let bytes = match self.disk.read(&path, place.offset, &mut buffer) {
                Ok(length) => buffer.get(..length).unwrap_or_default(),
                Err(DiskError::NotFound(_)) => return Ok(Scan::Missing),
                Err(error) => return Err(error),
            };
            if place.offset == 0 {
                if let Err(tail) = self.check_header(place.segment, bytes) {
                    return Ok(Scan::End(tail));
                }
                place.offset = HEADER_BYTES as u64;
                continue;
            }
            let begun = place.offset;
            let (found, tail) = self.take_frames(&mut place, bytes, limit);
            self.place = Some(place);
            if let Some(read) = found {
                return Ok(Scan::Found(read));
            }
            if place.offset == begun {
                return Ok(Scan::End(tail));
            }
        }
    }

    fn check_header(&self, first_seq: u64, bytes: &[u8]) -> Result<(), Tail> {
        let expected = SegmentHeader {
            boot: self.boot,
            shard: self.shard,
            first_seq,
        };
        match SegmentHeader::read(bytes) {
            Head::Header(header) if header == expected => Ok(()),
            Head::Partial if bytes.is_empty() => Err(Tail::Clean),
            Head::Partial => Err(Tail::Partial),
            Head::Header(_) | Head::Corrupt | Head::Newer(_) => Err(Tail::Corrupt),
        }
    }

    /// Takes wanted frames off the bytes, passing those before `next_seq`, and says what is behind
    /// them.
    fn take_frames(
        &mut self,
        place: &mut Place,
        mut bytes: &[u8],
        limit: BatchLimit,
    ) -> (Option<Read>, Tail) {
        let first_seq = self.next_seq;
        let mut records: Vec<Vec<u8>> = Vec::new();
        let mut taken = 0;
        let tail = loop {
            let (frame, length) = match parse(bytes, place.seq) {
                Parsed::Frame { frame, bytes } => (frame, bytes),
                Parsed::Empty => break Tail::Clean,
                Parsed::Partial => break Tail::Partial,
                Parsed::Corrupt => match pass_over(bytes, place.seq) {
                    None => break Tail::Corrupt,
                    Some(_) if !records.is_empty() => break Tail::Clean,
                    Some((frames, length)) => {
                        place.seq += frames;
                        place.offset += length as u64;
                        bytes = bytes.get(length..).unwrap_or_default();
                        match self.skip_to(place.seq, GapReason::Torn) {
                            None => continue,
                            torn => return (torn, Tail::Clean),
                        }
                    }
                },
            };
            let last = match frame {
                Frame::Record(_) => place.seq,
                Frame::Gap { to, .. } => to,
            };
            let wanted = last >= self.next_seq;
            let full = records.len() >= limit.records || taken + length > limit.bytes;
            match frame {
                Frame::Record(_) if wanted && full && !records.is_empty() => break Tail::Clean,
                Frame::Record(record) if wanted => {
                    records.push(record.to_vec());
                    taken += length;
                }
                Frame::Gap { .. } if wanted && !records.is_empty() => break Tail::Clean,
                Frame::Record(_) | Frame::Gap { .. } => {}
            }
            place.seq = last + 1;
            place.offset += length as u64;
            bytes = bytes.get(length..).unwrap_or_default();
            if let (true, Frame::Gap { to, reason }) = (wanted, frame) {
                return (self.skip_to(to + 1, reason), Tail::Clean);
            }
            if wanted {
                self.next_seq = place.seq;
            }
        };
        let found = (!records.is_empty()).then_some(Read::Records { first_seq, records });
        (found, tail)
    }

    /// The shard's segments, oldest first.
    fn list(&self) -> Result<Vec<(u64, Entry)>, DiskError> {
        let all = segments(&self.disk, &self.dir)?;
        let own = all.into_iter().filter(|(shard, ..)| *shard == self.shard);
        Ok(own
            .map(|(_, first_seq, entry)| (first_seq, entry))
            .collect())
    }

    fn path(&self, first_seq: u64) -> String {
        segment_path(&self.dir, self.shard, first_seq)
    }
}
