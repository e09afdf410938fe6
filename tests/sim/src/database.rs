//! The database: the lease book, and the ledger with its cursors. Every operation is one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use control_plane_core::ledger::{self, Content, Delivery, Shard, Taken};
use control_plane_core::limit::{
    self, Answer, BucketKey, Charge, Holding, LeaseBook, LeaseKey, Refusal, Sums, Terms, Want,
    Welcome,
};
use control_plane_core::nodes::BootId;
use prost::Message as _;
use proto::metering::v1::UsageRecord;

use crate::mutant::Mutant;

/// Everything that is committed. A copy is what a standby or a back-up has.
#[derive(Clone, Debug, Default)]
pub struct Database {
    pub book: LeaseBook,
    cursors: BTreeMap<Shard, u64>,
    pub ledger: Vec<Rc<Entry>>,
    pub gaps: Vec<Gap>,
    /// A bucket that a grant brought beyond its amount.
    pub over: Option<(BucketKey, Sums)>,
    /// Rises with each commit that changes anything.
    pub commits: u64,
    /// What [`Mutant::SettlesLostFromHeld`] moved wrongly, by bucket.
    misplaced: BTreeMap<BucketKey, u64>,
    /// Before the last wants, for [`Mutant::GrantsOnStaleSnapshot`].
    stale: Option<Box<LeaseBook>>,
    mutant: Option<Mutant>,
}

/// A record in the ledger.
#[derive(Debug)]
pub struct Entry {
    pub shard: Shard,
    pub seq: u64,
    pub exchange: u64,
    pub charges: Vec<Charge>,
    pub admitted_at_us: i64,
    pub at_us: u64,
}

/// Sequences that are lost.
#[derive(Clone, Debug)]
pub struct Gap {
    pub shard: Shard,
    pub from_seq: u64,
    pub to_seq: u64,
}

/// A bucket's row, and what its leases add up to.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    pub key: &'a BucketKey,
    pub sums: Sums,
    pub held: u64,
    pub suspended: u64,
}

impl Database {
    /// With these limits, and nothing used.
    pub fn new(mutant: Option<Mutant>) -> Self {
        Self {
            mutant,
            ..Self::default()
        }
    }

    /// Publishes a limit.
    pub fn set_limit(&mut self, id: &str, terms: Terms, now_us: i64) {
        self.commits += 1;
        self.book.set_limit(id, Some(terms), now_us);
    }

    /// A process says Hello.
    pub fn hello(
        &mut self,
        boot: BootId,
        epoch: u64,
        draining: bool,
        holdings: &[Holding],
        now_us: i64,
    ) -> Welcome {
        self.commits += 1;
        self.book.hello(boot, epoch, draining, holdings, now_us)
    }

    /// Answers wants.
    pub fn want(
        &mut self,
        boot: BootId,
        epoch: u64,
        wants: &[Want],
        now_us: i64,
    ) -> Result<Vec<Answer>, Refusal> {
        self.commits += 1;
        if self.mutant == Some(Mutant::GrantsOnStaleSnapshot) {
            let before = self.book.clone();
            if self.commits.is_multiple_of(8)
                && let Some(stale) = self.stale.take()
                && stale
                    .holder(boot)
                    .is_some_and(|holder| holder.epoch == epoch)
            {
                self.book = *stale;
            }
            self.stale = Some(Box::new(before));
        }
        let key = LeaseKey {
            boot_id: boot,
            epoch,
        };
        let lent = |book: &LeaseBook, bucket: &BucketKey| {
            book.bucket(bucket)
                .map_or(0, |bucket| bucket.lease(key).outstanding())
        };
        let before: BTreeMap<BucketKey, u64> = self
            .book
            .buckets()
            .map(|bucket| (bucket.key.clone(), bucket.lease(key).outstanding()))
            .collect();
        let answers = if self.mutant == Some(Mutant::GrantsByOldAmount) {
            self.want_by_old_amounts(boot, epoch, wants, now_us)?
        } else {
            self.book.want(boot, epoch, wants, now_us)?
        };
        for grant in answers.iter().filter_map(|answer| answer.grant.as_ref()) {
            let had = before.get(&grant.bucket).copied().unwrap_or(0);
            let is_more = lent(&self.book, &grant.bucket) > had;
            if is_more
                && let Some(bucket) = self.book.bucket(&grant.bucket)
                && bucket.sums.free() < 0
            {
                self.over = Some((grant.bucket.clone(), bucket.sums));
            }
        }
        Ok(answers)
    }

    fn want_by_old_amounts(
        &mut self,
        boot: BootId,
        epoch: u64,
        wants: &[Want],
        now_us: i64,
    ) -> Result<Vec<Answer>, Refusal> {
        let limits: BTreeSet<&String> = wants.iter().map(|want| &want.bucket.limit).collect();
        let terms = limits
            .into_iter()
            .filter_map(|id| Some((id, self.book.terms(id)?.clone())));
        let terms: Vec<(&String, Terms)> = terms.collect();
        for (id, terms) in &terms {
            let amount = terms.amount + terms.amount / 2;
            let old = Terms {
                amount,
                ..terms.clone()
            };
            self.book.set_limit(id, Some(old), now_us);
        }
        let answers = self.book.want(boot, epoch, wants, now_us);
        for (id, terms) in terms {
            self.book.set_limit(id, Some(terms), now_us);
        }
        answers
    }

    /// A sign of life.
    pub fn beat(&mut self, boot: BootId, epoch: u64, now_us: i64) -> Result<(), Refusal> {
        self.book.beat(boot, epoch, now_us)
    }

    /// Fences whose time is over, and does to lost credit what is due.
    pub fn tend(&mut self, now_us: i64) -> Vec<BootId> {
        let fenced = self.book.fence_expired(now_us);
        let expired = self.book.expire_lost(now_us);
        if !fenced.is_empty() || expired > 0 {
            self.commits += 1;
        }
        if self.mutant == Some(Mutant::FreesLostCredit) {
            for boot in &fenced {
                let epoch = self.book.holder(*boot).map_or(0, |holder| holder.epoch);
                self.book.close(*boot, epoch.saturating_sub(1), &[], now_us);
            }
        }
        fenced
    }

    /// Ends an epoch, if every record up to the shards' ends is there.
    pub fn close(
        &mut self,
        boot: BootId,
        epoch: u64,
        holdings: &[Holding],
        ends: &[(u32, u64)],
        now_us: i64,
    ) -> bool {
        let is_taken = ends.iter().all(|(number, last_seq)| {
            let shard = Shard {
                boot_id: boot,
                number: *number,
            };
            self.cursor(shard) >= *last_seq
        });
        if is_taken {
            self.commits += 1;
            self.book.close(boot, epoch, holdings, now_us);
        }
        is_taken
    }

    /// The last sequence of a shard that is committed.
    pub fn cursor(&self, shard: Shard) -> u64 {
        self.cursors.get(&shard).copied().unwrap_or(0)
    }

    /// Takes in records or a gap.
    pub fn deliver(&mut self, delivery: &Delivery, at_us: u64, now_us: i64) -> ledger::Answer {
        delivery.validate().expect("sequences that can be");
        let shard = delivery.shard;
        let cursor = self.cursor(shard);
        let taken = match (self.mutant, &delivery.content) {
            (Some(Mutant::IgnoresCursor), Content::Records { first_seq, .. }) => Taken::Records {
                skip: 0,
                first_seq: *first_seq,
            },
            _ => delivery.taken_after(cursor),
        };
        match (taken, &delivery.content) {
            (Taken::Hole, _) => {
                let next_seq = cursor + 1;
                return ledger::Answer::Resume { shard, next_seq };
            }
            (Taken::Records { skip, first_seq }, Content::Records { records, .. }) => {
                let fresh = records.get(skip..).unwrap_or_default();
                for (seq, record) in (first_seq..).zip(fresh) {
                    self.take(shard, seq, record, at_us, now_us);
                }
            }
            (Taken::Gap { from_seq, to_seq }, _) => {
                self.commits += 1;
                self.gaps.push(Gap {
                    shard,
                    from_seq,
                    to_seq,
                });
                self.cursors.insert(shard, to_seq);
            }
            _ => {}
        }
        let through_seq = self.cursor(shard);
        ledger::Answer::Ack { shard, through_seq }
    }

    fn take(&mut self, shard: Shard, seq: u64, record: &[u8], at_us: u64, now_us: i64) {
        self.commits += 1;
        let record = UsageRecord::decode(record).expect("a record as it was written");
        let mut charges = Charge::of_record(shard.boot_id, record.admitted_at_us, &record.charges);
        if self.mutant == Some(Mutant::ChargesWindowOfArrival) {
            for charge in &mut charges {
                charge.bucket.window_start_s = now_us.div_euclid(1_000_000);
            }
        }
        let misplaced = charges
            .iter()
            .filter_map(|charge| self.misplaced_by(charge));
        let misplaced: Vec<(BucketKey, u64)> = misplaced.collect();
        assert_eq!(self.book.settle(&charges), 0, "every limit is known");
        if self.mutant == Some(Mutant::SettlesLostFromHeld) {
            for (bucket, amount) in misplaced {
                *self.misplaced.entry(bucket).or_default() += amount;
            }
        }
        self.cursors.insert(shard, seq);
        self.ledger.push(Rc::new(Entry {
            shard,
            seq,
            exchange: number_of(&record.exchange_id),
            // As it was written, whatever was made of it.
            charges: Charge::of_record(shard.boot_id, record.admitted_at_us, &record.charges),
            admitted_at_us: record.admitted_at_us,
            at_us,
        }));
    }

    /// What a charge takes from a lost lease.
    fn misplaced_by(&self, charge: &Charge) -> Option<(BucketKey, u64)> {
        let bucket = self.book.bucket(&charge.bucket)?;
        let key = LeaseKey {
            boot_id: charge.boot_id,
            epoch: charge.epoch,
        };
        let lease = bucket.lease(key);
        lease.lost_at_us?;
        let freed = lease.outstanding().min(charge.amount);
        (freed > 0).then(|| (charge.bucket.clone(), freed))
    }

    /// Every bucket as its row has it.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> + '_ {
        self.book.buckets().map(|bucket| {
            let mut sums = bucket.sums;
            if let Some(amount) = self.misplaced.get(&bucket.key) {
                sums.held = sums.held.saturating_sub(*amount);
                sums.suspended += amount;
            }
            let of = |is_lost: bool| {
                let leases = bucket.leases.values();
                let leases = leases.filter(move |lease| lease.lost_at_us.is_some() == is_lost);
                leases.map(limit::Lease::outstanding).sum()
            };
            Row {
                key: &bucket.key,
                sums,
                held: of(false),
                suspended: of(true),
            }
        })
    }
}

/// The bytes that name an exchange.
pub fn id_of(exchange: u64) -> Vec<u8> {
    let mut id = vec![0; 8];
    id.extend(exchange.to_be_bytes());
    id
}

fn number_of(id: &[u8]) -> u64 {
    let last = id.last_chunk::<8>().expect("16 bytes");
    u64::from_be_bytes(*last)
}
