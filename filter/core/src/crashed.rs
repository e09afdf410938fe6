//! Settles an exchange whose process died before it could.
//!
//! What is known is what the open table kept; see [`Exchange::write_open`]. Nothing of the config
//! is needed: prices, units and the prompt's length were pinned when the exchange was admitted.
//!
//! [`Exchange::write_open`]: crate::exchange::Exchange::write_open

use filter_llm::price::PriceAt;
use filter_llm::usage::Usage;
use proto::config::v1::{LimitUnit, Price};
use proto::metering::v1::{Attempt, Charge, End, UsageRecord, UsageSource, Verdict};

use crate::attempt::Metered;
use crate::config::prices::terms_of;
use crate::exchange::OpenTerms;
use crate::exchange::settle::{class_costs, total_nusd, write_tokens};

/// An attempt as it was last noted. Its verdict is unspecified if that was not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrashedAttempt {
    /// Without usage, but for the tier that was served, and without costs.
    pub attempt: Attempt,
    /// The whole request was handed on.
    pub is_sent: bool,
    /// Bytes of output, reasoning included.
    pub visible_bytes: u64,
    /// Of these, bytes of reasoning.
    pub reasoning_bytes: u64,
    /// As reported.
    pub reported: Option<Usage>,
    /// The price that held when it began.
    pub price: Option<Price>,
}

/// Completes `record`, which has no attempts yet: `end = crash`, what providers reported, estimates
/// for what they may have done, and what the limits are charged for it.
///
/// Durations are those that are known, and so at most as long as the truth.
pub fn settle(record: &mut UsageRecord, terms: &OpenTerms<'_>, attempts: Vec<CrashedAttempt>) {
    record.end = End::Crash.into();
    record.attempts = attempts
        .into_iter()
        .map(|crashed| settle_attempt(crashed, terms, record.admitted_at_us))
        .collect();
    let lasted_us = |attempt: &Attempt| {
        let noted_us = attempt.duration_us.max(attempt.first_content_us);
        attempt.started_us.saturating_add(noted_us)
    };
    record.duration_us = record.attempts.iter().map(lasted_us).max().unwrap_or(0);
    let mut charges = std::mem::take(&mut record.charges);
    let units = terms.units.iter().copied().map(Some);
    for (charge, unit) in charges.iter_mut().zip(units.chain(std::iter::repeat(None))) {
        charge.settled = settled(record, charge, unit);
    }
    record.charges = charges;
}

fn settle_attempt(crashed: CrashedAttempt, terms: &OpenTerms<'_>, admitted_at_us: i64) -> Attempt {
    let CrashedAttempt {
        mut attempt,
        is_sent,
        visible_bytes,
        reasoning_bytes,
        reported,
        price,
    } = crashed;
    let started_us = u64::try_from(admitted_at_us).unwrap_or(0);
    let started_s = started_us.saturating_add(attempt.started_us) / 1_000_000;
    if attempt.verdict() == Verdict::Unspecified {
        // Half a request is no request.
        let is_unsent = !is_sent && attempt.status == 0;
        let verdict = if is_unsent {
            Verdict::NotBilled
        } else {
            Verdict::Unknown
        };
        attempt.verdict = verdict.into();
    }
    let metered = match reported {
        Some(usage) => Metered::reported(usage),
        None if !terms.estimates || attempt.verdict() == Verdict::NotBilled => Metered::NOTHING,
        None => Metered::estimated(terms.text_bytes, visible_bytes, reasoning_bytes),
    };
    let usage = attempt.usage.get_or_insert_default();
    write_tokens(usage, &metered);
    let price = price.as_ref().map(terms_of);
    let price = price.as_ref().map(|price| PriceAt {
        price,
        unix_s: started_s,
        next: None,
    });
    attempt.costs = class_costs(&metered.usage, price, &usage.service_tier).collect();
    attempt
}

/// What a charge comes to, in the limit's unit. An estimate is charged no more than was reserved
/// for it, and what can't be told is charged as it was reserved.
fn settled(record: &UsageRecord, charge: &Charge, unit: Option<LimitUnit>) -> u64 {
    let Some(used) = unit.and_then(|unit| used(record, unit)) else {
        return charge.reserved;
    };
    let of_source = |source: UsageSource| {
        let usages = record.attempts.iter().filter_map(|it| it.usage.as_ref());
        usages.filter(|usage| usage.source() == source).count()
    };
    // Let through without credit, nothing was reserved that could be a bound.
    let is_bounded = charge.epoch != 0 && of_source(UsageSource::Estimated) > 0;
    if is_bounded {
        used.min(charge.reserved)
    } else {
        used
    }
}

/// `None`: the unit is not known, or a price.
fn used(record: &UsageRecord, unit: LimitUnit) -> Option<u64> {
    let sum = |of: fn(&proto::metering::v1::Usage) -> u64| {
        let usages = record.attempts.iter().filter_map(|it| it.usage.as_ref());
        usages.fold(0_u64, |sum, usage| sum.saturating_add(of(usage)))
    };
    match unit {
        LimitUnit::Requests => Some(1),
        LimitUnit::Tokens => Some(sum(|usage| usage.input.saturating_add(usage.output))),
        LimitUnit::InputTokens => Some(sum(|usage| usage.input)),
        LimitUnit::UncachedInputTokens => {
            Some(sum(|usage| usage.input.saturating_sub(usage.cached_input)))
        }
        LimitUnit::OutputTokens => Some(sum(|usage| usage.output)),
        LimitUnit::Money => total_nusd(record),
        LimitUnit::Unspecified | LimitUnit::InFlight => None,
    }
}

#[cfg(test)]
mod tests;
