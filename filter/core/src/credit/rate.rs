//! A share of a rate, spent by the clock (the generic cell rate algorithm).
//!
//! The node has a clock of its own for each account: it counts nanoseconds, and runs as fast as the
//! share is large. With all of the limit it runs like any clock, with a third of it a third as fast.
//! A unit costs the time in which the whole limit allows one; what was spent is a moment on that
//! clock. So when the share changes only the clock's speed does: what was spent before stays spent,
//! to the unit, and a worker with the old speed in hand loses nobody's spending.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

/// Spends a share of a rate.
#[derive(Debug)]
pub(crate) struct Rate {
    clock: ArcSwap<Clock>,
    /// On the clock: until when it is spent.
    spent_ns: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    base_us: u64,
    base_ns: u64,
    share: u64,
    pace: Pace,
}

/// The whole limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) window_us: u64,
    pub(crate) burst: u64,
    pub(crate) amount: u64,
}

/// Why a rate did not allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slow {
    /// There is no share at all.
    NoShare,
    /// Later.
    In { us: u64 },
    /// More than the limit allows at any time.
    Never,
}

// === impl Rate ===

impl Rate {
    pub(crate) fn new(pace: Pace) -> Self {
        let clock = Clock {
            base_us: 0,
            base_ns: 0,
            share: 0,
            pace,
        };
        Self {
            clock: ArcSwap::from_pointee(clock),
            spent_ns: AtomicU64::new(0),
        }
    }

    /// Changes the share, or the whole limit, from `now_us` on. Where the limit changes, what is owed
    /// keeps its length in time. For the agent alone.
    pub(crate) fn set(&self, pace: Pace, share: u64, now_us: u64) {
        let old = **self.clock.load();
        if (old.share, old.pace) != (share, pace) {
            self.clock.store(Arc::new(Clock {
                base_us: now_us.max(old.base_us),
                base_ns: old.at(now_us),
                share,
                pace,
            }));
        }
    }

    pub(crate) fn spent_ns(&self) -> u64 {
        self.spent_ns.load(Ordering::Acquire)
    }

    /// Whether the share is all of the limit.
    pub(crate) fn is_whole(&self) -> bool {
        let clock = self.clock.load();
        clock.share >= clock.pace.amount
    }

    /// Spends `units`; gives what they cost on the clock.
    pub(crate) fn take(&self, units: u64, now_us: u64) -> Result<u64, Slow> {
        let clock = self.clock.load();
        if clock.share == 0 {
            return Err(Slow::NoShare);
        }
        if units > clock.pace.amount.max(clock.pace.burst) {
            return Err(Slow::Never);
        }
        let (now_ns, cost_ns) = (clock.at(now_us), clock.cost_ns(units));
        // One that costs more than the burst still passes when nothing is owed.
        let room_ns = clock.burst_ns().saturating_sub(cost_ns);
        let mut spent_ns = self.spent_ns.load(Ordering::Acquire);
        loop {
            let owed_ns = spent_ns.saturating_sub(now_ns);
            if owed_ns > room_ns {
                let us = clock.real_us(owed_ns - room_ns);
                return Err(Slow::In { us });
            }
            let after = spent_ns.max(now_ns).saturating_add(cost_ns);
            match self.spent_ns.compare_exchange_weak(
                spent_ns,
                after,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(cost_ns),
                Err(now) => spent_ns = now,
            }
        }
    }

    /// Spends `units` whether or not it is time; gives what they cost on the clock.
    pub(crate) fn take_anyway(&self, units: u64, now_us: u64) -> u64 {
        let clock = self.clock.load();
        let (now_ns, cost_ns) = (clock.at(now_us), clock.cost_ns(units));
        self.spent_ns
            .update(Ordering::AcqRel, Ordering::Acquire, |spent_ns| {
                spent_ns.max(now_ns).saturating_add(cost_ns)
            });
        cost_ns
    }

    /// What `units` cost on the clock.
    pub(crate) fn cost_ns(&self, units: u64) -> u64 {
        self.clock.load().cost_ns(units)
    }

    /// Corrects a spending of `taken_ns` to `used_ns`.
    pub(crate) fn correct(&self, taken_ns: u64, used_ns: u64) {
        self.spent_ns
            .update(Ordering::AcqRel, Ordering::Acquire, |spent_ns| {
                spent_ns.saturating_add(used_ns).saturating_sub(taken_ns)
            });
    }

    /// Units that may come at once now; microseconds until that is all of the share's burst.
    pub(crate) fn left(&self, now_us: u64) -> (u64, u64) {
        let clock = self.clock.load();
        let owed_ns = self
            .spent_ns
            .load(Ordering::Acquire)
            .saturating_sub(clock.at(now_us));
        let units = clock.units(clock.burst_ns().saturating_sub(owed_ns));
        let at_least = u64::from(owed_ns == 0 && clock.share > 0);
        (units.max(at_least), clock.real_us(owed_ns))
    }
}

// === impl Clock ===

impl Clock {
    /// The clock's time at `now_us`. Never behind its base.
    fn at(&self, now_us: u64) -> u64 {
        let ns = u128::from(now_us.saturating_sub(self.base_us)) * 1_000;
        let run = ns * u128::from(self.share) / u128::from(self.pace.amount.max(1));
        self.base_ns.saturating_add(narrow(run))
    }

    /// The real time in which the clock runs on by `ns`, rounded up.
    fn real_us(&self, ns: u64) -> u64 {
        let share = u128::from(self.share.max(1));
        narrow((u128::from(ns) * u128::from(self.pace.amount)).div_ceil(share * 1_000))
    }

    fn cost_ns(&self, units: u64) -> u64 {
        let amount = u128::from(self.pace.amount.max(1));
        narrow((u128::from(units) * self.window_ns()).div_ceil(amount))
    }

    fn units(&self, ns: u64) -> u64 {
        narrow(u128::from(ns) * u128::from(self.pace.amount) / self.window_ns().max(1))
    }

    /// The share's part of the burst.
    fn burst_ns(&self) -> u64 {
        let amount = u128::from(self.pace.amount.max(1));
        let whole = u128::from(self.pace.burst) * self.window_ns() / amount;
        narrow(u128::from(narrow(whole)) * u128::from(self.share) / amount)
    }

    fn window_ns(&self) -> u128 {
        u128::from(self.pace.window_us) * 1_000
    }
}

fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}
