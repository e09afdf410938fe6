//! Sums over 15 minutes.

use std::collections::BTreeMap;

use filter_llm::usage::Usage;

/// Length of a slot in seconds.
pub const SLOT_S: i64 = 900;

/// What a roll-up row is about. Texts are empty where there is none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RollupKey {
    /// Unix time in seconds of the slot's start.
    pub slot_s: i64,
    pub team: String,
    pub virtual_key: String,
    pub rule: String,
    /// Public model name.
    pub model: String,
    pub provider: String,
    pub upstream_model: String,
    /// Whether the tokens are estimates.
    pub estimated: bool,
    pub price_version: i64,
}

/// The sums of a roll-up row. They stop at the largest number rather than fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RollupSums {
    /// Exchanges whose last attempt is in this row.
    pub requests: i64,
    pub attempts: i64,
    pub input_tokens: i64,
    pub cached_input_tokens: i64,
    pub cache_write_tokens: i64,
    pub output_tokens: i64,
    pub reasoning_tokens: i64,
    pub estimated_attempts: i64,
    /// Attempts with tokens of which some have no price.
    pub unpriced_attempts: i64,
    /// Nano-USD over everything that has a price.
    pub cost_nusd: i64,
}

/// Roll-ups of a transaction, summed and in the order in which rows are locked.
#[derive(Debug, Default)]
pub struct Rollups(BTreeMap<RollupKey, RollupSums>);

impl Rollups {
    /// Adds to a row.
    pub fn add(&mut self, key: RollupKey, sums: &RollupSums) {
        self.0.entry(key).or_default().add(sums);
    }

    /// The rows in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&RollupKey, &RollupSums)> {
        self.0.iter()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl RollupSums {
    /// The tokens, as one usage. Which of them were audio or written for an hour is not known.
    pub(super) fn usage(&self) -> Usage {
        let tokens = |sum: i64| u64::try_from(sum).unwrap_or(0);
        Usage {
            input: tokens(self.input_tokens),
            cached_input: tokens(self.cached_input_tokens),
            cache_write: tokens(self.cache_write_tokens),
            output: tokens(self.output_tokens),
            reasoning: tokens(self.reasoning_tokens),
            ..Usage::default()
        }
    }

    /// Adds each sum.
    pub fn add(&mut self, more: &Self) {
        for (sum, more) in [
            (&mut self.requests, more.requests),
            (&mut self.attempts, more.attempts),
            (&mut self.input_tokens, more.input_tokens),
            (&mut self.cached_input_tokens, more.cached_input_tokens),
            (&mut self.cache_write_tokens, more.cache_write_tokens),
            (&mut self.output_tokens, more.output_tokens),
            (&mut self.reasoning_tokens, more.reasoning_tokens),
            (&mut self.estimated_attempts, more.estimated_attempts),
            (&mut self.unpriced_attempts, more.unpriced_attempts),
            (&mut self.cost_nusd, more.cost_nusd),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// Start of the slot that holds a moment; microseconds in, seconds out.
pub(super) fn slot_of(at_us: i64) -> i64 {
    at_us.div_euclid(SLOT_S * 1_000_000) * SLOT_S
}
