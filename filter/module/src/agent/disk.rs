//! The node's state directory, for the spool.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

use filter_agent::spool::{Disk, DiskError, Entry};
use filter_shared_memory::SharedFile;
use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};

/// A directory of this machine's file system.
#[derive(Clone, Debug)]
pub(crate) struct StateDir(Arc<PathBuf>);

impl StateDir {
    pub(crate) fn new(path: &Path) -> Self {
        Self(Arc::new(path.to_owned()))
    }

    /// Makes a file that is mapped into memory.
    ///
    /// # Errors
    /// [`DiskError::Full`] if there is no room for it.
    pub(crate) fn create_shared(&self, path: &str, words: usize) -> Result<SharedFile, DiskError> {
        self.check_room()?;
        SharedFile::create(&self.path(path), words).map_err(fault(path))
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// In fault-injection builds, a file `disk-full` in the directory stands for a full disk.
    fn check_room(&self) -> Result<(), DiskError> {
        if cfg!(feature = "fault-injection") && self.path("disk-full").exists() {
            return Err(DiskError::Full);
        }
        Ok(())
    }
}

fn fault(path: &str) -> impl FnOnce(io::Error) -> DiskError {
    move |error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskError::Full,
        io::ErrorKind::NotFound => DiskError::NotFound(path.to_owned()),
        _ => DiskError::Failed(format!("{path}: {error}")),
    }
}

fn entry(entry: &fs::DirEntry) -> io::Result<Entry> {
    let metadata = entry.metadata()?;
    let modified = metadata
        .modified()?
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Ok(Entry {
        name: entry.file_name().to_string_lossy().into_owned(),
        bytes: metadata.len(),
        modified_ms: u64::try_from(modified.as_millis()).unwrap_or(u64::MAX),
    })
}

impl Disk for StateDir {
    type File = File;
    type Lock = File;

    fn create_dir(&self, path: &str) -> Result<(), DiskError> {
        fs::create_dir_all(self.path(path)).map_err(fault(path))
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, DiskError> {
        let entries = fs::read_dir(self.path(path)).map_err(fault(path))?;
        let mut listed = Vec::new();
        for found in entries {
            match found.and_then(|found| entry(&found)) {
                Ok(entry) => listed.push(entry),
                // Removed between the listing and the look at it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(fault(path)(error)),
            }
        }
        Ok(listed)
    }

    fn create(&self, path: &str) -> Result<File, DiskError> {
        self.check_room()?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true);
        let file = options.open(self.path(path)).map_err(fault(path))?;
        drop(file);
        OpenOptions::new()
            .append(true)
            .open(self.path(path))
            .map_err(fault(path))
    }

    fn append(&self, file: &mut File, bytes: &[u8]) -> Result<(), DiskError> {
        self.check_room()?;
        let written = file.write(bytes).map_err(fault("append"))?;
        if written < bytes.len() {
            return Err(DiskError::Full);
        }
        Ok(())
    }

    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let file = File::open(self.path(path)).map_err(fault(path))?;
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset + u64::try_from(filled).unwrap_or(0);
            match file.read_at(rest, at) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fault(path)(error)),
            }
        }
        Ok(filled)
    }

    fn truncate(&self, path: &str, bytes: u64) -> Result<(), DiskError> {
        let file = OpenOptions::new()
            .write(true)
            .open(self.path(path))
            .map_err(fault(path))?;
        file.set_len(bytes).map_err(fault(path))
    }

    fn reserve(&self, path: &str, bytes: u64) -> Result<(), DiskError> {
        self.check_room()?;
        let file = OpenOptions::new()
            .write(true)
            .open(self.path(path))
            .map_err(fault(path))?;
        match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes) {
            // What file systems say that set nothing aside, or not beyond a file's end.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
            Err(error) => Err(fault(path)(error.into())),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        fs::rename(self.path(from), self.path(to)).map_err(fault(from))
    }

    fn remove(&self, path: &str) -> Result<(), DiskError> {
        let full = self.path(path);
        let removed = if full.is_dir() {
            fs::remove_dir(&full)
        } else {
            fs::remove_file(&full)
        };
        removed.map_err(fault(path))
    }

    fn sync(&self, path: &str) -> Result<(), DiskError> {
        File::open(self.path(path))
            .and_then(|file| file.sync_data())
            .map_err(fault(path))
    }

    fn lock(&self, path: &str) -> Result<Option<File>, DiskError> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options.open(self.path(path)).map_err(fault(path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(fault(path)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_at_a_time_and_dies_with_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let disk = StateDir::new(folder.path());
        let held = disk.lock("lock").unwrap();
        assert!(held.is_some());
        assert!(disk.lock("lock").unwrap().is_none());
        drop(held);
        assert!(disk.lock("lock").unwrap().is_some());
        assert!(matches!(
            disk.lock("gone/lock"),
            Err(DiskError::NotFound(_))
        ));
    }

    #[test]
    fn a_device_without_space_is_full() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.path().join("f")).unwrap();
        let disk = StateDir::new(folder.path());
        let mut file = disk.create("f").unwrap();
        assert_eq!(disk.append(&mut file, b"x"), Err(DiskError::Full));
    }

    #[test]
    fn room_that_is_set_aside_is_no_content_and_is_given_back_by_a_cut() {
        use std::os::unix::fs::MetadataExt as _;

        let folder = tempfile::tempdir().unwrap();
        let disk = StateDir::new(folder.path());
        let mut file = disk.create("f").unwrap();
        disk.append(&mut file, b"hello").unwrap();
        let blocks = || fs::metadata(folder.path().join("f")).unwrap().blocks();
        let before = blocks();
        disk.reserve("f", 1 << 20).unwrap();
        assert_eq!(disk.read("f", 0, &mut [0; 16]).unwrap(), 5);
        let reserved = blocks();
        disk.append(&mut file, b"!").unwrap();
        disk.truncate("f", 6).unwrap();
        assert_eq!(disk.read("f", 0, &mut [0; 16]).unwrap(), 6);
        // A file system that sets nothing aside has nothing to give back.
        assert!(reserved == before || blocks() < reserved, "{reserved} kept");
        assert_eq!(
            disk.reserve("gone", 1),
            Err(DiskError::NotFound("gone".to_owned()))
        );
    }

    #[test]
    fn names_in_a_directory_can_be_synced() {
        let folder = tempfile::tempdir().unwrap();
        let disk = StateDir::new(folder.path());
        disk.create_dir("a/b").unwrap();
        disk.sync("a/b").unwrap();
        assert!(matches!(disk.sync("a/c"), Err(DiskError::NotFound(_))));
    }

    #[test]
    fn what_is_appended_is_read_from_any_offset() {
        let folder = tempfile::tempdir().unwrap();
        let disk = StateDir::new(folder.path());
        disk.create_dir("a/b").unwrap();
        let mut file = disk.create("a/b/f").unwrap();
        disk.append(&mut file, b"hello ").unwrap();
        disk.append(&mut file, b"world").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(disk.read("a/b/f", 6, &mut buffer).unwrap(), 5);
        assert_eq!(&buffer[..5], b"world");
        disk.truncate("a/b/f", 3).unwrap();
        disk.append(&mut file, b"p").unwrap();
        assert_eq!(disk.read("a/b/f", 0, &mut buffer).unwrap(), 4);
        assert_eq!(&buffer[..4], b"help");
        assert_eq!(disk.list("a/b").unwrap()[0].bytes, 4);
    }
}
