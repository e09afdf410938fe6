//! A node's disk: it outlives processes, can be full, and can be lost.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use filter_agent::spool::{Disk, DiskError, Entry};

/// Handles on one disk share everything.
#[derive(Clone, Debug, Default)]
pub struct SimDisk(Rc<RefCell<Files>>);

#[derive(Debug, Default)]
struct Files {
    /// Path to file; none: a directory.
    names: BTreeMap<String, Option<u64>>,
    files: BTreeMap<u64, File>,
    made: u64,
    is_full: bool,
    now_ms: u64,
}

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    modified_ms: u64,
    is_locked: bool,
}

/// A lock; it goes with the process that has it.
#[derive(Debug)]
pub struct SimLock {
    disk: SimDisk,
    file: u64,
}

impl SimDisk {
    /// From here on nothing more, or everything, fits.
    pub fn set_full(&self, is_full: bool) {
        self.0.borrow_mut().is_full = is_full;
    }

    /// The time of writes to come, Unix milliseconds.
    pub fn set_now(&self, now_ms: u64) {
        self.0.borrow_mut().now_ms = now_ms;
    }

    /// Everything on it is gone.
    pub fn wipe(&self) {
        self.0.borrow_mut().names.clear();
    }

    /// Puts a whole file where its directory is still there, full or not: memory that was mapped.
    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        let mut files = self.0.borrow_mut();
        if let Ok(file) = files.make(path)
            && let Some(file) = files.files.get_mut(&file)
        {
            file.bytes = bytes;
        }
    }

    /// Removes the files whose names end so.
    pub fn remove_all(&self, ending: &str) {
        let mut files = self.0.borrow_mut();
        files.names.retain(|path, _| !path.ends_with(ending));
    }
}

impl Files {
    fn id(&self, path: &str) -> Result<u64, DiskError> {
        let file = self.names.get(path).copied().flatten();
        file.ok_or_else(|| DiskError::NotFound(path.to_owned()))
    }

    fn file(&mut self, path: &str) -> Result<&mut File, DiskError> {
        let id = self.id(path)?;
        let gone = || DiskError::NotFound(path.to_owned());
        self.files.get_mut(&id).ok_or_else(gone)
    }

    fn make(&mut self, path: &str) -> Result<u64, DiskError> {
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        if self.names.get(dir) != Some(&None) {
            return Err(DiskError::NotFound(dir.to_owned()));
        }
        self.made += 1;
        let file = File {
            modified_ms: self.now_ms,
            ..File::default()
        };
        self.files.insert(self.made, file);
        self.names.insert(path.to_owned(), Some(self.made));
        Ok(self.made)
    }
}

impl Disk for SimDisk {
    type File = u64;
    type Lock = SimLock;

    fn create_dir(&self, path: &str) -> Result<(), DiskError> {
        let mut files = self.0.borrow_mut();
        let mut dir = String::new();
        for name in path.split('/') {
            dir.push_str(name);
            files.names.entry(dir.clone()).or_insert(None);
            dir.push('/');
        }
        Ok(())
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, DiskError> {
        let files = self.0.borrow();
        if files.names.get(path) != Some(&None) {
            return Err(DiskError::NotFound(path.to_owned()));
        }
        let inside = format!("{path}/");
        let names = files.names.range(inside.clone()..);
        let names = names.take_while(|(name, _)| name.starts_with(&inside));
        let entries = names.filter_map(|(name, file)| {
            let name = name.strip_prefix(&inside)?;
            let file = file.and_then(|file| files.files.get(&file));
            (!name.contains('/')).then(|| Entry {
                name: name.to_owned(),
                bytes: file.map_or(0, |file| file.bytes.len() as u64),
                modified_ms: file.map_or(0, |file| file.modified_ms),
            })
        });
        Ok(entries.collect())
    }

    fn create(&self, path: &str) -> Result<u64, DiskError> {
        let mut files = self.0.borrow_mut();
        if files.is_full {
            return Err(DiskError::Full);
        }
        files.make(path)
    }

    fn append(&self, file: &mut u64, bytes: &[u8]) -> Result<(), DiskError> {
        let mut files = self.0.borrow_mut();
        let (is_full, now_ms) = (files.is_full, files.now_ms);
        let gone = || DiskError::Failed("not open".to_owned());
        let file = files.files.get_mut(file).ok_or_else(gone)?;
        file.modified_ms = now_ms;
        if is_full {
            // A part still fits.
            file.bytes.extend(bytes.iter().take(bytes.len() / 2));
            return Err(DiskError::Full);
        }
        file.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let mut files = self.0.borrow_mut();
        let bytes = &files.file(path)?.bytes;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn truncate(&self, path: &str, bytes: u64) -> Result<(), DiskError> {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.0.borrow_mut().file(path)?.bytes.truncate(length);
        Ok(())
    }

    fn reserve(&self, path: &str, _bytes: u64) -> Result<(), DiskError> {
        let mut files = self.0.borrow_mut();
        if files.is_full {
            return Err(DiskError::Full);
        }
        files.file(path).map(|_| ())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut files = self.0.borrow_mut();
        let names = std::mem::take(&mut files.names);
        let renamed = names.into_iter().map(|(path, file)| {
            let rest = path.strip_prefix(from);
            let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
            (
                rest.map_or(path.clone(), |rest| format!("{to}{rest}")),
                file,
            )
        });
        files.names = renamed.collect();
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<(), DiskError> {
        let mut files = self.0.borrow_mut();
        let inside = format!("{path}/");
        if files.names.keys().any(|name| name.starts_with(&inside)) {
            return Err(DiskError::Failed(format!("`{path}` is not empty")));
        }
        let file = files.names.remove(path);
        let file = file.ok_or_else(|| DiskError::NotFound(path.to_owned()))?;
        if let Some(file) = file {
            files.files.remove(&file);
        }
        Ok(())
    }

    fn sync(&self, path: &str) -> Result<(), DiskError> {
        let files = self.0.borrow();
        let is_there = files.names.contains_key(path);
        is_there
            .then_some(())
            .ok_or_else(|| DiskError::NotFound(path.to_owned()))
    }

    fn lock(&self, path: &str) -> Result<Option<SimLock>, DiskError> {
        let mut files = self.0.borrow_mut();
        let id = files.id(path).or_else(|_| files.make(path))?;
        let Some(file) = files.files.get_mut(&id) else {
            return Ok(None);
        };
        if std::mem::replace(&mut file.is_locked, true) {
            return Ok(None);
        }
        Ok(Some(SimLock {
            disk: self.clone(),
            file: id,
        }))
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        if let Some(file) = self.disk.0.borrow_mut().files.get_mut(&self.file) {
            file.is_locked = false;
        }
    }
}
