//! Token counts that tell any two requests apart.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Bytes of text in a token, about.
pub const TOKEN_BYTES: u64 = 4;
/// How many input counts requests of one length have.
const INPUT_SPREAD: u64 = 5;

/// What a request used, inclusive: `prompt` covers `cached`, `completion` covers `reasoning`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    pub prompt: u64,
    #[serde(default)]
    pub cached: u64,
    pub completion: u64,
    #[serde(default)]
    pub reasoning: u64,
}

impl Tokens {
    /// Draws the counts of request number `n` (from 1). Under one seed each class rises strictly
    /// with `n`, so no two requests share the count of any class.
    pub fn draw(seed: u64, n: u64) -> Self {
        let dice = scramble(seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            prompt: 11 + 7 * n + dice % 7,
            cached: 1 + 3 * n + (dice >> 8) % 3,
            completion: 9 + 5 * n + (dice >> 16) % 5,
            reasoning: 2 + 2 * n + (dice >> 24) % 2,
        }
    }

    /// What a model would count: input for `asked_bytes` of request number `n`, and `output`. The
    /// input differs a little from one request to the next, and is never more than the bytes are.
    pub fn measure(asked_bytes: u64, output: u64, n: u64) -> Self {
        let prompt = asked_bytes.div_ceil(TOKEN_BYTES) + n % INPUT_SPREAD;
        Self {
            prompt: prompt.min(asked_bytes),
            completion: output,
            ..Self::default()
        }
    }

    /// The counts after `done` of `all` parts of the answer went out, for usage that grows with
    /// the stream.
    pub fn after(self, done: u64, all: u64) -> Self {
        let part = |whole: u64| whole * done / all.max(1);
        Self {
            completion: part(self.completion),
            reasoning: part(self.reasoning),
            ..self
        }
    }

    /// The `usage` object of an OpenAI answer.
    pub fn to_json(self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning},
        })
    }
}

fn scramble(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_tells_requests_apart_and_stays_inside_its_whole() {
        let all: Vec<Tokens> = (1..=5_000).map(|n| Tokens::draw(42, n)).collect();
        for pair in all.windows(2) {
            assert!(pair[0].prompt < pair[1].prompt);
            assert!(pair[0].cached < pair[1].cached);
            assert!(pair[0].completion < pair[1].completion);
            assert!(pair[0].reasoning < pair[1].reasoning);
        }
        assert!(
            all.iter()
                .all(|t| t.cached <= t.prompt && t.reasoning <= t.completion)
        );
    }

    #[test]
    fn the_same_seed_draws_the_same_counts_and_another_does_not() {
        assert_eq!(Tokens::draw(7, 3), Tokens::draw(7, 3));
        assert!((1..50).any(|n| Tokens::draw(7, n) != Tokens::draw(8, n)));
    }

    #[test]
    fn measured_input_does_not_grow_with_the_number_of_requests() {
        let prompts = |bytes: u64| (1..5_000).map(move |n| Tokens::measure(bytes, 9, n).prompt);
        assert!(prompts(100).all(|prompt| (25..30).contains(&prompt)));
        assert!(prompts(2).all(|prompt| prompt <= 2));
    }

    #[test]
    fn growing_usage_ends_at_the_whole() {
        let tokens = Tokens::draw(1, 9);
        assert_eq!(tokens.after(4, 4), tokens);
        assert_eq!(tokens.after(0, 4).completion, 0);
    }
}
