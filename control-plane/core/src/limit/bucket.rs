//! One bucket with leases on it: every change of a lease and what it does to the sums.

use std::collections::BTreeMap;

use super::terms::Fate;
use super::{
    ACTIVE_US, Answer, Ask, BucketKey, Deny, DenyKind, Grant, Holding, Kind, MAX_AMOUNT, Span,
    Terms, Want, slice,
};
use crate::nodes::BootId;

/// Names a lease in its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseKey {
    pub boot_id: BootId,
    pub epoch: u64,
}

/// A holder's totals in a bucket, in the limit's unit. They only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    pub granted: u64,
    /// By charges.
    pub consumed: u64,
    pub returned: u64,
    /// Unix microseconds of its holder's fencing; none: it is live.
    pub lost_at_us: Option<i64>,
    /// What was lent to a lost holder and came back in no record so far, once it is written down.
    pub unaccounted: u64,
    /// Unix microseconds of the last want that asked for more; 0: never.
    pub wanted_at_us: i64,
}

/// What a bucket adds up to, in the limit's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub amount: u64,
    /// By charges and corrections; a correction may bring it below 0.
    pub settled: i64,
    /// Outstanding over live leases.
    pub held: u64,
    /// Outstanding over lost leases.
    pub suspended: u64,
}

/// A bucket with those of its leases that are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub key: BucketKey,
    pub span: Span,
    pub sums: Sums,
    pub leases: BTreeMap<LeaseKey, Lease>,
    /// Active holders whose leases are not among `leases`.
    pub others_active: u64,
}

/// A bucket whose sums are not those of its leases.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bucket:?} keeps {kept:?}, its leases have {held} held and {suspended} suspended")]
pub struct Imbalance {
    pub bucket: BucketKey,
    pub kept: Sums,
    pub held: u64,
    pub suspended: u64,
}

/// A refusal is asked about again this soon while live holders have what is lacking. They may give
/// it back or settle it at any time, so that it holds for nobody but those who wait.
const RETRY_HELD_MS: u32 = 250;
/// The same, while only lost holders do.
const RETRY_SUSPENDED_MS: u32 = 2_000;
/// An exhausted bucket is looked at again this soon: an operator may have raised it.
const RETRY_SPENT_MS: u32 = 10_000;

impl Lease {
    /// Lent, and neither used up nor returned.
    pub fn outstanding(&self) -> u64 {
        self.granted.saturating_sub(self.gone())
    }

    /// Used up or returned beyond what was lent: the next grant covers it first.
    fn debt(&self) -> u64 {
        self.gone().saturating_sub(self.granted)
    }

    fn gone(&self) -> u64 {
        self.consumed.saturating_add(self.returned)
    }

    /// Whether its holder asked for more within the last minute.
    pub fn is_active(&self, now_us: i64) -> bool {
        self.lost_at_us.is_none() && self.wanted_at_us > now_us.saturating_sub(ACTIVE_US)
    }
}

impl Sums {
    /// What may be granted; negative when the amount was exceeded or lowered.
    pub fn free(&self) -> i64 {
        self.room()
            .saturating_sub(signed(self.held))
            .saturating_sub(signed(self.suspended))
    }

    /// What is not settled.
    pub fn room(&self) -> i64 {
        signed(self.amount).saturating_sub(self.settled)
    }
}

impl Bucket {
    /// A bucket that nobody used.
    pub fn new(key: BucketKey, span: Span, amount: u64) -> Self {
        let sums = Sums {
            amount,
            ..Sums::default()
        };
        Self {
            key,
            span,
            sums,
            leases: BTreeMap::new(),
            others_active: 0,
        }
    }

    /// Whether its window is over.
    pub fn has_ended(&self, now_us: i64) -> bool {
        self.span
            .end_s
            .is_some_and(|end_s| end_s <= now_us.div_euclid(1_000_000))
    }

    /// Takes in what a holder says it has: totals may be ahead of ours when a commit was lost.
    pub fn declare(&mut self, key: LeaseKey, holding: &Holding) {
        self.change(key, |lease| {
            lease.granted = lease.granted.max(holding.granted_total.min(MAX_AMOUNT));
            lease.returned = lease.returned.max(holding.returned_total.min(MAX_AMOUNT));
        });
    }

    /// Answers a want for this bucket; see [`slice`] for how much is granted. The second value
    /// says how much idle credit holders may keep, when the rest is wanted back from them.
    pub fn want(
        &mut self,
        terms: &Terms,
        key: LeaseKey,
        draining: bool,
        want: &Want,
        now_us: i64,
    ) -> (Answer, Option<u64>) {
        let wished = want.granted_total.min(MAX_AMOUNT);
        self.change(key, |lease| {
            lease.returned = lease.returned.max(want.returned_total.min(MAX_AMOUNT));
            if wished > lease.granted {
                lease.wanted_at_us = lease.wanted_at_us.max(now_us);
            }
        });
        let lease = self.lease(key);
        let raise = wished.saturating_sub(lease.granted);
        let answer = |bucket: &Self, deny: Option<Deny>| Answer {
            grant: Some(bucket.grant(key, now_us)),
            deny,
        };
        if raise == 0 || lease.lost_at_us.is_some() || self.has_ended(now_us) {
            return (answer(self, None), None);
        }
        let debt = lease.debt();
        // What it used beyond its lease is settled already, and no part of what a request lacks.
        let raise_beyond_debt = raise.saturating_sub(debt);
        let mut ask = Ask {
            raise: raise_beyond_debt,
            min_useful: want.min_useful.min(raise_beyond_debt),
            demand_per_minute: want.demand_per_minute,
            urgent: want.urgent,
            outstanding: lease.outstanding(),
        };
        if draining {
            ask.raise = if ask.urgent { ask.min_useful } else { 0 };
        }
        let active = self.active(now_us);
        let free = u64::try_from(self.sums.free()).unwrap_or(0);
        if free < ask.min_useful {
            let deny = self.deny(terms.kind, want, now_us);
            let reserved = deny.kind == DenyKind::Reserved && want.urgent;
            let keep = match terms.kind {
                Kind::Counted | Kind::InFlight => 0,
                Kind::Rate => self.sums.amount / active.max(1),
            };
            return (answer(self, Some(deny)), reserved.then_some(keep));
        }
        let add = slice(terms.kind, self.sums.amount, free, active, &ask);
        if add > 0 || ask.min_useful == 0 {
            self.change(key, |lease| lease.granted += add + debt.min(raise));
        }
        (answer(self, None), None)
    }

    /// Charges a lease, or the bucket alone (epoch 0).
    pub fn settle(&mut self, key: LeaseKey, amount: u64) {
        let amount = amount.min(MAX_AMOUNT);
        self.sums.settled = self.sums.settled.saturating_add(signed(amount));
        if key.epoch > 0 {
            self.change(key, |lease| {
                lease.consumed = lease
                    .consumed
                    .saturating_add(amount)
                    .min(i64::MAX.unsigned_abs());
                lease.unaccounted = lease.unaccounted.saturating_sub(amount);
            });
        }
    }

    /// Suspends a lease whose holder was fenced.
    pub fn lose(&mut self, key: LeaseKey, now_us: i64) {
        self.change(key, |lease| {
            lease.lost_at_us = lease.lost_at_us.or(Some(now_us));
        });
    }

    /// Does to a lost lease what is due: frees it, writes it down, or neither. Whether it changed.
    pub fn expire(&mut self, terms: &Terms, key: LeaseKey, now_us: i64) -> bool {
        let lease = self.lease(key);
        let outstanding = lease.outstanding();
        let Some(lost_at_us) = lease.lost_at_us else {
            return false;
        };
        if outstanding == 0 || lease.unaccounted > 0 {
            return false;
        }
        let counted = if terms.kind == Kind::Counted {
            outstanding
        } else {
            0
        };
        match terms.fate(self.span, lost_at_us, now_us) {
            Fate::Kept => return false,
            Fate::Released => self.change(key, |lease| {
                lease.unaccounted = counted;
                lease.returned += outstanding;
            }),
            Fate::Noted => self.change(key, |lease| lease.unaccounted = counted),
        }
        self.lease(key) != lease
    }

    /// Ends a lease of which nothing is reserved any more and every record is taken in. What its
    /// holder says to have used beyond what was charged is in records that were lost: it is written
    /// down and stays suspended. The rest is free.
    pub fn close(&mut self, key: LeaseKey, used: u64, now_us: i64) {
        self.change(key, |lease| {
            let lost = used.saturating_sub(lease.consumed).min(lease.outstanding());
            lease.returned += lease.outstanding() - lost;
            lease.unaccounted = lost;
            if lost > 0 {
                lease.lost_at_us = lease.lost_at_us.or(Some(now_us));
            }
        });
    }

    /// Moves what is settled by a correction.
    pub fn adjust(&mut self, delta: i64) {
        self.sums.settled = self.sums.settled.saturating_add(delta);
    }

    /// Whether the sums are those of the leases, when all of them are here.
    ///
    /// # Errors
    /// When they are not.
    pub fn check(&self) -> Result<(), Imbalance> {
        let mut counted = Sums::default();
        for lease in self.leases.values() {
            counted.put(lease);
        }
        if (counted.held, counted.suspended) == (self.sums.held, self.sums.suspended) {
            return Ok(());
        }
        Err(Imbalance {
            bucket: self.key.clone(),
            kept: self.sums,
            held: counted.held,
            suspended: counted.suspended,
        })
    }

    /// A lease as it stands; an unused one where there is none.
    pub fn lease(&self, key: LeaseKey) -> Lease {
        self.leases.get(&key).copied().unwrap_or_default()
    }

    /// The totals of a lease, to be told to its holder.
    pub fn grant(&self, key: LeaseKey, now_us: i64) -> Grant {
        let lease = self.lease(key);
        Grant {
            bucket: self.key.clone(),
            granted_total: lease.granted,
            returned_total: lease.returned,
            left: self.sums.free(),
            starts_in_ms: u32::try_from(ms_until(self.span.start_s, now_us)).unwrap_or(u32::MAX),
            ends_in_ms: self.ends_in_ms(now_us),
            amount: self.sums.amount,
        }
    }

    fn deny(&self, kind: Kind, want: &Want, now_us: i64) -> Deny {
        let asked = want.min_useful.saturating_add(want.available);
        let need = signed(asked);
        let room = match kind {
            Kind::Counted => self.sums.room(),
            Kind::Rate | Kind::InFlight => signed(self.sums.amount),
        };
        let ends_in_ms = self.ends_in_ms(now_us);
        let (kind, retry_in_ms, valid_for_ms) = if room < need {
            let soon = u32::try_from(ends_in_ms).unwrap_or(u32::MAX);
            let soon = if soon == 0 { u32::MAX } else { soon };
            let soon = soon.min(RETRY_SPENT_MS);
            (DenyKind::Spent, soon, soon)
        } else if self.sums.held > 0 {
            (DenyKind::Reserved, RETRY_HELD_MS, 0)
        } else {
            (DenyKind::Reserved, RETRY_SUSPENDED_MS, RETRY_SUSPENDED_MS)
        };
        Deny {
            bucket: self.key.clone(),
            kind,
            retry_in_ms,
            valid_for_ms,
            left: self.sums.free(),
            ends_in_ms,
            amount: self.sums.amount,
            asked,
        }
    }

    fn active(&self, now_us: i64) -> u64 {
        let here = self.leases.values().filter(|l| l.is_active(now_us)).count();
        self.others_active
            .saturating_add(u64::try_from(here).unwrap_or(u64::MAX))
    }

    fn ends_in_ms(&self, now_us: i64) -> u64 {
        // 0 would mean that it never ends.
        self.span
            .end_s
            .map_or(0, |end_s| ms_until(end_s, now_us).max(1))
    }

    /// The one way in which a lease changes: the sums follow its outstanding part.
    fn change(&mut self, key: LeaseKey, edit: impl FnOnce(&mut Lease)) {
        let before = self.lease(key);
        let mut after = before;
        edit(&mut after);
        if after != before {
            self.sums.take(&before);
            self.sums.put(&after);
            self.leases.insert(key, after);
        }
    }
}

impl Sums {
    fn put(&mut self, lease: &Lease) {
        let sum = self.part_of(lease);
        *sum = sum.saturating_add(lease.outstanding());
    }

    fn take(&mut self, lease: &Lease) {
        let sum = self.part_of(lease);
        *sum = sum.saturating_sub(lease.outstanding());
    }

    fn part_of(&mut self, lease: &Lease) -> &mut u64 {
        match lease.lost_at_us {
            None => &mut self.held,
            Some(_) => &mut self.suspended,
        }
    }
}

fn ms_until(second: i64, now_us: i64) -> u64 {
    let us = second.saturating_mul(1_000_000).saturating_sub(now_us);
    u64::try_from(us.div_euclid(1000)).unwrap_or(0)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
