//! JSON that arrives in pieces: a scanner that keeps nothing but what its reader asks for, and the
//! two ways of a string between its bytes and its text.
//!
//! Not a validator: what it cannot follow it reports as broken, and it follows more than the
//! grammar allows. Requests, which must be valid, are checked by `serde_json`.

mod scanner;
mod text;

pub use scanner::{Scanner, TRACKED_DEPTH};
pub use text::{unescape, write_text};

use std::ops::Range;

/// What a document's reader wants to know. Paths lead from the outermost container inwards: a
/// member's name, or [`Reader::ITEM`] for an element of an array.
pub trait Reader {
    /// The names that the reader knows.
    type Name: Copy;
    /// The name of every member that the reader does not know.
    const UNKNOWN: Self::Name;
    /// The name of an array's element.
    const ITEM: Self::Name;

    /// The name of a member by its key, which holds no escapes.
    fn name(key: &[u8]) -> Self::Name;

    /// How many bytes of the string at `path` are wanted, in their escaped form.
    fn text_bytes_wanted(&self, path: &[Self::Name]) -> usize;

    /// A string, number or word ended.
    fn leaf(&mut self, path: &[Self::Name], leaf: Leaf<'_>);

    /// An object or array begins.
    fn open(&mut self, _path: &[Self::Name]) {}

    /// An object or array ended.
    fn close(&mut self, _path: &[Self::Name]) {}

    /// A member of the outermost object ended; `span` reaches from its key's quote to the end of
    /// its value, in bytes from the document's start.
    fn member(&mut self, _name: Self::Name, _span: Range<usize>) {}

    /// A comma between two members of the outermost object, at this byte of the document.
    fn comma(&mut self, _at: usize) {}
}

/// A value that is neither object nor array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaf<'a> {
    /// `shown`: the first bytes, as many as were wanted, still escaped; `bytes`: the whole
    /// string's length once its escapes are resolved.
    Text {
        shown: &'a [u8],
        bytes: u64,
    },
    /// The number as it stands; empty when it is longer than any number worth reading.
    Number(&'a [u8]),
    Bool(bool),
    Null,
}
