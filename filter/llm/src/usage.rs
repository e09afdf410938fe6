//! Tokens of one attempt in the one form that every dialect maps onto.

/// Largest number of tokens that is believed. No model has a context of this size; a provider
/// that reports more is taken to have reported nothing.
pub const PLAUSIBLE_TOKENS: u64 = 1_000_000_000;

/// Tokens, inclusive: `input` covers `cached_input`, `cache_write` and `input_audio`; `cache_write`
/// covers `cache_write_1h`; `output` covers `reasoning` and `output_audio`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Usage {
    pub input: u64,
    pub cached_input: u64,
    pub cache_write: u64,
    /// Written to a cache that lasts an hour.
    pub cache_write_1h: u64,
    pub input_audio: u64,
    pub output: u64,
    pub reasoning: u64,
    pub output_audio: u64,
}

impl Usage {
    /// The same with no part larger than its whole, and cache reads and writes disjoint.
    #[must_use]
    pub fn clamped(self) -> Self {
        let cached_input = self.cached_input.min(self.input);
        let cache_write = self.cache_write.min(self.input - cached_input);
        Self {
            cached_input,
            cache_write,
            cache_write_1h: self.cache_write_1h.min(cache_write),
            input_audio: self.input_audio.min(self.input),
            reasoning: self.reasoning.min(self.output),
            output_audio: self.output_audio.min(self.output),
            ..self
        }
    }

    /// Input and output together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_never_exceeds_its_whole() {
        let clamped = Usage {
            input: 10,
            cached_input: 8,
            cache_write: 5,
            cache_write_1h: 4,
            input_audio: 11,
            output: 3,
            reasoning: 4,
            output_audio: 9,
        }
        .clamped();
        let expected = Usage {
            input: 10,
            cached_input: 8,
            cache_write: 2,
            cache_write_1h: 2,
            input_audio: 10,
            output: 3,
            reasoning: 3,
            output_audio: 3,
        };
        assert_eq!(clamped, expected);
    }
}
