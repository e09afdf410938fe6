//! Filling an account, by the agent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::{Denial, Lease, Refusal};
use super::{Account, Lack, pace};

impl Account {
    /// The lease of this window.
    #[must_use]
    pub fn current(&self) -> Option<Arc<Lease>> {
        self.current.load_full()
    }

    /// The lease of the next window.
    #[must_use]
    pub fn next(&self) -> Option<Arc<Lease>> {
        self.next.load_full()
    }

    /// Puts `lease` in the place of the current one, which is to be retired by the caller.
    pub fn set_current(&self, lease: Option<Arc<Lease>>) {
        self.current.store(lease);
    }

    /// Puts `lease` in the place of the next window's.
    pub fn set_next(&self, lease: Option<Arc<Lease>>) {
        self.next.store(lease);
    }

    /// A rate runs on what its lease has now, and on the limit's present terms. To be called after
    /// each change of either.
    pub fn follow_share(&self, now_us: u64) {
        let (Some(rate), Some(pace)) = (&self.rate, pace(self.terms.load().kind)) else {
            return;
        };
        let lease = self.current.load();
        let share = lease.as_ref().map_or(0, |lease| lease.available().max(0));
        rate.set(pace, share.unsigned_abs(), now_us);
    }

    /// Keeps a refusal. One for a smaller request that still counts says more, and is kept instead.
    pub fn deny(&self, denial: Denial, now_us: u64) {
        let kept = denial.after(self.denial(), now_us);
        self.denial.store(Some(Arc::new(kept)));
    }

    /// The last refusal is over.
    pub fn clear_denial(&self) {
        self.denial.store(None);
    }

    /// The last refusal.
    #[must_use]
    pub fn denial(&self) -> Option<Denial> {
        self.denial.load().as_deref().copied()
    }

    /// The control plane knows no such limit: nothing is needed or charged until `until_us`.
    pub fn exempt_until(&self, until_us: u64) {
        self.exempt_until_us.store(until_us, Ordering::Release);
    }

    /// How the bucket stands by the control plane's word.
    pub fn tell(&self, amount: u64, left: i64) {
        self.told_amount.store(amount, Ordering::Relaxed);
        self.told_left.store(left, Ordering::Relaxed);
    }

    /// An outage is over: the next one has an allowance of its own.
    pub fn end_outage(&self) {
        self.outage.store(None);
    }

    /// Whether an outage's allowance has been touched.
    #[must_use]
    pub fn is_in_outage(&self) -> bool {
        self.outage.load().is_some()
    }

    /// Rises whenever a rate is spent; 0 for other kinds.
    #[must_use]
    pub fn activity(&self) -> u64 {
        self.rate.as_ref().map_or(0, |rate| rate.spent_ns())
    }

    /// Asks to be told when less than `low` is available.
    pub fn watch(&self, low: i64) {
        self.low.store(low, Ordering::Relaxed);
    }

    /// What is lacking at `now_us`; misses are told once, those who wait each time. Whoever has been
    /// refused is passed over until it is time to ask again.
    #[must_use]
    pub fn take_lack(&self, now_us: u64) -> Lack {
        let missed = self.missed.swap(0, Ordering::AcqRel);
        let own = self.available(now_us);
        let denial = self.denial().filter(|denial| now_us < denial.retry_at_us);
        let is_refused = |need| denial.is_some_and(|denial: Denial| denial.is_about(need, own));
        let waiting = self.queue.needs(|need| !is_refused(need));
        let missed = if is_refused(missed) { 0 } else { missed };
        match waiting {
            Some((first, all)) => Lack {
                first,
                all: all.max(missed),
                is_urgent: true,
            },
            None => Lack {
                first: missed,
                all: missed,
                is_urgent: missed > 0,
            },
        }
    }

    /// Whether a request waits.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Wakes those whose need is there, in order, and those whom nothing but the next window helps.
    /// Nothing is reserved for them: one who is woken may be gone.
    pub fn wake_waiters(&self, now_us: u64) {
        if self.queue.is_empty() {
            return;
        }
        let is_usable = self.common.is_usable(now_us);
        let own = if is_usable { self.available(now_us) } else { 0 };
        let denial = self.denial();
        let is_refused = |need| {
            denial.is_some_and(|denial: Denial| {
                now_us < denial.retry_at_us && denial.is_about(need, own)
            })
        };
        let is_spent = |need| {
            denial.is_some_and(|denial: Denial| {
                denial.kind == Refusal::Spent && denial.refuses(need, own, now_us)
            })
        };
        // A share is spent by the clock: each sees for itself how it stands.
        let is_for_all = self.rate.is_some() || self.is_exempt(now_us);
        let mut unspoken = i128::from(own);
        let mut is_blocked = false;
        self.queue.wake(|need, is_awake| {
            if is_for_all || is_spent(need) {
                return true;
            }
            // One who is awake may not have reserved yet. If it has, or went away, it leaves the
            // queue, and that brings the agent here again.
            let is_there = unspoken >= i128::from(need);
            if is_awake || (is_there && !is_blocked) {
                unspoken -= i128::from(need);
            }
            // Nor does one who was refused hold up those behind, whose smaller needs may be met.
            is_blocked |= !is_there && !is_awake && !is_refused(need);
            is_there && !is_blocked
        });
    }

    /// Wakes all who wait: something that they can't see has changed.
    pub fn wake_all(&self) {
        self.queue.wake(|_, _| true);
    }
}
