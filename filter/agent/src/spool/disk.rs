//! What the spool needs of a disk.

use std::fmt::Debug;

/// Why the disk did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    #[error("no space left")]
    Full,
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// Path or operation, and what the system says.
    #[error("{0}")]
    Failed(String),
}

/// A file in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Without the directory.
    pub name: String,
    pub bytes: u64,
    /// Unix time in milliseconds of the last write.
    pub modified_ms: u64,
}

/// A node's state directory. Paths are relative to it, with `/` between names. Cloning gives
/// another handle on the same directory.
pub trait Disk: Clone {
    /// A file that can be appended to.
    type File: Debug;
    /// Held by this process until it is dropped.
    type Lock: Debug;

    /// Makes a directory and its parents; that it exists is no error.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn create_dir(&self, path: &str) -> Result<(), DiskError>;

    /// Files and directories in a directory, in any order.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] if there is no such directory.
    fn list(&self, path: &str) -> Result<Vec<Entry>, DiskError>;

    /// Makes an empty file, in the place of one of that name.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] if its directory is gone.
    fn create(&self, path: &str) -> Result<Self::File, DiskError>;

    /// Puts the bytes at the end of the file by one write call.
    ///
    /// # Errors
    /// Whatever the disk says, a short write included; a part of the bytes may then be there.
    fn append(&self, file: &mut Self::File, bytes: &[u8]) -> Result<(), DiskError>;

    /// Fills `buffer` from `offset` on; fewer bytes only at the end of the file.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] if there is no such file.
    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError>;

    /// Cuts a file to `bytes`, while others may have it open.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn truncate(&self, path: &str, bytes: u64) -> Result<(), DiskError>;

    /// Sets room aside, so that the file can grow to `bytes` whatever else fills the disk. Neither
    /// its length nor what is in it changes; cutting it gives back what lies behind the cut. A
    /// file system that sets no room aside is no error.
    ///
    /// # Errors
    /// [`DiskError::Full`] if there is not that much room.
    fn reserve(&self, path: &str, bytes: u64) -> Result<(), DiskError>;

    /// Renames a file or directory; locks on files in it stay held.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a file, or a directory that is empty.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn remove(&self, path: &str) -> Result<(), DiskError>;

    /// Brings a file's bytes, or a directory's names, to the medium.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn sync(&self, path: &str) -> Result<(), DiskError>;

    /// Makes the file if need be and locks it, without waiting; `None` if someone else holds it.
    /// The lock dies with the process, however it ends.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] if its directory is gone.
    fn lock(&self, path: &str) -> Result<Option<Self::Lock>, DiskError>;
}
