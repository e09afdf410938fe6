//! One usage record, as the ledger files it.

use prost::Message as _;
use proto::metering::v1::{self as metering, UsageRecord, UsageSource};

use super::{RollupKey, RollupSums, Rollups};

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record does not decode")]
pub struct Undecodable;

/// What of a record is kept beside its bytes: the columns to search by, and its sums.
///
/// Texts are fit for Postgres and its indexes: without NUL, at most 256 bytes. Numbers fit a
/// signed 64-bit column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Unix time in microseconds of admission, kept within what a sane clock could say.
    pub admitted_at_us: i64,
    pub request_id: String,
    pub team: String,
    pub virtual_key: String,
    pub end_user: String,
    /// Public model of the last attempt, or the planned one when there was none.
    pub model: String,
    /// Provider of the last attempt; empty: there was none.
    pub provider: String,
    /// HTTP status the client got; 0: it left before one.
    pub status: i32,
    /// `End` as a number, known here or not.
    pub ended: i32,
    pub price_version: i64,
    /// Over all attempts; `requests` is 1.
    pub sums: RollupSums,
    /// What limits are charged.
    pub charges: Vec<metering::Charge>,
}

/// A node's clock may be this far ahead, in microseconds.
const MAX_AHEAD_US: i64 = 300_000_000;
/// A record may be this late, in microseconds: a year and a day.
const MAX_LATE_US: i64 = 366 * 86_400_000_000;
const MAX_TEXT_BYTES: usize = 256;

impl Summary {
    /// Reads a record that arrives at `received_at_us` and adds it to the roll-ups.
    ///
    /// # Errors
    /// When the bytes are no `UsageRecord`; then nothing is added.
    pub fn read(
        bytes: &[u8],
        received_at_us: i64,
        rollups: &mut Rollups,
    ) -> Result<Self, Undecodable> {
        let record = UsageRecord::decode(bytes).map_err(|_| Undecodable)?;
        let earliest = received_at_us.saturating_sub(MAX_LATE_US);
        let latest = received_at_us.saturating_add(MAX_AHEAD_US);
        let admitted_at_us = record.admitted_at_us.clamp(earliest, latest);
        let sums = add_to_rollups(&record, admitted_at_us, rollups);
        let caller = record.caller.unwrap_or_default();
        let last = record.attempts.last();
        let planned = record.decision.as_ref().map_or("", |d| d.model.as_str());
        Ok(Self {
            admitted_at_us,
            request_id: fit(&record.request_id),
            team: fit(&caller.team),
            virtual_key: fit(&caller.key),
            end_user: fit(&caller.end_user),
            model: fit(last.map_or(planned, |attempt| &attempt.model)),
            provider: fit(last.map_or("", |attempt| &attempt.provider)),
            status: i32::try_from(record.status).unwrap_or(i32::MAX),
            ended: record.end,
            price_version: signed(record.price_version),
            sums,
            charges: record.charges,
        })
    }
}

fn add_to_rollups(record: &UsageRecord, admitted_at_us: i64, rollups: &mut Rollups) -> RollupSums {
    let mut total = RollupSums::default();
    let Some((last, earlier)) = record.attempts.split_last() else {
        total.requests = 1;
        let decision = record.decision.as_ref();
        let planned = metering::Attempt {
            model: decision.map_or_else(String::new, |d| d.model.clone()),
            ..metering::Attempt::default()
        };
        rollups.add(
            attempt_key(record, admitted_at_us, &planned, &total),
            &total,
        );
        return total;
    };
    let counted = earlier
        .iter()
        .map(|attempt| (attempt, 0))
        .chain([(last, 1)]);
    for (attempt, requests) in counted {
        let mut sums = attempt_sums(attempt);
        sums.requests = requests;
        total.add(&sums);
        rollups.add(attempt_key(record, admitted_at_us, attempt, &sums), &sums);
    }
    total
}

/// The row that an attempt with these sums is counted in.
pub(super) fn attempt_key(
    record: &UsageRecord,
    admitted_at_us: i64,
    attempt: &metering::Attempt,
    sums: &RollupSums,
) -> RollupKey {
    let caller = record.caller.as_ref();
    let decision = record.decision.as_ref();
    RollupKey {
        slot_s: super::rollup::slot_of(admitted_at_us),
        team: fit(caller.map_or("", |c| &c.team)),
        virtual_key: fit(caller.map_or("", |c| &c.key)),
        rule: fit(decision.map_or("", |d| &d.rule)),
        model: fit(&attempt.model),
        provider: fit(&attempt.provider),
        upstream_model: fit(&attempt.upstream_model),
        estimated: sums.estimated_attempts > 0,
        price_version: signed(record.price_version),
    }
}

/// What an attempt adds to its row, which counts no request.
pub(super) fn attempt_sums(attempt: &metering::Attempt) -> RollupSums {
    let usage = attempt.usage.as_ref();
    let tokens = |of: fn(&metering::Usage) -> u64| usage.map_or(0, |u| signed(of(u)));
    let estimated = usage.is_some_and(|u| u.source == i32::from(UsageSource::Estimated));
    let has_tokens = usage.is_some_and(|u| u.input > 0 || u.output > 0);
    let unpriced = if attempt.costs.is_empty() {
        has_tokens
    } else {
        attempt
            .costs
            .iter()
            .any(|cost| cost.tokens > 0 && cost.cost_nusd.is_none())
    };
    RollupSums {
        requests: 0,
        attempts: 1,
        input_tokens: tokens(|u| u.input),
        cached_input_tokens: tokens(|u| u.cached_input),
        cache_write_tokens: tokens(|u| u.cache_write),
        output_tokens: tokens(|u| u.output),
        reasoning_tokens: tokens(|u| u.reasoning),
        estimated_attempts: i64::from(estimated),
        unpriced_attempts: i64::from(unpriced),
        cost_nusd: attempt
            .costs
            .iter()
            .filter_map(|cost| cost.cost_nusd)
            .fold(0, |sum, cost| sum.saturating_add(signed(cost))),
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Postgres holds no NUL in a text, and an index entry must stay small.
fn fit(text: &str) -> String {
    let mut fitted = String::new();
    for letter in text.chars() {
        let letter = if letter == '\0' {
            char::REPLACEMENT_CHARACTER
        } else {
            letter
        };
        if fitted.len() + letter.len_utf8() > MAX_TEXT_BYTES {
            break;
        }
        fitted.push(letter);
    }
    fitted
}

#[cfg(test)]
mod tests;
