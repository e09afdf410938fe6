//! A usage object as providers of this dialect write it, and the one form it is brought to.

use serde_json::value::RawValue;

use super::name::Name;
use crate::json::{Leaf, Reader, Scanner};
use crate::usage::{PLAUSIBLE_TOKENS, Usage};

/// Bytes of a string that may hold a number of tokens.
pub(super) const NUMBER_BYTES: usize = 24;

/// The members of one usage object. What is negative, no number or beyond belief is absent;
/// fractions are cut off.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reported {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
    cached: Option<u64>,
    cache_write: Option<u64>,
    /// Anthropic's own counters, which some gateways add beside OpenAI's.
    cache_read_apart: Option<u64>,
    cache_write_apart: Option<u64>,
    cache_write_1h: Option<u64>,
    cache_hit: Option<u64>,
    cache_miss: Option<u64>,
    input_audio: Option<u64>,
    reasoning: Option<u64>,
    output_audio: Option<u64>,
}

impl Reported {
    /// Takes a member by its path within the usage object.
    pub(super) fn take(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let place = match path {
            [Name::PromptTokens] => &mut self.prompt,
            [Name::CompletionTokens] => &mut self.completion,
            [Name::TotalTokens] => &mut self.total,
            [Name::CachedTokens] | [Name::PromptTokensDetails, Name::CachedTokens] => {
                &mut self.cached
            }
            [Name::PromptTokensDetails, Name::CacheWriteTokens] => &mut self.cache_write,
            [Name::PromptTokensDetails, Name::AudioTokens] => &mut self.input_audio,
            [Name::CacheReadInputTokens] => &mut self.cache_read_apart,
            [Name::CacheCreationInputTokens] => &mut self.cache_write_apart,
            [Name::CacheCreation, Name::Ephemeral1hInputTokens] => &mut self.cache_write_1h,
            [Name::PromptCacheHitTokens] => &mut self.cache_hit,
            [Name::PromptCacheMissTokens] => &mut self.cache_miss,
            [Name::ReasoningTokens] | [Name::CompletionTokensDetails, Name::ReasoningTokens] => {
                &mut self.reasoning
            }
            [Name::CompletionTokensDetails, Name::AudioTokens] => &mut self.output_audio,
            _ => return,
        };
        if let Some(tokens) = tokens(leaf) {
            *place = Some(tokens);
        }
    }

    /// The canonical form; `None` when the object reports nothing: no tokens at all are no report,
    /// since every prompt has at least one.
    pub(super) fn canonical(&self) -> Option<Usage> {
        let usage = Usage {
            input: self.input(),
            cached_input: self.cached_input(),
            cache_write: self.cache_write.or(self.cache_write_apart).unwrap_or(0),
            cache_write_1h: self.cache_write_1h.unwrap_or(0),
            input_audio: self.input_audio.unwrap_or(0),
            output: self.output(),
            reasoning: self.reasoning.unwrap_or(0),
            output_audio: self.output_audio.unwrap_or(0),
        };
        (usage.total() > 0).then(|| usage.clamped())
    }

    fn cached_input(&self) -> u64 {
        let counters = [self.cached, self.cache_hit, self.cache_read_apart];
        counters.into_iter().flatten().max().unwrap_or(0)
    }

    fn input(&self) -> u64 {
        let hit_and_miss = self.cache_hit.zip(self.cache_miss);
        let prompt = self
            .prompt
            .or_else(|| hit_and_miss.map(|(hit, miss)| hit + miss))
            .or_else(|| Some(self.total?.saturating_sub(self.completion?)))
            .unwrap_or(0);
        let apart = self.cache_read_apart.unwrap_or(0) + self.cache_write_apart.unwrap_or(0);
        // Counted inside the prompt by OpenAI's rule, beside it by Anthropic's: what is larger
        // than the prompt cannot lie inside it.
        if apart > prompt {
            prompt + apart
        } else {
            prompt
        }
    }

    fn output(&self) -> u64 {
        let completion = self
            .completion
            .or_else(|| Some(self.total?.saturating_sub(self.prompt?)))
            .unwrap_or(0);
        let reasoning = self.reasoning.unwrap_or(0);
        // xAI counts reasoning beside the completion, and its total shows it.
        let beside = completion + reasoning;
        let total_says_beside = match (self.total, self.prompt, self.completion) {
            (Some(total), Some(prompt), Some(_)) => total == prompt + beside,
            _ => false,
        };
        if reasoning > completion || total_says_beside {
            beside
        } else {
            completion
        }
    }
}

/// Reads a usage object by itself; `None`: it reports nothing.
pub(super) fn read(usage: &RawValue) -> Option<Usage> {
    let mut reader = UsageReader::default();
    Scanner::new::<UsageReader>().feed(usage.get().as_bytes(), &mut reader);
    reader.0.canonical()
}

#[derive(Default)]
struct UsageReader(Reported);

impl Reader for UsageReader {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, _path: &[Name]) -> usize {
        NUMBER_BYTES
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        self.0.take(path, leaf);
    }
}

/// A number of tokens, as a number or as a string that holds one.
fn tokens(leaf: Leaf<'_>) -> Option<u64> {
    let digits = match leaf {
        Leaf::Number(digits) => digits,
        Leaf::Text { shown, bytes } if shown.len() as u64 == bytes => shown,
        Leaf::Text { .. } | Leaf::Bool(_) | Leaf::Null => return None,
    };
    let digits = std::str::from_utf8(digits).ok()?;
    let tokens = digits
        .parse()
        .ok()
        .or_else(|| whole(digits.parse().ok()?))?;
    (tokens <= PLAUSIBLE_TOKENS).then_some(tokens)
}

/// The whole part of a number written with a fraction or an exponent.
fn whole(number: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the fraction is to be cut off, and the range is checked first"
    )]
    (0.0..1e15).contains(&number).then_some(number as u64)
}

#[cfg(test)]
mod tests;
