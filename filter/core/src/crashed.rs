//! Settles an exchange whose process died before it could.
//!
//! What is known is what the open table kept; see [`Exchange::write_open`]. Nothing of the config
//! is needed: prices, units and bounds were pinned when an attempt began.
//!
//! [`Exchange::write_open`]: crate::exchange::Exchange::write_open

use filter_llm::price::PriceAt;
use filter_llm::usage::Usage;
use proto::config::v1::{LimitUnit, Price};
use proto::metering::v1::{self as wire, Attempt, Charge, End, UsageRecord, Verdict};

use crate::attempt::Glimpse;
use crate::config::prices::terms_of;
use crate::exchange::settle::{Tier, class_costs, completed, write_usage};
use crate::exchange::{OpenCharge, OpenTerms};
use crate::limits::{Most, Used, used};

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
    /// What was reported of the output is only its beginning.
    pub is_output_early: bool,
    /// Further attempts of which no more is known than that they had this one's prompt. Their
    /// output is among this one's.
    pub more: u64,
    /// The price that held when it began.
    pub price: Option<Price>,
    /// The one tier that it was to be served in; empty: any.
    pub asked_tier: String,
    /// What strict limits count on where nobody says what it used.
    pub most: Most,
    /// What it held of its limits; `None`: what the exchange was admitted with.
    pub charges: Option<Vec<OpenCharge>>,
}

/// Completes `record`, which has no attempts yet: `end = crash`, what providers reported, estimates
/// for what they may have done, and what the limits are charged for it.
///
/// Durations are those that are known, and so at most as long as the truth.
pub fn settle(record: &mut UsageRecord, terms: &OpenTerms<'_>, attempts: Vec<CrashedAttempt>) {
    record.end = End::Crash.into();
    let units = terms.units.iter().copied();
    let units = units.chain(std::iter::repeat(LimitUnit::Unspecified));
    let admitted: Vec<(Charge, LimitUnit)> = std::mem::take(&mut record.charges)
        .into_iter()
        .zip(units)
        .collect();
    // The first one to hold what the exchange was admitted with; if nothing began, that is nobody.
    record
        .charges
        .extend(admitted.iter().map(|(charge, _)| charge.clone()));
    for crashed in attempts {
        let own = crashed.charges.clone();
        let (attempt, used) = settle_attempt(crashed, terms, record.admitted_at_us);
        record.attempts.push(attempt);
        match own {
            None => {
                for (charge, (open, unit)) in record.charges.iter_mut().zip(&admitted) {
                    let settled = settled(&used, open.reserved, *unit);
                    charge.settled = charge.settled.saturating_add(settled);
                }
            }
            Some(own) => add_charges(&mut record.charges, &own, &used),
        }
    }
    let comes_to_something = |charge: &Charge| charge.reserved > 0 || charge.settled > 0;
    record.charges.retain(comes_to_something);
    let lasted_us = |attempt: &Attempt| {
        let noted_us = attempt.duration_us.max(attempt.first_content_us);
        attempt.started_us.saturating_add(noted_us)
    };
    record.duration_us = record.attempts.iter().map(lasted_us).max().unwrap_or(0);
}

/// The attempt as the ledger is to have it, and what it used.
fn settle_attempt(
    crashed: CrashedAttempt,
    terms: &OpenTerms<'_>,
    admitted_at_us: i64,
) -> (Attempt, Used) {
    let mut attempt = crashed.attempt;
    let started_us = u64::try_from(admitted_at_us).unwrap_or(0);
    let started_s = started_us.saturating_add(attempt.started_us) / 1_000_000;
    if attempt.verdict() == Verdict::Unspecified {
        // Half a request is no request.
        let is_unsent = !crashed.is_sent && attempt.status == 0;
        let verdict = if is_unsent {
            Verdict::NotBilled
        } else {
            Verdict::Unknown
        };
        attempt.verdict = verdict.into();
    }
    if crashed.more > 0 && attempt.verdict() == Verdict::NotBilled {
        // The others may be.
        attempt.verdict = Verdict::Unknown.into();
    }
    let glimpse = Glimpse {
        text_bytes: terms.text_bytes,
        output_bytes: (crashed.visible_bytes, crashed.reasoning_bytes),
        reported: crashed.reported,
        is_output_early: crashed.is_output_early,
        most: crashed.most,
    };
    let mut metered = glimpse.metered(attempt.verdict(), terms.estimates);
    if crashed.more > 0 && terms.estimates {
        metered = glimpse.with_more(metered, crashed.more);
    }
    let price = crashed.price.as_ref().map(terms_of);
    let price = price.as_ref().map(|price| PriceAt {
        price,
        unix_s: started_s,
        next: None,
    });
    let usage = attempt.usage.get_or_insert_default();
    let said = std::mem::take(&mut usage.service_tier);
    let tier = Tier {
        said: &said,
        asked: &crashed.asked_tier,
    };
    let (tokens, tier) = completed(&metered, tier, price);
    write_usage(usage, &metered, &tokens, tier);
    attempt.costs = class_costs(&tokens, price, tier).collect();
    let used = Used {
        usage: tokens,
        cost_nusd: known_nusd(&attempt.costs),
    };
    (attempt, used)
}

/// As settling sums it: classes without a price cost nothing.
fn known_nusd(costs: &[wire::ClassCost]) -> u64 {
    costs.iter().fold(0, |sum, cost| {
        sum.saturating_add(cost.cost_nusd.unwrap_or(0))
    })
}

/// What an attempt is charged in a limit's unit: what its record says.
fn settled(of: &Used, reserved: u64, unit: LimitUnit) -> u64 {
    match unit {
        // A build that knew more units wrote it.
        LimitUnit::Unspecified => reserved,
        LimitUnit::Requests => reserved.min(1),
        unit => used(unit, of),
    }
}

/// Charges a later attempt for what it held itself. Attempts that met at the same bucket are
/// charged as one.
fn add_charges(charges: &mut Vec<Charge>, own: &[OpenCharge], of: &Used) {
    for open in own {
        let settled = settled(of, open.charge.reserved, open.unit);
        let place = match open.same_as {
            Some(at) => Some(usize::from(at)),
            None => charges
                .iter()
                .position(|charge| is_same(charge, &open.charge)),
        };
        match place.and_then(|at| charges.get_mut(at)) {
            Some(charge) => {
                charge.reserved = charge.reserved.saturating_add(open.charge.reserved);
                charge.settled = charge.settled.saturating_add(settled);
            }
            None if open.same_as.is_some() => {}
            None => charges.push(Charge {
                settled,
                ..open.charge.clone()
            }),
        }
    }
}

fn is_same(a: &Charge, b: &Charge) -> bool {
    (&a.limit, &a.subject, a.window_start_s, a.epoch)
        == (&b.limit, &b.subject, b.window_start_s, b.epoch)
}

#[cfg(test)]
mod tests;
