//! What this process has learned of targets: how long their answers are, and how many tokens they
//! make of a byte.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Buckets of tokens by their highest bit: the last one holds all from 2^31 on.
const OUTPUT_BUCKETS: usize = 32;
/// Buckets of tokens per byte, in 32nds; the last one holds all from one token a byte on.
const RATIO_BUCKETS: usize = 33;
const RATIO_PARTS: u64 = 32;
/// Fewer answers than this say nothing.
const ENOUGH: u32 = 16;
/// When this many answers are in, each counts half, so that old ones fade.
const FULL: u32 = 1024;
/// The share of answers that an estimate is to cover, in percent.
const COVERED_PERCENT: u64 = 95;
/// Until more is known: an answer, and tokens per 32 bytes of prompt.
const UNKNOWN_OUTPUT: u64 = 1024;
const UNKNOWN_RATIO: u64 = 16;

/// Everything learned, by target. One per process.
#[derive(Debug, Default)]
pub struct Learned(Mutex<BTreeMap<Box<str>, Arc<TargetStats>>>);

impl Learned {
    /// Nothing learned.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What is known of a target, by its label.
    pub(crate) fn of(&self, target: &str) -> Arc<TargetStats> {
        let mut targets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stats) = targets.get(target) {
            return Arc::clone(stats);
        }
        let stats = Arc::new(TargetStats::default());
        targets.insert(target.into(), Arc::clone(&stats));
        stats
    }
}

/// What is known of one target. Counts may miss a few that come at the same moment.
#[derive(Debug, Default)]
pub(crate) struct TargetStats {
    output: Histogram<OUTPUT_BUCKETS>,
    ratio: Histogram<RATIO_BUCKETS>,
}

impl TargetStats {
    /// Takes in what a provider reported for a prompt of `text_bytes`.
    pub(crate) fn observe(&self, text_bytes: u64, input: u64, output: u64) {
        let highest_bit = output.checked_ilog2().unwrap_or(0) as usize;
        self.output.add(highest_bit);
        if let Some(parts) = (input.saturating_mul(RATIO_PARTS)).checked_div(text_bytes) {
            self.ratio.add(usize::try_from(parts).unwrap_or(usize::MAX));
        }
    }

    /// Tokens that 95 of 100 answers do not exceed, to the next power of two.
    pub(crate) fn likely_output(&self) -> u64 {
        match self.output.covering() {
            Some(bucket) => (2_u64 << bucket) - 1,
            None => UNKNOWN_OUTPUT,
        }
    }

    /// Tokens that 95 of 100 prompts of `text_bytes` do not exceed.
    pub(crate) fn likely_input(&self, text_bytes: u64) -> u64 {
        let parts = match self.ratio.covering() {
            Some(bucket) => bucket as u64 + 1,
            None => UNKNOWN_RATIO,
        };
        text_bytes.saturating_mul(parts).div_ceil(RATIO_PARTS)
    }
}

#[derive(Debug)]
struct Histogram<const N: usize> {
    buckets: [AtomicU32; N],
    total: AtomicU32,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU32::new(0)),
            total: AtomicU32::new(0),
        }
    }
}

impl<const N: usize> Histogram<N> {
    fn add(&self, bucket: usize) {
        if let Some(count) = self.buckets.get(bucket.min(N - 1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if self.total.fetch_add(1, Ordering::Relaxed) < FULL {
            return;
        }
        self.total.store(0, Ordering::Relaxed);
        for count in &self.buckets {
            let half = count.load(Ordering::Relaxed) / 2;
            count.store(half, Ordering::Relaxed);
            self.total.fetch_add(half, Ordering::Relaxed);
        }
    }

    /// The lowest bucket that covers enough of what was seen together with those below it.
    fn covering(&self) -> Option<usize> {
        let total: u32 = self.counts().sum();
        if total < ENOUGH {
            return None;
        }
        let mut seen = 0_u64;
        self.counts().position(|count| {
            seen += u64::from(count);
            seen * 100 >= u64::from(total) * COVERED_PERCENT
        })
    }

    fn counts(&self) -> impl Iterator<Item = u32> {
        let counts = self.buckets.iter();
        counts.map(|count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_enough_answers_are_in_the_estimate_is_a_guess() {
        let stats = TargetStats::default();
        for _ in 1..ENOUGH {
            stats.observe(400, 100, 10);
        }
        assert_eq!(stats.likely_output(), UNKNOWN_OUTPUT);
        assert_eq!(stats.likely_input(1_000), 500);
        stats.observe(400, 100, 10);
        assert_eq!(stats.likely_output(), 15);
        assert_eq!(stats.likely_input(1_000), 282);
    }

    #[test]
    fn the_estimate_covers_all_but_a_twentieth() {
        let stats = TargetStats::default();
        for at in 0..100 {
            stats.observe(400, 100, if at < 5 { 5_000 } else { 100 });
        }
        assert_eq!(stats.likely_output(), 127);
        stats.observe(400, 100, 5_000);
        assert_eq!(stats.likely_output(), 8_191);
    }

    #[test]
    fn old_answers_fade() {
        let stats = TargetStats::default();
        (0..1_000).for_each(|_| stats.observe(4, 1, 5_000));
        (0..12_000).for_each(|_| stats.observe(4, 1, 3));
        assert_eq!(stats.likely_output(), 3);
    }

    #[test]
    fn extremes_fit() {
        let stats = TargetStats::default();
        (0..20).for_each(|_| stats.observe(0, u64::MAX, u64::MAX));
        (0..20).for_each(|_| stats.observe(1, u64::MAX, 0));
        assert_eq!(stats.likely_output(), (2 << 31) - 1);
        assert!(stats.likely_input(u64::MAX) >= u64::MAX / RATIO_PARTS);
    }

    #[test]
    fn each_target_is_known_by_itself() {
        let learned = Learned::new();
        (0..20).for_each(|_| learned.of("a/m").observe(4, 1, 3));
        assert_eq!(learned.of("a/m").likely_output(), 3);
        assert_eq!(learned.of("b/m").likely_output(), UNKNOWN_OUTPUT);
    }
}
