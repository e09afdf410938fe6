//! One process's directory: made by it, adopted by another when it is dead.

use super::{
    BootId, Disk, DiskError, Entry, ShardEnd, ShardReader, ShardWriter,
    format::{HEADER_BYTES, Head, SegmentHeader},
    in_flight::{InFlight, find_in_flight},
    layout::{
        BOOTS, boot_dir, is_spare, lock_path, open_table_path, segment_path, segments, unborn_dir,
    },
    tail::find_end,
};

/// The directory of this process, locked while it lives.
#[derive(Debug)]
pub struct Boot<D: Disk> {
    disk: D,
    id: BootId,
    lock: D::Lock,
}

/// The directory of a dead process, locked by this one.
#[derive(Debug)]
pub struct Adopted<D: Disk> {
    disk: D,
    id: BootId,
    shards: Vec<RecoveredShard>,
    in_flight: Vec<InFlight>,
    _lock: D::Lock,
}

/// What a dead process left of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredShard {
    pub shard: u32,
    /// The lowest sequence that is there.
    pub oldest_seq: u64,
    /// The highest, torn ones included; below `oldest_seq` if the shard is empty.
    pub last_seq: u64,
    /// How many of the last sequences are torn, as far as they can be told apart.
    pub torn: u64,
}

/// Why a directory was not made or adopted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    #[error("spool: {0}")]
    Disk(#[from] DiskError),
    #[error("boot {0} is another process's")]
    Taken(BootId),
    #[error("`{path}` has format {format}, which this build does not know")]
    NewerFormat { path: String, format: u32 },
}

/// Every boot that has a directory, in order, that of this process included.
///
/// # Errors
/// If the state directory cannot be listed.
pub fn boots<D: Disk>(disk: &D) -> Result<Vec<BootId>, DiskError> {
    let entries = match disk.list(BOOTS) {
        Err(DiskError::NotFound(_)) => Vec::new(),
        listed => listed?,
    };
    let mut boots: Vec<BootId> = entries
        .iter()
        .filter_map(|entry: &Entry| entry.name.parse().ok())
        .collect();
    boots.sort_unstable();
    Ok(boots)
}

/// Takes over the directory of a dead process: finds what each shard holds, and gives back the room
/// that was set aside for more. What it had open is found as well, and goes into its shards by
/// [`Adopted::settle`]. `None` if the process lives, or another one has adopted it, or it
/// is gone.
///
/// # Errors
/// If the disk fails, or a later build wrote something there; then nothing is changed.
pub fn adopt<D: Disk>(disk: &D, id: BootId) -> Result<Option<Adopted<D>>, BootError> {
    let dir = boot_dir(id);
    let lock = match disk.lock(&lock_path(&dir)) {
        Err(DiskError::NotFound(_)) => None,
        locked => locked?,
    };
    let Some(lock) = lock else {
        return Ok(None);
    };
    let mut found: Vec<FoundSegment> = Vec::new();
    for (shard, first_seq, entry) in segments(disk, &dir)? {
        found.push(FoundSegment::look(disk, id, shard, first_seq, entry.bytes)?);
    }
    let mut shards = Vec::new();
    for of_shard in found.chunk_by(|one, other| one.shard == other.shard) {
        shards.extend(recover(disk, of_shard)?);
    }
    let in_flight = find_in_flight(disk, id, &shards)?;
    for of_shard in &in_flight {
        let shard = of_shard.shard;
        if shards.iter().all(|known| known.shard != shard) {
            shards.push(RecoveredShard::empty(shard));
        }
    }
    give_back_room(disk, &dir, &found)?;
    Ok(Some(Adopted {
        disk: disk.clone(),
        id,
        shards,
        in_flight,
        _lock: lock,
    }))
}

// === impl Boot ===

impl<D: Disk> Boot<D> {
    /// Makes and locks the directory of this process. `id` must be new.
    ///
    /// # Errors
    /// If the disk fails, or the id is taken.
    pub fn create(disk: &D, id: BootId) -> Result<Self, BootError> {
        let unborn = unborn_dir(id);
        disk.create_dir(&unborn)?;
        let lock = disk
            .lock(&lock_path(&unborn))?
            .ok_or(BootError::Taken(id))?;
        // It gets its name when it is locked already: nobody can take it for a dead one.
        disk.rename(&unborn, &boot_dir(id))?;
        Ok(Self {
            disk: disk.clone(),
            id,
            lock,
        })
    }

    /// Locks the directory again if the lock's file is gone, as after somebody emptied the state
    /// directory. True if it was.
    ///
    /// # Errors
    /// If the disk fails, or another process was faster and takes this one for dead.
    pub fn relock(&mut self) -> Result<bool, BootError> {
        let dir = boot_dir(self.id);
        let path = lock_path(&dir);
        match self.disk.read(&path, 0, &mut []) {
            Err(DiskError::NotFound(_)) => {}
            there => return Ok(there.map(|_| false)?),
        }
        self.disk.create_dir(&dir)?;
        self.lock = self.disk.lock(&path)?.ok_or(BootError::Taken(self.id))?;
        Ok(true)
    }

    /// The name of this process.
    #[must_use]
    pub fn id(&self) -> BootId {
        self.id
    }

    /// The one writer of a shard; asked for once a shard.
    #[must_use]
    pub fn writer(&self, shard: u32, segment_bytes: u64) -> ShardWriter<D> {
        ShardWriter::new(self.disk.clone(), self.id, shard, segment_bytes)
    }

    /// Where a worker's table of open exchanges is to be made; `number` is 1 for its first.
    #[must_use]
    pub fn open_table_path(&self, shard: u32, number: u32) -> String {
        open_table_path(&boot_dir(self.id), shard, number)
    }

    /// A reader of a shard, which may begin before its writer does.
    #[must_use]
    pub fn reader(&self, shard: u32) -> ShardReader<D> {
        ShardReader::new(self.disk.clone(), boot_dir(self.id), self.id, shard, None)
    }
}

// === impl Adopted ===

impl<D: Disk> Adopted<D> {
    /// The name of the dead process.
    #[must_use]
    pub fn id(&self) -> BootId {
        self.id
    }

    /// What was found, by shard.
    #[must_use]
    pub fn shards(&self) -> &[RecoveredShard] {
        &self.shards
    }

    /// A reader of each shard.
    #[must_use]
    pub fn readers(&self) -> Vec<ShardReader<D>> {
        let reader = |found: &RecoveredShard| {
            let dir = boot_dir(self.id);
            ShardReader::new(
                self.disk.clone(),
                dir,
                self.id,
                found.shard,
                Some(found.last_seq),
            )
        };
        self.shards.iter().map(reader).collect()
    }

    /// Exchanges that the process had open and that are in no shard yet, and slots of its tables
    /// that make no sense.
    #[must_use]
    pub fn in_flight(&self) -> (usize, usize) {
        self.in_flight
            .iter()
            .fold((0, 0), |(open, damaged), of_shard| {
                (open + of_shard.records.len(), damaged + of_shard.damaged)
            })
    }

    /// Appends what a shard's worker had open, as records, and removes its tables. `cursor` is what
    /// the ledger has of the shard: after a power failure that may be more than the disk has, and
    /// no sequence may be used twice. [`Self::end`] is the shard's end then.
    ///
    /// # Errors
    /// If the disk fails; the call may be repeated.
    pub fn settle(&mut self, shard: u32, cursor: u64) -> Result<(), DiskError> {
        let Some(in_flight) = self.in_flight.iter_mut().find(|it| it.shard == shard) else {
            return Ok(());
        };
        let Some(known) = self.shards.iter_mut().find(|known| known.shard == shard) else {
            return Ok(());
        };
        let next_seq = known.last_seq.max(cursor) + 1;
        let (last_seq, outcome) = in_flight.append(&self.disk, self.id, next_seq);
        if last_seq >= next_seq {
            known.last_seq = last_seq;
        }
        self.in_flight.retain(|it| !it.is_done());
        outcome
    }

    /// The end of a shard.
    #[must_use]
    pub fn end(&self, shard: u32) -> ShardEnd {
        let known = self.shards.iter().find(|known| known.shard == shard);
        ShardEnd {
            shard,
            last_seq: known.map_or(0, |known| known.last_seq),
            unmarked: None,
        }
    }

    /// True while a shard lacks some of what its worker had open.
    #[must_use]
    pub fn is_unsettled(&self, shard: u32) -> bool {
        self.in_flight.iter().any(|it| it.shard == shard)
    }

    /// Removes the directory if nothing but the lock is left in it. True if it is gone.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn remove_if_empty(&self) -> Result<bool, DiskError> {
        let dir = boot_dir(self.id);
        let entries = match self.disk.list(&dir) {
            Err(DiskError::NotFound(_)) => return Ok(true),
            listed => listed?,
        };
        let lock = lock_path(&dir);
        if entries
            .iter()
            .any(|entry| format!("{dir}/{}", entry.name) != lock)
        {
            return Ok(false);
        }
        self.disk.remove(&lock)?;
        self.disk.remove(&dir)?;
        Ok(true)
    }
}

// === recovery ===

impl RecoveredShard {
    /// One of which there is nothing but exchanges in flight.
    fn empty(shard: u32) -> Self {
        Self {
            shard,
            oldest_seq: 1,
            last_seq: 0,
            torn: 0,
        }
    }
}

struct FoundSegment {
    shard: u32,
    first_seq: u64,
    path: String,
    bytes: u64,
    head: Head,
}

impl FoundSegment {
    fn look<D: Disk>(
        disk: &D,
        boot: BootId,
        shard: u32,
        first_seq: u64,
        bytes: u64,
    ) -> Result<Self, BootError> {
        let path = segment_path(&boot_dir(boot), shard, first_seq);
        let mut buffer = [0; HEADER_BYTES];
        let length = disk.read(&path, 0, &mut buffer)?;
        let mut head = SegmentHeader::read(buffer.get(..length).unwrap_or_default());
        if let Head::Newer(format) = head {
            return Err(BootError::NewerFormat { path, format });
        }
        // Its name says the same as its header, or it is not to be trusted.
        let expected = SegmentHeader {
            boot,
            shard,
            first_seq,
        };
        if matches!(head, Head::Header(header) if header != expected) {
            head = Head::Corrupt;
        }
        Ok(Self {
            shard,
            first_seq,
            path,
            bytes,
            head,
        })
    }
}

/// Finds the end of a shard by its last segment: each other one ends where its successor begins.
///
/// Nothing is cut: what comes after a torn tail goes into a segment of its own.
fn recover<D: Disk>(
    disk: &D,
    segments: &[FoundSegment],
) -> Result<Option<RecoveredShard>, BootError> {
    let (Some(oldest), Some(last)) = (segments.first(), segments.last()) else {
        return Ok(None);
    };
    let end = find_end(disk, &last.path, last.first_seq, last.head)?;
    let sound_seq = end.next_seq.saturating_sub(1);
    Ok(Some(RecoveredShard {
        shard: oldest.shard,
        oldest_seq: oldest.first_seq,
        last_seq: sound_seq.saturating_add(end.damaged),
        torn: end.damaged,
    }))
}

/// Cuts each last segment where it ends, and removes what was to be the next.
fn give_back_room<D: Disk>(disk: &D, dir: &str, found: &[FoundSegment]) -> Result<(), DiskError> {
    for of_shard in found.chunk_by(|one, other| one.shard == other.shard) {
        if let [.., last] = of_shard {
            // A disk that cannot be written keeps its room, and is read all the same.
            drop(disk.truncate(&last.path, last.bytes));
        }
    }
    for entry in disk.list(dir)? {
        if is_spare(&entry.name) {
            drop(disk.remove(&format!("{dir}/{}", entry.name)));
        }
    }
    Ok(())
}
