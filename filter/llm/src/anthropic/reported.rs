//! `usage`, and the one form it is brought to.
//!
//! Tokens read from and written to the cache stand beside `input_tokens`. A stream tells what the
//! prompt took first and an early count of the output with it; each later usage is cumulative, and
//! may tell only what has changed (Anthropic's API reference, "Streaming messages").

use serde_json::value::RawValue;

use super::name::Name;
use crate::json::{Leaf, Reader, Scanner};
use crate::usage::{PLAUSIBLE_TOKENS, Usage};

/// The members of all usages so far. What is negative, no number or beyond belief is absent.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reported {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_creation: Option<u64>,
    cache_creation_1h: Option<u64>,
    output: Option<u64>,
}

impl Reported {
    /// Takes a member by its path within a usage.
    pub(super) fn take(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let place = match path {
            [Name::InputTokens] => &mut self.input,
            [Name::CacheReadInputTokens] => &mut self.cache_read,
            [Name::CacheCreationInputTokens] => &mut self.cache_creation,
            [Name::CacheCreation, Name::Ephemeral1hInputTokens] => &mut self.cache_creation_1h,
            [Name::OutputTokens] => &mut self.output,
            _ => return,
        };
        let Leaf::Number(digits) = leaf else { return };
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        if let Ok(tokens) = digits.parse()
            && tokens <= PLAUSIBLE_TOKENS
        {
            *place = Some(tokens);
        }
    }

    /// The canonical form; `None` when nothing was reported.
    pub(super) fn canonical(&self) -> Option<Usage> {
        let cached_input = self.cache_read.unwrap_or(0);
        let cache_write = self.cache_creation.unwrap_or(0);
        let usage = Usage {
            input: self.input.unwrap_or(0) + cached_input + cache_write,
            cached_input,
            cache_write,
            cache_write_1h: self.cache_creation_1h.unwrap_or(0),
            output: self.output.unwrap_or(0),
            ..Usage::default()
        };
        (usage.total() > 0).then(|| usage.clamped())
    }

    /// Takes a usage by itself in.
    pub(super) fn add(&mut self, usage: &RawValue) {
        Scanner::new::<Self>().feed(usage.get().as_bytes(), self);
    }
}

impl Reader for Reported {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, _path: &[Name]) -> usize {
        0
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        self.take(path, leaf);
    }
}
