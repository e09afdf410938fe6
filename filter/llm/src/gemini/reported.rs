//! `usageMetadata`, and the one form it is brought to.
//!
//! Thoughts stand beside the candidates' tokens, and the prompt of tools beside the prompt; what
//! was cached lies within the prompt (Gemini API reference, `GenerateContentResponse`).

use serde_json::value::RawValue;

use super::name::Name;
use crate::json::{Leaf, Reader, Scanner};
use crate::usage::{PLAUSIBLE_TOKENS, Usage};

/// Bytes of a string that may hold a number of tokens.
pub(super) const NUMBER_BYTES: usize = 24;

/// The members of one `usageMetadata`. What is negative, no number or beyond belief is absent.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reported {
    prompt: Option<u64>,
    tool_prompt: Option<u64>,
    cached: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
    total: Option<u64>,
    input_audio: u64,
    output_audio: u64,
    /// Of the detail at hand.
    is_audio: bool,
    detail_tokens: u64,
}

impl Reported {
    /// Takes a member by its path within the object.
    pub(super) fn take(&mut self, path: &[Name], leaf: Leaf<'_>) {
        if let [_, Name::Item, Name::Modality] = path {
            self.is_audio = matches!(
                leaf,
                Leaf::Text {
                    shown: b"AUDIO",
                    ..
                }
            );
            return;
        }
        let Some(tokens) = tokens(leaf) else { return };
        let place = match path {
            [Name::PromptTokenCount] => &mut self.prompt,
            [Name::ToolUsePromptTokenCount] => &mut self.tool_prompt,
            [Name::CachedContentTokenCount] => &mut self.cached,
            [Name::CandidatesTokenCount] => &mut self.candidates,
            [Name::ThoughtsTokenCount] => &mut self.thoughts,
            [Name::TotalTokenCount] => &mut self.total,
            [_, Name::Item, Name::TokenCount] => {
                self.detail_tokens = tokens;
                return;
            }
            _ => return,
        };
        *place = Some(tokens);
    }

    /// One modality's count has ended.
    pub(super) fn end_detail(&mut self, of: Name) {
        let tokens = std::mem::take(&mut self.detail_tokens);
        if !std::mem::take(&mut self.is_audio) {
            return;
        }
        match of {
            Name::PromptTokensDetails => self.input_audio += tokens,
            Name::CandidatesTokensDetails => self.output_audio += tokens,
            _ => {}
        }
    }

    /// The canonical form; `None` when the object reports nothing.
    pub(super) fn canonical(&self) -> Option<Usage> {
        let thoughts = self.thoughts.unwrap_or(0);
        let input = self.prompt.unwrap_or(0) + self.tool_prompt.unwrap_or(0);
        let output = match (self.candidates, self.total) {
            (Some(candidates), _) => candidates + thoughts,
            // No text at all: what is beyond the prompt was thought.
            (None, Some(total)) => total.saturating_sub(input).max(thoughts),
            (None, None) => thoughts,
        };
        let usage = Usage {
            input,
            cached_input: self.cached.unwrap_or(0),
            input_audio: self.input_audio,
            output,
            reasoning: thoughts,
            output_audio: self.output_audio,
            ..Usage::default()
        };
        (usage.total() > 0).then(|| usage.clamped())
    }
}

fn tokens(leaf: Leaf<'_>) -> Option<u64> {
    let (Leaf::Text { shown, .. } | Leaf::Number(shown)) = leaf else {
        return None;
    };
    let tokens = std::str::from_utf8(shown).ok()?.parse().ok()?;
    (tokens <= PLAUSIBLE_TOKENS).then_some(tokens)
}

/// Reads a `usageMetadata` by itself; `None`: it reports nothing.
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

    fn close(&mut self, path: &[Name]) {
        if let [of, Name::Item] = path {
            self.0.end_detail(*of);
        }
    }
}
