//! Everything that limits know, in memory: what the database holds, without one.
//!
//! Simulations run on it, and a test holds the SQL to it. Each operation is one transaction; time
//! is an argument, in Unix microseconds.

use std::collections::BTreeMap;

use super::{
    Answer, Bucket, BucketKey, Charge, EXPIRY_US, Grant, Holder, Holding, Imbalance, Kind,
    LeaseKey, RECALL_US, Refusal, Standing, Terms, Want,
};
use crate::nodes::BootId;

/// Limits, buckets, leases and who holds them.
#[derive(Clone, Debug, Default)]
pub struct LeaseBook {
    limits: BTreeMap<String, Terms>,
    holders: BTreeMap<BootId, Holder>,
    buckets: BTreeMap<BucketKey, Bucket>,
    recalls: BTreeMap<BucketKey, Mark>,
    /// Beats could not be heard before: nobody is fenced until then.
    fence_not_before_us: i64,
}

/// The answer to a Hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The epoch from now on.
    pub epoch: u64,
    /// Whether the epoch that was named is over.
    pub fenced: bool,
    /// Leases whose totals here are not those that were declared.
    pub grants: Vec<Grant>,
}

/// Idle credit of a bucket that is wanted back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall {
    pub bucket: BucketKey,
    /// Idle credit up to this may be kept.
    pub keep: u64,
    /// When it was asked for: the same mark is told once to a holder.
    pub marked_at_us: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    keep: u64,
    marked_at_us: i64,
}

impl LeaseBook {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Publishes a limit, changes its amount, or removes it (`None`). A limit keeps its unit and
    /// windows; its buckets outlive it.
    pub fn set_limit(&mut self, id: &str, terms: Option<Terms>, now_us: i64) {
        let Some(terms) = terms else {
            self.limits.remove(id);
            return;
        };
        for bucket in self.buckets.values_mut() {
            if bucket.key.limit != id || bucket.has_ended(now_us) {
                continue;
            }
            bucket.sums.amount = terms.amount;
            if bucket.sums.free() < 0 {
                let mark = Mark {
                    keep: 0,
                    marked_at_us: now_us,
                };
                self.recalls.insert(bucket.key.clone(), mark);
            }
        }
        self.limits.insert(id.to_owned(), terms);
    }

    /// A process says Hello, with the epoch it had (0: none) and what it holds in it.
    pub fn hello(
        &mut self,
        boot_id: BootId,
        epoch: u64,
        draining: bool,
        holdings: &[Holding],
        now_us: i64,
    ) -> Welcome {
        let known = self.holders.get(&boot_id).copied();
        let greeting = Holder::greet(known, epoch, draining, now_us);
        let holder = greeting.holder;
        self.holders.insert(boot_id, holder);
        if let Some(epoch) = greeting.forgotten_epoch {
            self.lose(LeaseKey { boot_id, epoch }, now_us);
        }
        let key = LeaseKey {
            boot_id,
            epoch: holder.epoch,
        };
        if !greeting.fenced {
            for holding in holdings {
                if let Some(bucket) = self.bucket_mut(&holding.bucket) {
                    bucket.declare(key, holding);
                }
            }
        }
        Welcome {
            epoch: holder.epoch,
            fenced: greeting.fenced,
            grants: self.surprises(key, holdings, now_us),
        }
    }

    /// Leases of a holder whose totals are not the declared ones. It forgets those of past windows.
    fn surprises(&self, key: LeaseKey, holdings: &[Holding], now_us: i64) -> Vec<Grant> {
        let declared: BTreeMap<&BucketKey, &Holding> = holdings
            .iter()
            .map(|holding| (&holding.bucket, holding))
            .collect();
        self.buckets
            .values()
            .filter(|bucket| bucket.leases.contains_key(&key) && !bucket.has_ended(now_us))
            .map(|bucket| bucket.grant(key, now_us))
            .filter(|grant| !declared.get(&grant.bucket).is_some_and(|h| h.says(grant)))
            .collect()
    }

    /// Answers wants in order.
    ///
    /// # Errors
    /// When the epoch does not hold; then nothing changed.
    pub fn want(
        &mut self,
        boot_id: BootId,
        epoch: u64,
        wants: &[Want],
        now_us: i64,
    ) -> Result<Vec<Answer>, Refusal> {
        let holder = self.heard(boot_id, epoch, now_us)?;
        let key = LeaseKey { boot_id, epoch };
        let draining = holder.draining;
        Ok(wants
            .iter()
            .map(|want| self.want_one(key, draining, want, now_us))
            .collect())
    }

    fn want_one(&mut self, key: LeaseKey, draining: bool, want: &Want, now_us: i64) -> Answer {
        let Some(terms) = self.limits.get(&want.bucket.limit) else {
            return Answer::no_limit(want.bucket.clone());
        };
        let (bucket_key, span) = terms.bucket_of(&want.bucket, want.next_window, now_us);
        let bucket = self
            .buckets
            .entry(bucket_key.clone())
            .or_insert_with(|| Bucket::new(bucket_key.clone(), span, terms.amount));
        let (answer, keep) = bucket.want(terms, key, draining, want, now_us);
        if let Some(keep) = keep {
            let mark = Mark {
                keep,
                marked_at_us: now_us,
            };
            self.recalls.insert(bucket_key, mark);
        }
        answer
    }

    /// A sign of life.
    ///
    /// # Errors
    /// When the epoch does not hold.
    pub fn beat(&mut self, boot_id: BootId, epoch: u64, now_us: i64) -> Result<(), Refusal> {
        let holder = self.heard(boot_id, epoch, now_us)?;
        holder.beat(now_us);
        Ok(())
    }

    /// What a holder is to give back, if it lies idle.
    pub fn recalls(&self, boot_id: BootId, epoch: u64, now_us: i64) -> Vec<Recall> {
        let key = LeaseKey { boot_id, epoch };
        self.recalls
            .iter()
            .filter(|(_, mark)| mark.marked_at_us > now_us.saturating_sub(RECALL_US))
            .filter(|(bucket, mark)| {
                let lease = self.buckets.get(bucket).map(|bucket| bucket.lease(key));
                lease.is_some_and(|l| l.lost_at_us.is_none() && l.outstanding() > mark.keep)
            })
            .map(|(bucket, mark)| Recall {
                bucket: bucket.clone(),
                keep: mark.keep,
                marked_at_us: mark.marked_at_us,
            })
            .collect()
    }

    /// Beats could not be stored until now: nobody is fenced before all had time to be heard.
    pub fn was_deaf(&mut self, now_us: i64) {
        self.fence_not_before_us = now_us.saturating_add(EXPIRY_US);
    }

    /// Fences the holders whose time is over; their credit is suspended.
    pub fn fence_expired(&mut self, now_us: i64) -> Vec<BootId> {
        if now_us < self.fence_not_before_us {
            return Vec::new();
        }
        let expired: Vec<BootId> = self
            .holders
            .iter()
            .filter(|(_, holder)| holder.is_expired(now_us))
            .map(|(boot_id, _)| *boot_id)
            .collect();
        for boot_id in &expired {
            if let Some(holder) = self.holders.get_mut(boot_id) {
                let epoch = holder.fence();
                let boot_id = *boot_id;
                self.lose(LeaseKey { boot_id, epoch }, now_us);
            }
        }
        expired
    }

    /// Frees or writes down the credit of lost holders, where it is due. How many leases changed.
    pub fn expire_lost(&mut self, now_us: i64) -> usize {
        let mut changed = 0;
        for bucket in self.buckets.values_mut() {
            let Some(terms) = self.limits.get(&bucket.key.limit) else {
                continue;
            };
            let keys: Vec<LeaseKey> = bucket.leases.keys().copied().collect();
            changed += keys
                .into_iter()
                .filter(|key| bucket.expire(terms, *key, now_us))
                .count();
        }
        changed
    }

    /// Takes in the charges of records, each record once. Charges on rates and in-flight, and of
    /// limits that are not known, count nothing; the number of the latter.
    pub fn settle(&mut self, charges: &[Charge]) -> usize {
        let mut unknown = 0;
        for charge in charges {
            let terms = self.limits.get(&charge.bucket.limit);
            if terms.is_some_and(|terms| terms.kind != Kind::Counted) {
                continue;
            }
            let Some(bucket) = self.bucket_mut(&charge.bucket) else {
                unknown += 1;
                continue;
            };
            let key = LeaseKey {
                boot_id: charge.boot_id,
                epoch: charge.epoch,
            };
            bucket.settle(key, charge.amount);
        }
        unknown
    }

    /// Ends an epoch of a process: nothing is reserved in it, and every record of it is taken. What
    /// is neither charged nor, by its word, used is free.
    pub fn close(&mut self, boot_id: BootId, epoch: u64, holdings: &[Holding], now_us: i64) {
        let key = LeaseKey { boot_id, epoch };
        let used: BTreeMap<&BucketKey, u64> = holdings
            .iter()
            .map(|holding| (&holding.bucket, holding.used()))
            .collect();
        for (bucket_key, bucket) in &mut self.buckets {
            if bucket.leases.contains_key(&key) {
                let used = used.get(bucket_key).copied().unwrap_or(0);
                bucket.close(key, used, now_us);
            }
        }
        if let Some(holder) = self.holders.get_mut(&boot_id)
            && holder.epoch <= epoch
        {
            holder.standing = Standing::Closed;
        }
    }

    /// Moves what is settled in the bucket that is now; whether there is such a limit.
    pub fn adjust(&mut self, limit: &str, subject: &str, delta: i64, now_us: i64) -> bool {
        let now = BucketKey {
            limit: limit.to_owned(),
            subject: subject.to_owned(),
            window_start_s: -1,
        };
        let Some(terms) = self.limits.get(limit) else {
            return false;
        };
        let (key, _) = terms.bucket_of(&now, false, now_us);
        self.bucket_mut(&key)
            .map(|bucket| bucket.adjust(delta))
            .is_some()
    }

    /// A bucket, if it was ever used.
    pub fn bucket(&self, key: &BucketKey) -> Option<&Bucket> {
        self.buckets.get(key)
    }

    /// Every bucket, by key.
    pub fn buckets(&self) -> impl Iterator<Item = &Bucket> {
        self.buckets.values()
    }

    /// A process that said Hello.
    pub fn holder(&self, boot_id: BootId) -> Option<&Holder> {
        self.holders.get(&boot_id)
    }

    /// The terms of a limit.
    pub fn terms(&self, limit: &str) -> Option<&Terms> {
        self.limits.get(limit)
    }

    /// Whether each bucket's sums are those of its leases.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), Imbalance> {
        self.buckets.values().try_for_each(Bucket::check)
    }

    fn heard(&mut self, boot_id: BootId, epoch: u64, now_us: i64) -> Result<&mut Holder, Refusal> {
        let holder = self.holders.get_mut(&boot_id).ok_or(Refusal::Unknown)?;
        holder.hear(epoch)?;
        if holder.standing == Standing::Lost {
            holder.beat(now_us);
        }
        Ok(holder)
    }

    fn lose(&mut self, key: LeaseKey, now_us: i64) {
        for bucket in self.buckets.values_mut() {
            if bucket.leases.contains_key(&key) {
                bucket.lose(key, now_us);
            }
        }
    }

    /// The bucket of a key with a real window start, made where it is missing; none when its
    /// limit is not known and it was never used.
    fn bucket_mut(&mut self, key: &BucketKey) -> Option<&mut Bucket> {
        let Some(terms) = self.limits.get(&key.limit) else {
            return self.buckets.get_mut(key);
        };
        let (key, span) = terms.bucket_of(key, false, 0);
        let unused = || Bucket::new(key.clone(), span, terms.amount);
        Some(self.buckets.entry(key.clone()).or_insert_with(unused))
    }
}

#[cfg(test)]
mod tests;
