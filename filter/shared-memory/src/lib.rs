//! A file mapped into memory as words. What is stored in them is in the file at once, and stays
//! there when the process is killed.
//!
//! One of the two crates with `unsafe` in it; the other is `filter-envoy-abi`. It knows nothing of
//! what the words mean: `filter_agent::open_table` does, where to read next.
//!
//! Words are of the machine's own byte order. The kernel brings them to the medium when it likes,
//! so a power failure may leave older ones.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    ptr::NonNull,
    sync::atomic::AtomicU64,
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

/// A mapped file; unmapped when dropped. The file stays.
#[derive(Debug)]
pub struct SharedFile {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the mapping belongs to no thread, and nothing but atomics is reached through it.
#[expect(unsafe_code, reason = "a pointer is neither Send nor Sync by itself")]
unsafe impl Send for SharedFile {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "a pointer is neither Send nor Sync by itself")]
unsafe impl Sync for SharedFile {}

impl SharedFile {
    /// Makes a file of `words` words, all zero, whose room is set aside: a store never meets a full
    /// disk. Nobody may shorten the file while it is mapped; a store would then be a SIGBUS.
    ///
    /// # Errors
    /// If there is such a file, or no room for it; then there is none afterwards.
    pub fn create(path: &Path, words: usize) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.create_new(true).read(true).write(true).open(path)?;
        let mapped = make_room(&file, words).and_then(|bytes| Self::map(&file, words, bytes));
        if mapped.is_err() {
            drop(fs::remove_file(path));
        }
        mapped
    }

    fn map(file: &File, words: usize, bytes: usize) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses a range that nothing else uses.
        #[expect(unsafe_code, reason = "mapping a file")]
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, flags, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, words })
    }
}

impl AsRef<[AtomicU64]> for SharedFile {
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: the range is mapped as long as `self` lives, page-aligned, as long as `words`
        // say, and every pattern of bits is a word. Others that map the file are other processes'
        // business: words are only reached as atomics here.
        #[expect(unsafe_code, reason = "a mapped range becomes a slice")]
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.words)
        }
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        let bytes = self.words * size_of::<AtomicU64>();
        // SAFETY: mapped by `map` with this length, and no reference outlives `self`.
        #[expect(unsafe_code, reason = "unmapping the file")]
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), bytes) };
        // Fails only for a range that was never mapped.
        unmapped.ok();
    }
}

/// Gives the file its length, in bytes, and the room for it.
fn make_room(mut file: &File, words: usize) -> io::Result<usize> {
    let bytes = words.checked_mul(size_of::<AtomicU64>());
    let bytes = bytes.filter(|bytes| *bytes > 0 && isize::try_from(*bytes).is_ok());
    let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
    let length = u64::try_from(bytes).map_err(io::Error::other)?;
    match fallocate(file, FallocateFlags::empty(), 0, length) {
        Ok(()) => Ok(bytes),
        // A file system that sets nothing aside keeps what is written.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = [0; 4096];
            let mut left = bytes;
            while left > 0 {
                let part = zeros.get(..left).unwrap_or(&zeros);
                left -= file.write(part)?;
            }
            Ok(bytes)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::MetadataExt as _, sync::atomic::Ordering};

    use super::*;

    fn word(path: &Path, at: usize) -> u64 {
        let bytes = fs::read(path).unwrap();
        u64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap())
    }

    #[test]
    fn what_is_stored_is_in_the_file_and_stays_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words");
        let shared = SharedFile::create(&path, 1024).unwrap();
        let words: &[AtomicU64] = shared.as_ref();
        assert_eq!(words.len(), 1024);
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        words[1023].store(7, Ordering::Relaxed);
        assert_eq!(word(&path, 1023), 7);
        drop(shared);
        assert_eq!(word(&path, 1023), 7);
    }

    #[test]
    fn room_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words");
        drop(SharedFile::create(&path, 1 << 17).unwrap());
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.len(), 1 << 20);
        assert!(metadata.blocks() * 512 >= 1 << 20);
    }

    #[test]
    fn a_file_without_room_is_an_error_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words");
        for words in [0, 1 << 57, usize::MAX] {
            assert!(SharedFile::create(&path, words).is_err(), "{words}");
            assert!(!path.exists(), "{words}");
        }
    }

    #[test]
    fn a_file_that_is_there_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words");
        fs::write(&path, "other").unwrap();
        assert!(SharedFile::create(&path, 512).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"other");
    }

    #[test]
    fn threads_see_each_others_words() {
        let folder = tempfile::tempdir().unwrap();
        let shared = SharedFile::create(&folder.path().join("words"), 512).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let words: &[AtomicU64] = shared.as_ref();
                    for _ in 0..1_000 {
                        words[3].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(shared.as_ref()[3].load(Ordering::Relaxed), 4_000);
    }
}
