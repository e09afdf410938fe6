//! What completions and embeddings are made of: text or tokens, one or several.

use serde_json::value::RawValue;

use crate::json::{Leaf, Reader, Scanner};
use crate::request::{RequestFault, convert};

/// Bytes of text that a token stands for.
const TOKEN_BYTES: u64 = 4;

/// What is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Input {
    /// Texts, or arrays of tokens.
    pub(super) count: u64,
    /// Escapes resolved; tokens as the text that they are likely to be.
    pub(super) text_bytes: u64,
}

impl Input {
    /// Reads a string, an array of strings, an array of tokens or an array of such arrays.
    pub(super) fn read(
        member: Option<&RawValue>,
        param: &'static str,
    ) -> Result<Self, RequestFault> {
        let Some(member) = convert::set(member) else {
            return Ok(Self::default());
        };
        let mut kinds = Kinds::default();
        let mut scanner = Scanner::new::<Kinds>();
        scanner.feed(member.get().as_bytes(), &mut kinds);
        scanner.finish(&mut kinds);
        let is_one = [kinds.texts, kinds.tokens, kinds.arrays]
            .into_iter()
            .filter(|count| *count > 0)
            .count();
        if kinds.is_other || is_one > 1 || member.get().starts_with('{') {
            let wanted = "a string, or an array of strings, of tokens or of arrays of tokens";
            return Err(RequestFault::wrong_value(param, wanted));
        }
        let tokens = kinds.tokens + kinds.inner_tokens;
        Ok(Self {
            count: kinds.texts + kinds.arrays + u64::from(kinds.tokens > 0),
            text_bytes: kinds.text_bytes + tokens.saturating_mul(TOKEN_BYTES),
        })
    }
}

#[derive(Default)]
struct Kinds {
    texts: u64,
    text_bytes: u64,
    /// Of an array of tokens.
    tokens: u64,
    /// Arrays of tokens, and what is in them.
    arrays: u64,
    inner_tokens: u64,
    is_other: bool,
}

#[derive(Clone, Copy)]
enum Name {
    Member,
    Element,
}

impl Reader for Kinds {
    type Name = Name;
    const UNKNOWN: Name = Name::Member;
    const ITEM: Name = Name::Element;

    fn name(_key: &[u8]) -> Name {
        Name::Member
    }

    fn text_bytes_wanted(&self, _path: &[Name]) -> usize {
        0
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        match (path, leaf) {
            ([] | [Name::Element], Leaf::Text { bytes, .. }) => {
                self.texts += 1;
                self.text_bytes += bytes;
            }
            ([Name::Element], Leaf::Number(_)) => self.tokens += 1,
            ([Name::Element, Name::Element], Leaf::Number(_)) => self.inner_tokens += 1,
            _ => self.is_other = true,
        }
    }

    fn open(&mut self, path: &[Name]) {
        match path {
            [] => {}
            [Name::Element] => self.arrays += 1,
            _ => self.is_other = true,
        }
    }
}
