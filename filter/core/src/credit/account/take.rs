//! Taking from an account, by workers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::rate::{Rate, Slow};
use super::super::{Cause, Lease, Mode, Refusal, Span};
use super::Account;

/// Where a part of a reservation comes from.
#[derive(Debug)]
pub(crate) enum Held {
    /// A lease.
    Lease(Arc<Lease>),
    /// A share, for so much on its clock.
    Share { cost_ns: u64 },
    /// Nowhere: let through, and charged.
    Uncovered,
    /// Nowhere: the control plane knows no such limit. Not charged.
    Exempt,
}

/// What to do about missing credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Ask the control plane.
    Ask,
    /// It was asked, and the time to wait is over.
    Over,
}

impl Account {
    /// Takes `amount`, or says why not.
    pub(crate) fn take(
        self: &Arc<Self>,
        amount: u64,
        mode: Mode,
        now_us: u64,
        patience: Patience,
    ) -> Result<Held, Cause> {
        if let Some(held) = self.take_local(amount, now_us) {
            return Ok(held);
        }
        if self.is_exempt(now_us) {
            return Ok(Held::Exempt);
        }
        if mode == Mode::Warn || amount == 0 {
            if amount > 0 {
                self.miss(amount);
            }
            return Ok(self.take_anyway(amount, now_us));
        }
        if self.common.is_usable(now_us)
            && let Some(rate) = &self.rate
        {
            return match rate.take(amount, now_us) {
                Ok(cost_ns) => Ok(Held::Share { cost_ns }),
                Err(slow) => self.slow(slow, amount, now_us, patience),
            };
        }
        self.scarce(amount, now_us, patience)
    }

    /// Takes `amount` from credit that this node has, if it may be used.
    pub(crate) fn take_local(self: &Arc<Self>, amount: u64, now_us: u64) -> Option<Held> {
        if !self.common.is_usable(now_us) {
            return None;
        }
        if let Some(rate) = &self.rate {
            let cost_ns = rate.take(amount, now_us).ok()?;
            return Some(Held::Share { cost_ns });
        }
        let lease = self.open_lease(now_us)?;
        let remains = lease.take(amount)?;
        self.notice(remains);
        Some(Held::Lease(lease))
    }

    /// Takes `amount` whether or not it is there.
    pub(crate) fn take_anyway(self: &Arc<Self>, amount: u64, now_us: u64) -> Held {
        if let Some(rate) = &self.rate {
            let cost_ns = rate.take_anyway(amount, now_us);
            return Held::Share { cost_ns };
        }
        match self.open_lease(now_us) {
            Some(lease) if self.common.is_usable(now_us) && lease.take_anyway(amount) => {
                Held::Lease(lease)
            }
            _ => Held::Uncovered,
        }
    }

    /// Says why `amount` can't be had, without taking anything; none: it could be.
    pub(crate) fn lacks(self: &Arc<Self>, amount: u64, now_us: u64) -> Option<Cause> {
        if self.rate.is_some() || amount == 0 || self.is_exempt(now_us) {
            return None;
        }
        let available = self.available(now_us);
        if self.common.is_usable(now_us) && i128::from(available) >= i128::from(amount) {
            return None;
        }
        if let Some(refused) = self.refused(amount, available, now_us, Patience::Ask) {
            return Some(refused);
        }
        self.miss(amount);
        Some(Cause::Lacking)
    }

    pub(crate) fn is_exempt(&self, now_us: u64) -> bool {
        now_us < self.exempt_until_us.load(Ordering::Acquire)
    }

    /// Lets the agent know what is left, if it wants to.
    pub(crate) fn notice(self: &Arc<Self>, remains: i64) {
        if remains < self.low.load(Ordering::Relaxed) {
            self.mark();
        }
    }

    /// Something came back that those who wait may have.
    pub(crate) fn freed(self: &Arc<Self>) {
        if !self.queue.is_empty() {
            self.mark();
        }
    }

    /// The lease to use at `now_us`.
    pub(crate) fn open_lease(&self, now_us: u64) -> Option<Arc<Lease>> {
        let is_open = |lease: &Arc<Lease>| lease.is_open(now_us);
        let current = self.current.load();
        if let Some(lease) = current.as_ref().filter(|lease| is_open(lease)) {
            return Some(Arc::clone(lease));
        }
        self.next.load_full().filter(is_open)
    }

    pub(crate) fn available(&self, now_us: u64) -> i64 {
        self.open_lease(now_us).map_or(0, |lease| lease.available())
    }

    /// What `units` cost on a rate's clock.
    pub(crate) fn cost_ns(&self, units: u64) -> u64 {
        self.rate.as_ref().map_or(0, |rate| rate.cost_ns(units))
    }

    /// Corrects what was spent of a share.
    pub(crate) fn correct(&self, taken_ns: u64, used_ns: u64) {
        if let Some(rate) = &self.rate {
            rate.correct(taken_ns, used_ns);
        }
    }

    fn slow(
        self: &Arc<Self>,
        slow: Slow,
        amount: u64,
        now_us: u64,
        patience: Patience,
    ) -> Result<Held, Cause> {
        let denial = self.denial.load();
        let denial = denial
            .as_ref()
            .filter(|denial| now_us < denial.valid_until_us.max(denial.retry_at_us));
        let terms = self.terms.load();
        match slow {
            Slow::Never => Err(Cause::Refused {
                kind: Refusal::Spent,
                retry_in_us: 0,
                left: i64::try_from(terms.amount).unwrap_or(i64::MAX),
                resets_in_us: None,
            }),
            Slow::In { us } => {
                let is_whole = self.rate.as_ref().is_some_and(Rate::is_whole);
                if is_whole || denial.is_some() || patience == Patience::Over {
                    return Err(Cause::TooFast { retry_in_us: us });
                }
                self.miss(amount);
                Err(Cause::Lacking)
            }
            // Others may be about to give some of theirs back.
            Slow::NoShare => self.scarce(amount, now_us, patience),
        }
    }

    fn scarce(
        self: &Arc<Self>,
        amount: u64,
        now_us: u64,
        patience: Patience,
    ) -> Result<Held, Cause> {
        let is_usable = self.common.is_usable(now_us);
        let available = if is_usable { self.available(now_us) } else { 0 };
        if let Some(refused) = self.refused(amount, available, now_us, patience) {
            return Err(refused);
        }
        self.miss(amount);
        if is_usable && patience == Patience::Ask {
            return Err(Cause::Lacking);
        }
        self.take_allowance(amount).ok_or(Cause::Unavailable)
    }

    fn refused(
        &self,
        amount: u64,
        available: i64,
        now_us: u64,
        patience: Patience,
    ) -> Option<Cause> {
        let denial = self.denial.load();
        let denial = denial.as_ref()?;
        let is_refused = match patience {
            Patience::Ask => denial.refuses(amount, available, now_us),
            Patience::Over => denial.is_last_word(amount, available, now_us),
        };
        is_refused.then(|| denial.cause(now_us))
    }

    fn take_allowance(&self, amount: u64) -> Option<Held> {
        let allowance = self.terms.load().on_unavailable_allowance?;
        let mut lease = self.outage.load_full();
        if lease.is_none() {
            let fresh = Arc::new(Lease::new(Span {
                epoch: 0,
                window_start_s: -1,
                starts_at_us: 0,
                ends_at_us: u64::MAX,
            }));
            fresh.raise(allowance, 0);
            // Of several workers one wins, so that there is one allowance.
            let before = self
                .outage
                .compare_and_swap(&None::<Arc<Lease>>, Some(fresh));
            lease = self.outage.load_full();
            drop(before);
        }
        let lease = lease?;
        lease.take(amount)?;
        Some(Held::Lease(lease))
    }

    /// Tells the agent that `amount` was wanted and not there.
    pub(crate) fn miss(self: &Arc<Self>, amount: u64) {
        self.missed.fetch_max(amount, Ordering::AcqRel);
        self.mark();
    }
}
