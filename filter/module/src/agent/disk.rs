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

/// A directory of this machine's file system.
#[derive(Clone, Debug)]
pub(crate) struct StateDir(Arc<PathBuf>);

impl StateDir {
    pub(crate) fn new(path: &Path) -> Self {
        Self(Arc::new(path.to_owned()))
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
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
