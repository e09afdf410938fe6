//! What an attempt holds of its limits, until it is settled.

use std::sync::Arc;

use proto::config::v1::LimitUnit;

use super::{Standings, tried};
use crate::attempt::Attempt;
use crate::config::Compiled;
use crate::config::limits::Limit;
use crate::credit::{Charged, Need, Reservation};
use crate::limits::{Most, TargetStats};

/// No limit's index.
const NONE: usize = usize::MAX;

/// What one attempt holds of its limits. Dropping it gives everything back.
#[derive(Debug)]
pub(crate) struct Grip {
    /// The attempt that it is for; 0: none has begun on it.
    pub(crate) attempt: u32,
    /// Indexes of limits, parallel to the needs; [`NONE`]: given back.
    limits: Vec<usize>,
    needs: Vec<Need>,
    reservation: Reservation,
    /// Units of the charges that it was made with, in their order.
    units: Vec<LimitUnit>,
    /// What its attempt is taken to have used where nobody says so.
    pub(crate) most: Most,
    pub(crate) stats: Option<Arc<TargetStats>>,
}

impl Grip {
    pub(super) fn new(
        config: &Compiled,
        limits: Vec<usize>,
        needs: Vec<Need>,
        reservation: Reservation,
        stats: Option<Arc<TargetStats>>,
    ) -> Self {
        let unit_of = |need: usize| {
            let limit = limits
                .get(need)
                .and_then(|&index| config.limits.limit(index));
            limit.map_or(LimitUnit::Unspecified, |limit| limit.unit)
        };
        let charges = reservation.open_charges();
        let units = charges.map(|charged| unit_of(charged.need)).collect();
        Self {
            attempt: 0,
            limits,
            needs,
            reservation,
            units,
            most: Most::default(),
            stats,
        }
    }

    /// Whether it holds a request or a slot of this limit.
    pub(super) fn counts(&self, index: usize) -> bool {
        self.limits.contains(&index)
    }

    /// What would be charged if nothing came to pass, nothing being settled yet.
    pub(crate) fn open_charges(&self) -> impl Iterator<Item = Charged> + '_ {
        self.reservation.open_charges()
    }

    /// Units of the charges that it was made with.
    pub(crate) fn units(&self) -> &[LimitUnit] {
        &self.units
    }

    pub(crate) fn stand(&self, config: &Compiled, standings: &mut Standings, now_us: u64) {
        standings.add(config, &self.limits, &self.needs, now_us);
    }

    /// The limits that are metered as an answer comes, with what is reserved on each.
    pub(crate) fn metered<'a>(
        &'a self,
        config: &'a Compiled,
    ) -> impl Iterator<Item = (usize, &'a Limit, u64)> {
        let limits = self.limits.iter().enumerate();
        limits.filter_map(|(need, &index)| {
            let limit = config.limits.limit(index)?;
            let is_metered = limit.is_metered();
            is_metered.then(|| (need, limit, self.reservation.reserved(need)))
        })
    }

    /// Reserves more for a need, of what this node has.
    pub(crate) fn extend(&mut self, need: usize, more: u64, now_us: u64) -> bool {
        self.reservation.extend(need, more, now_us)
    }

    /// Gives back what its attempt, over by now, has not used. Requests and slots are kept if an
    /// attempt has begun that falls under them.
    fn release(
        &mut self,
        config: &Compiled,
        attempts: &[Attempt],
        rule: Option<usize>,
        used: &dyn Fn(&Attempt, LimitUnit) -> u64,
    ) {
        let attempt = begun(attempts, self.attempt);
        for (need, index) in self.limits.iter_mut().enumerate() {
            let Some(limit) = config.limits.limit(*index) else {
                continue;
            };
            if limit.is_metered() {
                let used = attempt.map_or(0, |attempt| used(attempt, limit.unit));
                self.reservation.shrink(need, used);
            } else if !is_tried(config, limit, attempts, rule) {
                self.reservation.shrink(need, 0);
                *index = NONE;
            }
        }
    }

    /// Ends it: what its attempt used, and what is charged for it.
    pub(crate) fn settle(
        self,
        config: &Compiled,
        attempts: &[Attempt],
        rule: Option<usize>,
        used: &dyn Fn(&Attempt, LimitUnit) -> u64,
    ) -> impl Iterator<Item = Charged> {
        let Self {
            attempt: number,
            limits,
            reservation,
            ..
        } = self;
        let attempt = begun(attempts, number);
        reservation.settle(&mut |need| {
            let limit = limits
                .get(need)
                .and_then(|&index| config.limits.limit(index));
            match limit {
                Some(limit) if limit.is_metered() => {
                    attempt.map_or(0, |attempt| used(attempt, limit.unit))
                }
                Some(limit) => u64::from(is_tried(config, limit, attempts, rule)),
                None => 0,
            }
        })
    }
}

/// Gives back what the attempts that are over have not used.
pub(crate) fn release_left(
    grips: &mut [Grip],
    config: &Compiled,
    attempts: &[Attempt],
    rule: Option<usize>,
    used: &dyn Fn(&Attempt, LimitUnit) -> u64,
) {
    for grip in grips {
        grip.release(config, attempts, rule, used);
    }
}

fn begun(attempts: &[Attempt], number: u32) -> Option<&Attempt> {
    let attempt = attempts.iter().find(|attempt| attempt.number == number);
    attempt.filter(|attempt| attempt.has_begun)
}

/// Whether an attempt has begun that falls under a limit.
fn is_tried(config: &Compiled, limit: &Limit, attempts: &[Attempt], rule: Option<usize>) -> bool {
    let mut begun = attempts.iter().filter(|attempt| attempt.has_begun);
    begun.any(|attempt| {
        tried(config, attempt.planned, rule).is_some_and(|tried| limit.selects(tried))
    })
}
