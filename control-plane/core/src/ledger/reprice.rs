//! What usage in the ledger costs by the current prices, and the corrections that make up for the
//! difference. What was booked is never edited.

use std::collections::BTreeMap;

use filter_core::config::PriceList;
use prost::Message as _;
use proto::metering::v1::UsageRecord;

use super::summary::{attempt_key, attempt_sums};
use super::{RollupKey, RollupSums, SLOT_S, Undecodable};

/// Which attempts to look at; what is none is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepriceFilter {
    /// Public model name.
    pub model: Option<String>,
    pub provider: Option<String>,
}

/// Of one row of the roll-ups: what is to be added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    pub key: RollupKey,
    /// Nano-USD.
    pub delta_nusd: i64,
    /// Attempts that had no known price and have one now, less those that earlier corrections
    /// counted.
    pub priced_attempts: i64,
}

/// What earlier corrections added to a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corrected {
    pub delta_nusd: i64,
    pub priced_attempts: i64,
}

/// What was looked at, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repriced {
    /// Attempts with tokens.
    pub attempts: i64,
    /// Of these, those whose cost stays as it was booked.
    pub skipped_attempts: i64,
    /// Nano-USD, earlier corrections included.
    pub from_nusd: i64,
    pub to_nusd: i64,
    /// In key order; those that add nothing are left out.
    pub corrections: Vec<Correction>,
}

/// Adds up usage by rows of the roll-ups.
#[derive(Debug)]
pub struct Repricing<'a> {
    prices: &'a PriceList,
    filter: &'a RepriceFilter,
    rows: BTreeMap<RollupKey, Row>,
}

/// Attempts with tokens of one row, by what is booked and by the current prices.
#[derive(Debug, Default)]
struct Row {
    attempts: i64,
    skipped: i64,
    booked_nusd: i64,
    cost_nusd: i64,
    priced: i64,
}

impl<'a> Repricing<'a> {
    /// Nothing looked at yet.
    pub fn new(prices: &'a PriceList, filter: &'a RepriceFilter) -> Self {
        Self {
            prices,
            filter,
            rows: BTreeMap::new(),
        }
    }

    /// Takes in a record that is stored as admitted at a moment, in Unix microseconds.
    ///
    /// # Errors
    /// When the bytes are no `UsageRecord`.
    pub fn add_record(&mut self, bytes: &[u8], admitted_at_us: i64) -> Result<(), Undecodable> {
        let record = UsageRecord::decode(bytes).map_err(|_| Undecodable)?;
        for attempt in &record.attempts {
            let sums = attempt_sums(attempt);
            let key = attempt_key(&record, admitted_at_us, attempt, &sums);
            let started_us = i64::try_from(attempt.started_us).unwrap_or(i64::MAX);
            let started_at_us = record.admitted_at_us.saturating_add(started_us);
            let cost_nusd = self.prices.cost_nusd(attempt, started_at_us);
            self.add(key, &sums, cost_nusd);
        }
        Ok(())
    }

    /// Takes in a row of the roll-ups whose records are gone.
    pub fn add_sums(&mut self, key: RollupKey, sums: &RollupSums) {
        let seconds = |unix_s: i64| u64::try_from(unix_s).unwrap_or(0);
        let span_s = seconds(key.slot_s)..seconds(key.slot_s.saturating_add(SLOT_S));
        let target = (key.provider.as_str(), key.upstream_model.as_str());
        let cost_nusd = self.prices.cost_of_sum_nusd(target, span_s, &sums.usage());
        self.add(key, sums, cost_nusd);
    }

    fn add(&mut self, key: RollupKey, sums: &RollupSums, cost_nusd: Option<u64>) {
        let is_of = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|it| it == is);
        let is_wanted =
            is_of(&self.filter.model, &key.model) && is_of(&self.filter.provider, &key.provider);
        if !is_wanted || (sums.input_tokens == 0 && sums.output_tokens == 0) {
            return;
        }
        let row = self.rows.entry(key).or_default();
        let (cost_nusd, skipped, priced) = match cost_nusd {
            Some(nusd) => (
                i64::try_from(nusd).unwrap_or(i64::MAX),
                0,
                sums.unpriced_attempts,
            ),
            None => (sums.cost_nusd, sums.attempts, 0),
        };
        for (sum, more) in [
            (&mut row.attempts, sums.attempts),
            (&mut row.skipped, skipped),
            (&mut row.booked_nusd, sums.cost_nusd),
            (&mut row.cost_nusd, cost_nusd),
            (&mut row.priced, priced),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// The corrections that are still to be made, after those that were made to some rows.
    pub fn finish(self, corrected: &BTreeMap<RollupKey, Corrected>) -> Repriced {
        let mut repriced = Repriced::default();
        for (key, row) in self.rows {
            let before = corrected.get(&key).copied().unwrap_or_default();
            let from_nusd = row.booked_nusd.saturating_add(before.delta_nusd);
            // Where nothing can be told, earlier corrections stand.
            let is_told = row.skipped < row.attempts;
            let to_nusd = if is_told { row.cost_nusd } else { from_nusd };
            let priced = if is_told {
                row.priced
            } else {
                before.priced_attempts
            };
            let correction = Correction {
                key,
                delta_nusd: to_nusd.saturating_sub(from_nusd),
                priced_attempts: priced.saturating_sub(before.priced_attempts),
            };
            for (sum, more) in [
                (&mut repriced.attempts, row.attempts),
                (&mut repriced.skipped_attempts, row.skipped),
                (&mut repriced.from_nusd, from_nusd),
                (&mut repriced.to_nusd, to_nusd),
            ] {
                *sum = sum.saturating_add(more);
            }
            if correction.delta_nusd != 0 || correction.priced_attempts != 0 {
                repriced.corrections.push(correction);
            }
        }
        repriced
    }
}

#[cfg(test)]
mod tests;
