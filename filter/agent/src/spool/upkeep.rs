//! What a shard needs of its disk that takes too long for a worker: bytes brought to the medium,
//! and room set aside before it is needed.
//!
//! Three steps, so that a writer is never locked while the disk works:
//! [`ShardWriter::upkeep`](super::ShardWriter::upkeep) says what is to be done,
//! [`Upkeep::perform`] does it, [`ShardWriter::kept`](super::ShardWriter::kept) takes it back.

use super::{Disk, DiskError, layout::spare_path};

/// Work that a shard's writer wants done.
#[derive(Debug)]
pub struct Upkeep<D> {
    disk: D,
    shard: u32,
    segment_bytes: u64,
    /// Files and directories with bytes that are not on the medium.
    pub(super) sync: Vec<String>,
    /// The open segment, if no room was set aside for it.
    pub(super) make_room: Option<String>,
    /// The boot's directory, if the segment that follows is to be made.
    pub(super) make_spare: Option<String>,
}

/// What was done.
#[derive(Debug)]
pub struct Kept<D: Disk> {
    /// Segments that were removed when they were acked, or by somebody else.
    pub(super) vanished: Vec<String>,
    pub(super) made_room: Option<String>,
    pub(super) spare: Option<Spare<D::File>>,
    lacks_room: bool,
    troubles: Vec<DiskError>,
}

/// A segment that has room but no place in its shard yet.
#[derive(Debug)]
pub(super) struct Spare<F> {
    pub(super) file: F,
    pub(super) path: String,
}

impl<D: Disk> Upkeep<D> {
    pub(super) fn new(disk: D, shard: u32, segment_bytes: u64) -> Self {
        Self {
            disk,
            shard,
            segment_bytes,
            sync: Vec::new(),
            make_room: None,
            make_spare: None,
        }
    }

    pub(super) fn is_needed(&self) -> bool {
        !self.sync.is_empty() || self.make_room.is_some() || self.make_spare.is_some()
    }

    /// Does it, as long as that takes.
    #[must_use]
    pub fn perform(self) -> Kept<D> {
        let mut kept = Kept {
            vanished: Vec::new(),
            made_room: None,
            spare: None,
            lacks_room: false,
            troubles: Vec::new(),
        };
        for path in self.sync {
            match self.disk.sync(&path) {
                Ok(()) => {}
                Err(DiskError::NotFound(_)) => kept.vanished.push(path),
                Err(error) => kept.troubles.push(error),
            }
        }
        if let Some(path) = self.make_room {
            match self.disk.reserve(&path, self.segment_bytes) {
                Ok(()) => kept.made_room = Some(path),
                Err(error) => kept.note(error),
            }
        }
        if let Some(dir) = self.make_spare {
            match make_spare(&self.disk, &dir, self.shard, self.segment_bytes) {
                Ok(spare) => kept.spare = Some(spare),
                Err(error) => kept.note(error),
            }
        }
        kept
    }
}

impl<D: Disk> Kept<D> {
    /// The disk has no room for a whole segment; records may still fit.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        self.lacks_room
    }

    /// What else the disk refused.
    #[must_use]
    pub fn troubles(&self) -> &[DiskError] {
        &self.troubles
    }

    fn note(&mut self, error: DiskError) {
        match error {
            DiskError::Full => self.lacks_room = true,
            // Its directory vanished, as syncing will show.
            DiskError::NotFound(_) => {}
            DiskError::Failed(_) => self.troubles.push(error),
        }
    }
}

/// A spare without room would be no better than a segment made when it is needed.
fn make_spare<D: Disk>(
    disk: &D,
    dir: &str,
    shard: u32,
    bytes: u64,
) -> Result<Spare<D::File>, DiskError> {
    let path = spare_path(dir, shard);
    let file = disk.create(&path)?;
    if let Err(error) = disk.reserve(&path, bytes) {
        drop(disk.remove(&path));
        return Err(error);
    }
    Ok(Spare { file, path })
}
