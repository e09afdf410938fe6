//! Borrowed views of header maps and body buffers, on the stack for the usual sizes.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::raw::{Buffer, Pair};

/// A list of `T` that needs the heap only beyond `N` entries.
pub(crate) struct Inline<T, const N: usize> {
    stack: [MaybeUninit<T>; N],
    heap: Vec<T>,
    len: usize,
}

impl<T: Copy, const N: usize> Inline<T, N> {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self {
            stack: [const { MaybeUninit::uninit() }; N],
            heap: Vec::new(),
            len: 0,
        }
    }

    /// A list of `len` entries written by `fill`; empty when it answers false.
    ///
    /// # Safety
    /// `fill` must initialize `len` entries from the given pointer whenever it answers true.
    pub(crate) unsafe fn filled(len: usize, fill: impl FnOnce(*mut T) -> bool) -> Self {
        let mut list = Self::new();
        if len == 0 {
            return list;
        }
        let target = if len <= N {
            list.stack.as_mut_ptr().cast::<T>()
        } else {
            list.heap.reserve_exact(len);
            list.heap.as_mut_ptr()
        };
        if fill(target) {
            if len > N {
                // SAFETY: `len` entries are reserved, and initialized as the caller promised.
                unsafe { list.heap.set_len(len) };
            }
            list.len = len;
        }
        list
    }

    /// Appends an entry.
    pub(crate) fn push(&mut self, entry: T) {
        match self.stack.get_mut(self.len) {
            Some(slot) if self.heap.is_empty() => {
                slot.write(entry);
            }
            _ => {
                if self.heap.is_empty() {
                    self.heap = self.as_slice().to_vec();
                }
                self.heap.push(entry);
            }
        }
        self.len += 1;
    }

    /// The entries.
    pub(crate) fn as_slice(&self) -> &[T] {
        if !self.heap.is_empty() {
            return &self.heap;
        }
        // SAFETY: with an empty heap, the first `len` stack entries are initialized.
        unsafe { std::slice::from_raw_parts(self.stack.as_ptr().cast::<T>(), self.len) }
    }
}

/// The headers of one map, borrowed from Envoy.
pub struct Headers<'a> {
    entries: Inline<Pair, 32>,
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> Headers<'a> {
    /// Headers written by Envoy.
    ///
    /// # Safety
    /// As for [`Inline::filled`], and the bytes must stay readable and unchanged for `'a`.
    pub(crate) unsafe fn filled(len: usize, fill: impl FnOnce(*mut Pair) -> bool) -> Self {
        Self {
            // SAFETY: passed on to the caller.
            entries: unsafe { Inline::filled(len, fill) },
            borrowed: PhantomData,
        }
    }

    /// Number of headers.
    pub fn len(&self) -> usize {
        self.entries.as_slice().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name and value of each header, in order; names in lower case.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + '_ {
        self.entries.as_slice().iter().map(|pair| {
            // SAFETY: every entry was vouched for, for all of 'a, when this view was made.
            unsafe { (pair.key.bytes::<'a>(), pair.value.bytes::<'a>()) }
        })
    }

    /// The first value of a header; `name` in lower case.
    pub fn first(&self, name: &str) -> Option<&'a [u8]> {
        self.iter()
            .find(|(key, _)| *key == name.as_bytes())
            .map(|(_, value)| value)
    }
}

impl<'a> FromIterator<(&'a str, &'a [u8])> for Headers<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a [u8])>>(pairs: I) -> Self {
        let mut entries = Inline::new();
        for (key, value) in pairs {
            entries.push(Pair::new(key, value));
        }
        Self {
            entries,
            borrowed: PhantomData,
        }
    }
}

/// Names only: values may be secrets.
impl std::fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|(name, _)| String::from_utf8_lossy(name)))
            .finish()
    }
}

/// The chunks of one body buffer, borrowed from Envoy.
pub struct BodyChunks<'a> {
    entries: Inline<Buffer, 8>,
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> BodyChunks<'a> {
    /// Chunks written by Envoy.
    ///
    /// # Safety
    /// As for [`Inline::filled`], and the bytes must stay readable and unchanged for `'a`.
    pub(crate) unsafe fn filled(len: usize, fill: impl FnOnce(*mut Buffer) -> bool) -> Self {
        Self {
            // SAFETY: passed on to the caller.
            entries: unsafe { Inline::filled(len, fill) },
            borrowed: PhantomData,
        }
    }

    /// Number of chunks.
    pub fn len(&self) -> usize {
        self.entries.as_slice().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chunks, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.entries.as_slice().iter().map(|buffer| {
            // SAFETY: every entry was vouched for, for all of 'a, when this view was made.
            unsafe { buffer.bytes::<'a>() }
        })
    }

    /// Bytes in all chunks.
    pub fn byte_len(&self) -> usize {
        self.entries.as_slice().iter().map(|chunk| chunk.len).sum()
    }

    /// Appends all bytes to `out`.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.byte_len());
        for chunk in self.iter() {
            out.extend_from_slice(chunk);
        }
    }
}

impl<'a> FromIterator<&'a [u8]> for BodyChunks<'a> {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(chunks: I) -> Self {
        let mut entries = Inline::new();
        for chunk in chunks {
            entries.push(Buffer::new(chunk));
        }
        Self {
            entries,
            borrowed: PhantomData,
        }
    }
}

/// Lengths only: bodies are never printed.
impl std::fmt::Debug for BodyChunks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.iter().map(<[u8]>::len))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_moves_to_the_heap_when_the_stack_is_full() {
        let mut list = Inline::<usize, 2>::new();
        for entry in 0..5 {
            list.push(entry);
        }
        assert_eq!(list.as_slice(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn envoy_fills_stack_or_heap_and_may_refuse() {
        for len in [0, 2, 3] {
            // SAFETY: all `len` entries are written.
            let list = unsafe {
                Inline::<u64, 2>::filled(len, |out| {
                    (0..len).for_each(|i| out.add(i).write(i as u64));
                    true
                })
            };
            assert_eq!(list.as_slice().len(), len);
            assert!(
                list.as_slice()
                    .iter()
                    .enumerate()
                    .all(|(i, e)| i as u64 == *e)
            );
        }
        // SAFETY: it answers false.
        let refused = unsafe { Inline::<u64, 2>::filled(3, |_| false) };
        assert!(refused.as_slice().is_empty());
    }

    #[test]
    fn more_than_eight_chunks_are_all_seen_in_order() {
        let bytes: Vec<u8> = (0..20).collect();
        let chunks: BodyChunks<'_> = bytes.chunks(1).collect();
        let mut copy = Vec::new();
        chunks.copy_to(&mut copy);
        assert_eq!((chunks.len(), chunks.byte_len()), (20, 20));
        assert_eq!(copy, bytes);
    }

    #[test]
    fn debug_shows_no_value() {
        let headers: Headers<'_> = [("authorization", b"sk-test-1".as_slice())]
            .into_iter()
            .collect();
        assert_eq!(
            headers.first("authorization"),
            Some(b"sk-test-1".as_slice())
        );
        assert_eq!(format!("{headers:?}"), r#"["authorization"]"#);
    }
}
