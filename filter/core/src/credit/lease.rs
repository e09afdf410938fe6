//! Credit granted for one bucket (limit, subject, window) in one epoch.
//!
//! At rest, `granted = available + reserved + settled + returned`, where `settled` is not stored:
//! it is what the equation leaves. `granted` and `returned` only rise and are written by the agent
//! alone; workers move credit between `available` and `reserved`.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The largest amount there is; limits are validated to it.
const MAX_AMOUNT: u64 = 1 << 53;

/// A retired lease has this much less in `available` than it says, so that whoever still holds it
/// finds nothing to take. Far beyond what amounts can add up to.
const RETIRED: i64 = 1 << 61;

/// What a lease is for, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The epoch that granted it; 0: nobody did, it is an outage's allowance.
    pub epoch: u64,
    /// Start of its window, Unix seconds; 0: it has one window for ever; -1: the control plane is
    /// to tell by the time of admission.
    pub window_start_s: i64,
    /// Not to be used before.
    pub starts_at_us: u64,
    /// Not to be used from here on; `u64::MAX`: the window never ends.
    pub ends_at_us: u64,
}

/// Credit of one bucket in one epoch. A reservation gives back to the lease that it was made on,
/// current or not.
#[derive(Debug)]
pub struct Lease {
    span: Span,
    available: AtomicI64,
    reserved: AtomicU64,
    granted: AtomicU64,
    returned: AtomicU64,
}

// === impl Lease ===

impl Lease {
    /// A lease without credit.
    #[must_use]
    pub fn new(span: Span) -> Self {
        Self {
            span,
            available: AtomicI64::new(0),
            reserved: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            returned: AtomicU64::new(0),
        }
    }

    /// What it is for.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Whether it may be used at `now_us`.
    #[must_use]
    pub fn is_open(&self, now_us: u64) -> bool {
        (self.span.starts_at_us..self.span.ends_at_us).contains(&now_us)
    }

    /// What can be taken; negative when more was used than granted.
    #[must_use]
    pub fn available(&self) -> i64 {
        unretired(self.available.load(Ordering::Acquire))
    }

    /// Held by open reservations. Never too low; for a moment too high while one is being made.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Acquire)
    }

    /// All that was ever granted.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.granted.load(Ordering::Acquire)
    }

    /// All that was ever returned.
    #[must_use]
    pub fn returned(&self) -> u64 {
        self.returned.load(Ordering::Acquire)
    }

    /// Whether nothing can be taken any more, whatever is granted.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        is_retired(self.available.load(Ordering::Acquire))
    }

    /// Whether nothing is available or reserved.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        // Reserved first: what is given back in between is seen as available.
        self.reserved() == 0 && self.available() <= 0
    }

    /// Raises what was granted to `total`, and what was returned to what the control plane has
    /// counted as returned; a total that is known already changes nothing. Gives what was granted
    /// more.
    pub fn raise(&self, granted_total: u64, returned_total: u64) -> u64 {
        let granted = granted_total.saturating_sub(
            self.granted
                .fetch_max(granted_total.min(MAX_AMOUNT), Ordering::AcqRel),
        );
        let returned = returned_total.saturating_sub(
            self.returned
                .fetch_max(returned_total.min(MAX_AMOUNT), Ordering::AcqRel),
        );
        self.available
            .fetch_add(signed(granted) - signed(returned), Ordering::AcqRel);
        granted
    }

    /// Takes what is available above `keep` out of use and counts it as returned; gives how much.
    /// The credit is gone from here before anyone is told that it was returned.
    pub fn give_back(&self, keep: u64) -> u64 {
        let mut raw = self.available.load(Ordering::Acquire);
        loop {
            let back = unretired(raw) - signed(keep);
            if back <= 0 {
                return 0;
            }
            match self.available.compare_exchange_weak(
                raw,
                raw - back,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    self.returned
                        .fetch_add(back.unsigned_abs(), Ordering::AcqRel);
                    return back.unsigned_abs();
                }
                Err(now) => raw = now,
            }
        }
    }

    /// Lets nothing be taken from here on. What is reserved still settles here. When
    /// [`Self::reserved`] is 0 after this, it stays 0.
    pub fn retire(&self) {
        self.available
            .update(Ordering::AcqRel, Ordering::Acquire, |raw| {
                if is_retired(raw) { raw } else { raw - RETIRED }
            });
    }

    /// Takes `amount` if it is there; gives what is left.
    pub(crate) fn take(&self, amount: u64) -> Option<i64> {
        // Before it is taken, so that an agent who retires the lease in between does not see a
        // reservation of nothing.
        self.reserved.fetch_add(amount, Ordering::AcqRel);
        let amount_signed = signed(amount);
        let mut raw = self.available.load(Ordering::Acquire);
        loop {
            if raw < amount_signed {
                self.reserved.fetch_sub(amount, Ordering::AcqRel);
                return None;
            }
            match self.available.compare_exchange_weak(
                raw,
                raw - amount_signed,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(raw - amount_signed),
                Err(now) => raw = now,
            }
        }
    }

    /// Takes `amount` whether or not it is there. Not from a retired lease: false.
    pub(crate) fn take_anyway(&self, amount: u64) -> bool {
        self.reserved.fetch_add(amount, Ordering::AcqRel);
        let taken = self
            .available
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |raw| {
                (!is_retired(raw)).then(|| raw - signed(amount))
            });
        if taken.is_err() {
            self.reserved.fetch_sub(amount, Ordering::AcqRel);
        }
        taken.is_ok()
    }

    /// Ends a reservation of `reserved` of which `used` was used, which may be more.
    /// Gives what is available then.
    pub(crate) fn settle(&self, reserved: u64, used: u64) -> i64 {
        let back = signed(reserved) - signed(used);
        // Credit first: for a moment it counts twice, never not at all, and an agent that sees
        // nothing reserved sees all of the credit.
        let before = self.available.fetch_add(back, Ordering::AcqRel);
        self.reserved.fetch_sub(reserved, Ordering::AcqRel);
        before + back
    }
}

fn signed(amount: u64) -> i64 {
    amount.min(MAX_AMOUNT).cast_signed()
}

fn is_retired(raw: i64) -> bool {
    raw < -(RETIRED / 2)
}

fn unretired(raw: i64) -> i64 {
    if is_retired(raw) { raw + RETIRED } else { raw }
}
