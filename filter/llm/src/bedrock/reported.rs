//! `usage`, and the one form it is brought to.
//!
//! What was read from a cache or written to one stands beside `inputTokens`; `cacheDetails` says
//! how much of what was written lasts how long.

use serde_json::value::RawValue;

use super::name::Name;
use crate::json::{Leaf, Reader, Scanner};
use crate::usage::{PLAUSIBLE_TOKENS, Usage};

/// Bytes of a `ttl`.
pub(super) const TTL_BYTES: usize = 4;

/// The members of all usages so far, of which later ones replace earlier ones. What is negative, no
/// number or beyond belief is absent.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reported {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    cache_write_1h: u64,
    output: Option<u64>,
    /// Of the detail at hand.
    lasts_an_hour: bool,
    detail_tokens: u64,
}

impl Reported {
    /// Takes a member by its path within a usage.
    pub(super) fn take(&mut self, path: &[Name], leaf: Leaf<'_>) {
        if let ([Name::CacheDetails, Name::Item, Name::Ttl], Leaf::Text { shown, .. }) =
            (path, leaf)
        {
            self.lasts_an_hour = shown == b"1h";
            return;
        }
        let Some(tokens) = tokens(leaf) else { return };
        match path {
            [Name::InputTokens] => self.input = Some(tokens),
            [Name::CacheReadInputTokens] => self.cache_read = Some(tokens),
            [Name::CacheWriteInputTokens] => self.cache_write = Some(tokens),
            [Name::OutputTokens] => self.output = Some(tokens),
            [Name::CacheDetails, Name::Item, Name::InputTokens] => self.detail_tokens = tokens,
            _ => {}
        }
    }

    /// An object or array begins, by its path within a usage.
    pub(super) fn open(&mut self, path: &[Name]) {
        match path {
            [Name::CacheDetails] => self.cache_write_1h = 0,
            [Name::CacheDetails, Name::Item] => {
                self.lasts_an_hour = false;
                self.detail_tokens = 0;
            }
            _ => {}
        }
    }

    /// An object or array ended, by its path within a usage.
    pub(super) fn close(&mut self, path: &[Name]) {
        if path == [Name::CacheDetails, Name::Item] && self.lasts_an_hour {
            self.cache_write_1h = self.cache_write_1h.saturating_add(self.detail_tokens);
        }
    }

    /// The canonical form; `None` when nothing was reported.
    pub(super) fn canonical(&self) -> Option<Usage> {
        let cached_input = self.cache_read.unwrap_or(0);
        let cache_write = self.cache_write.unwrap_or(0);
        let usage = Usage {
            input: self.input.unwrap_or(0) + cached_input + cache_write,
            cached_input,
            cache_write,
            cache_write_1h: self.cache_write_1h,
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

fn tokens(leaf: Leaf<'_>) -> Option<u64> {
    let Leaf::Number(digits) = leaf else {
        return None;
    };
    let tokens = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (tokens <= PLAUSIBLE_TOKENS).then_some(tokens)
}

impl Reader for Reported {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, _path: &[Name]) -> usize {
        TTL_BYTES
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        self.take(path, leaf);
    }

    fn open(&mut self, path: &[Name]) {
        Self::open(self, path);
    }

    fn close(&mut self, path: &[Name]) {
        Self::close(self, path);
    }
}
