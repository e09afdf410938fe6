//! A disk in memory that fails on demand.

use std::{
    cell::{RefCell, RefMut},
    collections::BTreeMap,
    rc::Rc,
};

use super::{Disk, DiskError, Entry};

/// Handles on one disk share everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryDisk(Rc<RefCell<State>>);

#[derive(Debug, Default)]
pub(crate) struct State {
    /// Path to inode; a directory's is `None`.
    names: BTreeMap<String, Option<u64>>,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    /// Bytes that can still be written; `None`: any number.
    pub(crate) space: Option<usize>,
    pub(crate) refuse_truncate: bool,
    pub(crate) refuse_read: bool,
    pub(crate) refuse_create: bool,
    pub(crate) refuse_remove: bool,
    pub(crate) now_ms: u64,
    /// Bytes at the end of the file appended to last that a reader does not see yet.
    pub(crate) unseen: usize,
    /// The next read of this file does not see so many bytes at its end.
    pub(crate) late: Option<(String, usize)>,
    last_appended: u64,
    pub(crate) appends: u64,
    pub(crate) synced: Vec<String>,
}

#[derive(Debug, Default)]
struct Inode {
    bytes: Vec<u8>,
    /// Room set aside, counted from the file's start.
    reserved: usize,
    modified_ms: u64,
    locked: bool,
}

#[derive(Debug)]
pub(crate) struct MemoryLock {
    disk: MemoryDisk,
    inode: u64,
}

impl MemoryDisk {
    pub(crate) fn state(&self) -> RefMut<'_, State> {
        self.0.borrow_mut()
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let state = self.state();
        state
            .names
            .iter()
            .filter(|(_, inode)| inode.is_some())
            .map(|(path, _)| path.clone())
            .collect()
    }

    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        self.state().file(path).unwrap().bytes.clone()
    }

    pub(crate) fn overwrite(&self, path: &str, bytes: Vec<u8>) {
        self.state().file(path).unwrap().bytes = bytes;
    }

    /// Everything on it disappears; open files can still be written, as when they are unlinked.
    pub(crate) fn wipe(&self) {
        self.state().names.clear();
    }
}

impl State {
    fn file(&mut self, path: &str) -> Result<&mut Inode, DiskError> {
        let inode = self.names.get(path).copied().flatten();
        inode
            .and_then(|inode| self.inodes.get_mut(&inode))
            .ok_or_else(|| DiskError::NotFound(path.to_owned()))
    }

    fn take_space(&mut self, bytes: usize) {
        if let Some(space) = &mut self.space {
            *space -= bytes;
        }
    }

    fn make(&mut self, path: &str) -> Result<u64, DiskError> {
        let (dir, _) = path.rsplit_once('/').unwrap();
        if self.names.get(dir) != Some(&None) {
            return Err(DiskError::NotFound(dir.to_owned()));
        }
        self.next_inode += 1;
        let inode = Inode {
            modified_ms: self.now_ms,
            ..Inode::default()
        };
        self.inodes.insert(self.next_inode, inode);
        self.names.insert(path.to_owned(), Some(self.next_inode));
        Ok(self.next_inode)
    }
}

impl Disk for MemoryDisk {
    type File = u64;
    type Lock = MemoryLock;

    fn create_dir(&self, path: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        let mut dir = String::new();
        for name in path.split('/') {
            dir.push_str(name);
            state.names.entry(dir.clone()).or_insert(None);
            dir.push('/');
        }
        Ok(())
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, DiskError> {
        let state = self.state();
        if state.names.get(path) != Some(&None) {
            return Err(DiskError::NotFound(path.to_owned()));
        }
        let children = state.names.iter().rev().filter_map(|(child, inode)| {
            let name = child.strip_prefix(path)?.strip_prefix('/')?;
            let inode = inode.and_then(|inode| state.inodes.get(&inode));
            (!name.contains('/')).then(|| Entry {
                name: name.to_owned(),
                bytes: inode.map_or(0, |inode| inode.bytes.len() as u64),
                modified_ms: inode.map_or(0, |inode| inode.modified_ms),
            })
        });
        Ok(children.collect())
    }

    fn create(&self, path: &str) -> Result<u64, DiskError> {
        let mut state = self.state();
        if state.refuse_create {
            return Err(DiskError::Failed("read-only".to_owned()));
        }
        if let Ok(inode) = state.file(path) {
            inode.bytes.clear();
            return Ok(state.names[path].unwrap());
        }
        state.make(path)
    }

    fn append(&self, file: &mut u64, bytes: &[u8]) -> Result<(), DiskError> {
        let mut state = self.state();
        state.appends += 1;
        state.last_appended = *file;
        let inode = &state.inodes[file];
        let set_aside = inode.reserved.saturating_sub(inode.bytes.len());
        let room = state.space.map_or(usize::MAX, |space| space + set_aside);
        let written = bytes.len().min(room);
        state.take_space(written.saturating_sub(set_aside));
        let now_ms = state.now_ms;
        let inode = state.inodes.get_mut(file).unwrap();
        inode.bytes.extend_from_slice(&bytes[..written]);
        inode.modified_ms = now_ms;
        if written < bytes.len() {
            Err(DiskError::Full)
        } else {
            Ok(())
        }
    }

    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let mut state = self.state();
        if state.refuse_read {
            return Err(DiskError::Failed("input/output error".to_owned()));
        }
        let fresh = state.names.get(path) == Some(&Some(state.last_appended));
        let late = state.late.take_if(|(late, _)| late == path);
        let unseen = match late {
            Some((_, bytes)) => bytes,
            None if fresh => state.unseen,
            None => 0,
        };
        let bytes = &state.file(path)?.bytes;
        let seen = &bytes[..bytes.len().saturating_sub(unseen)];
        let rest = seen
            .get(usize::try_from(offset).unwrap()..)
            .unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn truncate(&self, path: &str, bytes: u64) -> Result<(), DiskError> {
        let mut state = self.state();
        if state.refuse_truncate {
            return Err(DiskError::Failed("read-only".to_owned()));
        }
        let bytes = usize::try_from(bytes).unwrap();
        let inode = state.file(path)?;
        let given_back = inode.reserved.saturating_sub(bytes.max(inode.bytes.len()));
        inode.reserved = inode.reserved.min(bytes);
        inode.bytes.truncate(bytes);
        if let Some(space) = &mut state.space {
            *space += given_back;
        }
        Ok(())
    }

    fn reserve(&self, path: &str, bytes: u64) -> Result<(), DiskError> {
        let mut state = self.state();
        let bytes = usize::try_from(bytes).unwrap();
        let inode = state.file(path)?;
        let needed = bytes.saturating_sub(inode.reserved.max(inode.bytes.len()));
        if state.space.is_some_and(|space| space < needed) {
            return Err(DiskError::Full);
        }
        state.file(path)?.reserved = bytes;
        state.take_space(needed);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        let names = std::mem::take(&mut state.names);
        state.names = names
            .into_iter()
            .map(|(path, inode)| match path.strip_prefix(from) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                    (format!("{to}{rest}"), inode)
                }
                _ => (path, inode),
            })
            .collect();
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        let inside = format!("{path}/");
        if state.refuse_remove || state.names.keys().any(|name| name.starts_with(&inside)) {
            return Err(DiskError::Failed(format!("cannot remove {path}")));
        }
        let inode = state
            .names
            .remove(path)
            .ok_or_else(|| DiskError::NotFound(path.to_owned()))?;
        let inode = inode.and_then(|inode| state.inodes.get(&inode));
        let given_back = inode.map_or(0, |inode| inode.reserved.saturating_sub(inode.bytes.len()));
        if let Some(space) = &mut state.space {
            *space += given_back;
        }
        Ok(())
    }

    fn sync(&self, path: &str) -> Result<(), DiskError> {
        let mut state = self.state();
        if !state.names.contains_key(path) {
            return Err(DiskError::NotFound(path.to_owned()));
        }
        state.synced.push(path.to_owned());
        Ok(())
    }

    fn lock(&self, path: &str) -> Result<Option<MemoryLock>, DiskError> {
        let mut state = self.state();
        let inode = match state.names.get(path).copied().flatten() {
            Some(inode) => inode,
            None => state.make(path)?,
        };
        let locked = &mut state.inodes.get_mut(&inode).unwrap().locked;
        if *locked {
            return Ok(None);
        }
        *locked = true;
        Ok(Some(MemoryLock {
            disk: self.clone(),
            inode,
        }))
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        if let Some(inode) = self.disk.state().inodes.get_mut(&self.inode) {
            inode.locked = false;
        }
    }
}
