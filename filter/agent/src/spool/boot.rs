//! One process's directory: made by it, adopted by another when it is dead.

use super::{
    BootId, Disk, DiskError, Entry, ShardReader, ShardWriter,
    format::{HEADER_BYTES, Head, SegmentHeader},
    layout::{BOOTS, boot_dir, lock_path, segment_path, segments, unborn_dir},
    tail::find_end,
};

/// The directory of this process, locked while it lives.
#[derive(Debug)]
pub struct Boot<D: Disk> {
    disk: D,
    id: BootId,
    _lock: D::Lock,
}

/// The directory of a dead process, locked by this one.
#[derive(Debug)]
pub struct Adopted<D: Disk> {
    disk: D,
    id: BootId,
    shards: Vec<RecoveredShard>,
    _lock: D::Lock,
}

/// What a dead process left of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredShard {
    pub shard: u32,
    /// The lowest sequence that is there.
    pub oldest_seq: u64,
    /// The highest; below `oldest_seq` if the shard is empty.
    pub last_seq: u64,
    /// Bytes behind it that made no sense, and were cut off if the disk let them be.
    pub torn_bytes: u64,
}

/// Why a directory was not made or adopted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    #[error("spool: {0}")]
    Disk(#[from] DiskError),
    #[error("boot {0} is another process's")]
    Taken(BootId),
    #[error("segment `{path}` has format {format}, which this build does not know")]
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

/// Takes over the directory of a dead process: finds what each shard holds and cuts torn tails.
/// `None` if the process lives, or another one has adopted it, or it is gone.
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
    Ok(Some(Adopted {
        disk: disk.clone(),
        id,
        shards,
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
            _lock: lock,
        })
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

/// Finds the end of a shard by its segments, of which only the last one with a header needs to be
/// read: each other one ends where its successor begins.
fn recover<D: Disk>(
    disk: &D,
    segments: &[FoundSegment],
) -> Result<Option<RecoveredShard>, BootError> {
    let [oldest, ..] = segments else {
        return Ok(None);
    };
    let mut torn_bytes = 0;
    let mut last_seq = oldest.first_seq.saturating_sub(1);
    for segment in segments.iter().rev() {
        if matches!(segment.head, Head::Header(_)) {
            let end = find_end(disk, &segment.path, segment.first_seq)?;
            last_seq = last_seq.max(end.next_seq.saturating_sub(1));
            torn_bytes += cut(disk, segment, end.bytes);
            break;
        }
        last_seq = last_seq.max(segment.first_seq.saturating_sub(1));
        torn_bytes += segment.bytes;
    }
    let shard = oldest.shard;
    Ok(Some(RecoveredShard {
        shard,
        oldest_seq: oldest.first_seq,
        last_seq,
        torn_bytes,
    }))
}

/// Cuts a torn tail off. A disk that cannot be written leaves it: readers stop before it anyway.
fn cut<D: Disk>(disk: &D, segment: &FoundSegment, sound_bytes: u64) -> u64 {
    let torn_bytes = segment.bytes.saturating_sub(sound_bytes);
    if torn_bytes > 0 && disk.truncate(&segment.path, sound_bytes).is_ok() {
        // Not synced, it is cut again by the next adopter.
        drop(disk.sync(&segment.path));
    }
    torn_bytes
}
