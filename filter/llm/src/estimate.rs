//! Token counts for what no provider has counted. Never exact, and to be marked as estimates
//! wherever they are shown.

use crate::usage::{PLAUSIBLE_TOKENS, Usage};

/// How these estimates are made, as usage records name it.
pub const METHOD: &str = "bytes/4";

/// How the estimate is made where the provider had counted the prompt.
pub const OUTPUT_METHOD: &str = "input reported, output bytes/4";

const LIKELY_BYTES_PER_TOKEN: u64 = 4;
/// Common tokenizers put far more text into a token only where it repeats itself.
const MOST_BYTES_PER_TOKEN: u64 = 8;

/// Fewest tokens that a prompt of `text_bytes` can be expected to have, rounded down.
pub fn prompt_tokens_lower(text_bytes: u64) -> u64 {
    text_bytes / MOST_BYTES_PER_TOKEN
}

/// Tokens that a prompt of `text_bytes` is likely to have, rounded up.
pub fn prompt_tokens_likely(text_bytes: u64) -> u64 {
    text_bytes.div_ceil(LIKELY_BYTES_PER_TOKEN)
}

/// Tokens that `visible_bytes` of output are likely to be, rounded up.
pub fn output_tokens(visible_bytes: u64) -> u64 {
    visible_bytes.div_ceil(LIKELY_BYTES_PER_TOKEN)
}

/// The likely usage of an attempt whose provider reported none; `reasoning_bytes` are part of
/// `visible_bytes`.
pub fn usage(text_bytes: u64, visible_bytes: u64, reasoning_bytes: u64) -> Usage {
    Usage {
        input: prompt_tokens_likely(text_bytes).min(PLAUSIBLE_TOKENS),
        output: output_tokens(visible_bytes).min(PLAUSIBLE_TOKENS),
        reasoning: output_tokens(reasoning_bytes),
        ..Usage::default()
    }
    .clamped()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likely_counts_round_up_and_the_lower_bound_rounds_down() {
        assert_eq!((output_tokens(0), output_tokens(1)), (0, 1));
        assert_eq!((output_tokens(4), output_tokens(5)), (1, 2));
        assert_eq!((prompt_tokens_likely(8), prompt_tokens_likely(9)), (2, 3));
        assert_eq!((prompt_tokens_lower(7), prompt_tokens_lower(8)), (0, 1));
    }

    #[test]
    fn an_estimate_keeps_reasoning_within_the_output() {
        let estimated = usage(100, 40, 12);
        assert_eq!(
            (estimated.input, estimated.output, estimated.reasoning),
            (25, 10, 3)
        );
        assert_eq!(usage(0, 4, 400).reasoning, 1);
        assert_eq!(usage(u64::MAX, u64::MAX, 0).input, PLAUSIBLE_TOKENS);
    }
}
