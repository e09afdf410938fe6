//! The invariants of limits and ledger, by number.
//!
//! 1 server conservation · 2 strict truth · 3 estimated bound · 4 node conservation ·
//! 5 exactly once · 6 nothing silent · 7 reservation closure · 8 no false refusal.
//! 9 (one version per exchange) and 10 (stream law) are about config and bytes, which are not
//! simulated here; `filter/core/src/exchange/tests/properties.rs` has part of 10.
//!
//! After a fail-over to an older database 2, 3 and 8 are not looked at, and 4 on the node alone:
//! what was granted in the commits that are lost is granted again until all have said Hello.

use std::collections::BTreeMap;
use std::sync::Arc;

use control_plane_core::limit::{BucketKey, LeaseKey, Standing, Terms};
use control_plane_core::nodes::BootId;
use filter_core::credit::Refusal;

use crate::process::{LeaseName, Process, RECALL_US, Seen};
use crate::request::{Plan, used_of};
use crate::scenario::{Limit, Unit};
use crate::truth::{Fact, FactEnd, Part};
use crate::world::{Checked, World, violated};

const S: u64 = 1_000_000;

/// What was refused may be refused again this long: a refusal's validity and the wait after it,
/// with delays.
const REFUSED_US: u64 = 15 * S;
/// The same, where a message may be held up by a partition.
const REFUSED_LATE_US: u64 = 65 * S;
/// Idle credit is asked back from a node that has been in reach for this long.
const RECALLED_US: u64 = 3 * S;

impl World {
    /// What is cheap enough for each step.
    pub fn check_step(&mut self) -> Checked {
        let touched = self.touched.take();
        let process = touched.and_then(|node| self.nodes[node].process.as_mut());
        if let Some(process) = process {
            process.look(self.now_us);
        }
        let has_commit = self.checked_commits != self.db.commits;
        if has_commit {
            self.checked_commits = self.db.commits;
            self.check_server()?;
        }
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(process) = &node.process
                && (has_commit || touched == Some(at))
            {
                self.check_process(process)?;
            }
        }
        Ok(())
    }

    /// 1: sums are those of the leases.
    fn check_server(&mut self) -> Checked {
        let now_us = self.now_us;
        for row in self.db.rows() {
            self.truth.note_room(row.key, now_us, row.sums.room());
            if (row.held, row.suspended) != (row.sums.held, row.sums.suspended) {
                return violated(1, format!("{row:?}"));
            }
        }
        Ok(())
    }

    /// 1: no grant went beyond what is free.
    pub fn check_grants(&mut self) -> Checked {
        let Some(over) = self.db.over.take() else {
            return Ok(());
        };
        if self.failovers > 0 {
            // Declared totals may be more than what an older database has to give.
            return Ok(());
        }
        violated(1, format!("a grant beyond the amount: {over:?}"))
    }

    /// 2: what providers bill for a strict limit is within its amount.
    pub fn bill(&mut self, part: &Part, amount: u64) -> Checked {
        let limit = &self.scenario.limits[part.limit];
        if !limit.is_strict() || !limit.is_counted() {
            return Ok(());
        }
        let billed = self.truth.billed.entry(part.bucket.clone()).or_default();
        *billed += amount;
        let most = self
            .truth
            .highest
            .get(&part.bucket.limit)
            .copied()
            .unwrap_or(0);
        if *billed > most && self.failovers == 0 {
            return violated(2, format!("{billed} billed of {most} in {:?}", part.bucket));
        }
        Ok(())
    }

    fn check_process(&self, process: &Process) -> Checked {
        for (name, seen) in &process.leases {
            self.check_lease(process, name, seen)?;
        }
        if process.exchanges.is_empty() {
            self.check_closure(process)?;
        }
        Ok(())
    }

    /// 4: a node's credit adds up, and the server has heard no more of it than there is.
    fn check_lease(&self, process: &Process, name: &LeaseName, seen: &Seen) -> Checked {
        let Seen {
            lease,
            bucket,
            settled,
            ..
        } = seen;
        let settled = *settled;
        let (granted, returned, reserved) = (lease.granted(), lease.returned(), lease.reserved());
        let gone = i128::from(reserved) + i128::from(settled) + i128::from(returned);
        if i128::from(granted) != i128::from(lease.available()) + gone {
            return violated(4, format!("{name:?} settled {settled} of {lease:?}"));
        }
        if self.failovers > 0 {
            return Ok(());
        }
        let key = LeaseKey {
            boot_id: BootId(process.id()),
            epoch: name.epoch,
        };
        let bucket = self.db.book.bucket(bucket);
        let Some(server) = bucket.and_then(|bucket| bucket.leases.get(&key)) else {
            return violated(4, format!("nobody granted {name:?} {lease:?}"));
        };
        let holder = self.db.book.holder(key.boot_id);
        let is_kept = server.lost_at_us.is_none()
            && holder.is_some_and(|holder| {
                holder.epoch == name.epoch && holder.standing != Standing::Closed
            });
        let holds = server.granted >= granted
            && server.consumed <= settled
            && (!is_kept || server.returned <= returned);
        if holds {
            return Ok(());
        }
        violated(
            4,
            format!("{name:?} settled {settled} of {lease:?}, the server has {server:?}"),
        )
    }

    /// 7: without an open exchange nothing is held.
    fn check_closure(&self, process: &Process) -> Checked {
        let is_held = process
            .leases
            .values()
            .any(|seen| seen.lease.reserved() > 0);
        let free: usize = process
            .shards
            .iter()
            .map(|shard| shard.table.free_slots())
            .sum();
        let all = process.slots;
        let waiting = process.accounts.waiting();
        if !is_held && free == all && waiting == process.waiters.len() {
            return Ok(());
        }
        violated(
            7,
            format!(
                "no exchange is open: {} of {all} slots are free, {waiting} wait, {:?}",
                free, process.leases
            ),
        )
    }

    /// 5: takes in what has come into the ledger: each exchange once, and counters are sums.
    pub fn take_ledger(&mut self) -> Checked {
        let fresh = self.db.ledger.get(self.seen..).unwrap_or_default().to_vec();
        self.seen = self.db.ledger.len();
        let mut touched = Vec::new();
        for entry in fresh {
            let place = (entry.shard, entry.seq);
            if self.sequences.insert(place, entry.exchange).is_some() {
                return violated(5, format!("{place:?} is in the ledger twice"));
            }
            let Some(fact) = self.truth.exchanges.get_mut(&entry.exchange) else {
                return violated(5, format!("nobody admitted exchange {}", entry.exchange));
            };
            if fact.ledgered_at_us.replace(entry.at_us).is_some() {
                return violated(
                    5,
                    format!("exchange {} is in the ledger twice", entry.exchange),
                );
            }
            for charge in &entry.charges {
                let Some(limit) = self
                    .scenario
                    .limits
                    .iter()
                    .find(|it| *it.id == *charge.bucket.limit)
                else {
                    continue;
                };
                if !limit.is_counted() {
                    continue;
                }
                let bucket = counted_in(&limit.terms, &charge.bucket, entry.admitted_at_us);
                *self.counters.entry(bucket.clone()).or_default() += charge.amount;
                touched.push(bucket);
            }
        }
        for bucket in touched {
            let summed = self.counters.get(&bucket).copied().unwrap_or(0);
            let counted = self
                .db
                .book
                .bucket(&bucket)
                .map_or(0, |bucket| bucket.sums.settled);
            if i128::from(counted) != i128::from(summed) {
                return violated(
                    5,
                    format!("{bucket:?} counts {counted}, records say {summed}"),
                );
            }
        }
        Ok(())
    }

    /// The database is an older one: what came later is not in it.
    pub fn forget_later_records(&mut self) {
        self.seen = 0;
        self.sequences.clear();
        self.counters.clear();
        for fact in self.truth.exchanges.values_mut() {
            fact.ledgered_at_us = None;
        }
        // They were checked when they came.
        let taken = self.take_ledger();
        debug_assert_eq!(taken, Ok(()));
    }

    /// 8: a request was refused, and there was reason to.
    pub fn refused(
        &mut self,
        node: usize,
        plan: &Plan,
        at: usize,
        need: u64,
        kind: Refusal,
        is_over: bool,
    ) -> Checked {
        let limit = self.scenario.limits[at].clone();
        let subject = limit.subject(plan.key);
        let slack_us = if self.scenario.faults.partition_us > 0 {
            REFUSED_LATE_US
        } else {
            REFUSED_US
        };
        let since_us = self.now_us.saturating_sub(slack_us);
        let need = i64::try_from(need).expect("small");
        match kind {
            Refusal::Spent => {
                self.truth.tally.spent += 1;
                let unsaid = self.unsaid(&limit, &subject);
                self.check_spent(&limit, &subject, since_us, need + unsaid)
            }
            Refusal::Reserved => {
                self.truth.tally.reserved += 1;
                self.note_obtainable(&limit.id, &subject, Some(node));
                if is_over && self.is_being_recalled(node, &limit, &subject) {
                    return Ok(());
                }
                self.check_reserved(&limit, &subject, since_us, need)
                    .map_err(|mut violation| {
                        let process = self.nodes[node].process.as_ref();
                        let denial = process.and_then(|process| {
                            let account = process.accounts.account(&limit.account, &subject);
                            let now_us = process.clock.mono_us(self.now_us);
                            Some((now_us, account.denial()?, account.current()))
                        });
                        violation.what.push_str(&format!("; by {denial:?}"));
                        violation
                    })
            }
        }
    }

    /// Whether others have not had their time to give back, while the request's own is over.
    fn is_being_recalled(&self, node: usize, limit: &Limit, subject: &str) -> bool {
        let process = self.nodes[node].process.as_ref();
        let name = (Arc::clone(&limit.id), Arc::from(subject));
        let refusals = process.and_then(|process| process.refusals.get(&name));
        refusals.is_some_and(|refusals| self.now_us < refusals.since_us + RECALL_US)
    }

    /// What was used of a limit, and is on its way to the ledger.
    fn unsaid(&self, limit: &Limit, subject: &str) -> i64 {
        let processes = self.nodes.iter().filter_map(|node| node.process.as_ref());
        let unsaid = processes.flat_map(|process| {
            let boot_id = BootId(process.id());
            let leases = process.leases.iter();
            let own =
                leases.filter(|(name, _)| name.limit == limit.id && *name.subject == *subject);
            own.map(move |(name, seen)| {
                let key = LeaseKey {
                    boot_id,
                    epoch: name.epoch,
                };
                let bucket = self.db.book.bucket(&seen.bucket);
                let counted = bucket.map_or(0, |bucket| bucket.lease(key).consumed);
                seen.settled.saturating_sub(counted)
            })
        });
        i64::try_from(unsaid.sum::<u64>()).expect("small")
    }

    fn check_spent(&self, limit: &Limit, subject: &str, since_us: u64, need: i64) -> Checked {
        let amount = i64::try_from(limit.terms.amount).expect("small");
        let of_limit =
            |bucket: &&BucketKey| *bucket.limit == *limit.id && bucket.subject == subject;
        let mut buckets = self.truth.rooms.keys().filter(of_limit).peekable();
        let is_true = match buckets.peek() {
            None => amount < need,
            Some(_) => buckets.any(|bucket| {
                self.truth
                    .had_room(bucket, since_us, i64::MAX, |room| room < need)
            }),
        };
        if is_true || self.failovers > 0 {
            return Ok(());
        }
        violated(
            8,
            format!(
                "refused as SPENT: {need} of {} {subject}, with room {:?}",
                limit.id,
                self.truth
                    .rooms
                    .iter()
                    .filter(|(bucket, _)| of_limit(bucket))
                    .collect::<Vec<_>>(),
            ),
        )
    }

    fn check_reserved(&self, limit: &Limit, subject: &str, since_us: u64, need: i64) -> Checked {
        if limit.unit == Unit::Rate {
            // Shares are divided, not lent for a request.
            return Ok(());
        }
        let name = (limit.id.to_string(), subject.to_owned());
        let seen = self.truth.obtainable.get(&name);
        let mut seen = seen.into_iter().flatten().rev();
        let since = |seen: &&(u64, i64)| seen.0 >= since_us;
        if seen.clone().take_while(since).any(|(_, most)| *most < need) || self.failovers > 0 {
            return Ok(());
        }
        let last: Vec<_> = seen.by_ref().take(5).collect();
        violated(
            8,
            format!(
                "refused as RESERVED: {need} of {} {subject}; could be had: {last:?}",
                limit.id
            ),
        )
    }

    /// Notes what could be had of a limit now, by asking back what lies idle in reach.
    pub fn note_obtainable(&mut self, limit: &str, subject: &str, asker: Option<usize>) {
        let Some(terms) = self.db.book.terms(limit) else {
            return;
        };
        let (key, _) = terms.bucket_of(&key_of(limit, subject), false, self.unix_us());
        let amount = i64::try_from(terms.amount).unwrap_or(i64::MAX);
        let mut most = self
            .db
            .book
            .bucket(&key)
            .map_or(amount, |bucket| bucket.sums.free());
        for (at, node) in self.nodes.iter().enumerate() {
            let Some(process) = &node.process else {
                continue;
            };
            let since_us = node.reachable_since_us.max(self.recalls_since_us);
            let is_in_reach = since_us.saturating_add(RECALLED_US) < self.now_us;
            if !is_in_reach && asker != Some(at) {
                continue;
            }
            let epoch = process.keeper.epoch();
            let accounts = process.waiters.values().map(|waiter| &waiter.account);
            let mut waited_for = accounts.filter(|it| **it.limit() == *limit);
            if waited_for.any(|it| **it.subject() == *subject) {
                // What came is for those who wait.
                continue;
            }
            let leases = process.leases.iter();
            let is_idle = |seen: &Seen| seen.idle_since_us + RECALL_US < self.now_us;
            let idle = leases
                .filter(|(name, seen)| name.epoch == epoch && seen.bucket == key && is_idle(seen));
            most += idle
                .map(|(_, seen)| seen.lease.available().max(0))
                .sum::<i64>();
        }
        let name = (limit.to_owned(), subject.to_owned());
        self.truth
            .obtainable
            .entry(name)
            .or_default()
            .push((self.now_us, most));
    }

    /// 5 and 6, when nothing is left to do: each exchange is in one record, unless its disk was lost
    /// or full.
    pub fn check_quiet(&self) -> Checked {
        for (number, fact) in &self.truth.exchanges {
            let is_lost = self.truth.may_be_lost(fact);
            let is_shown = fact.end == FactEnd::Unwritten;
            if fact.ledgered_at_us.is_none() && !is_lost && !is_shown {
                return violated(6, format!("exchange {number} is in no record: {fact:?}"));
            }
        }
        let unwritten = self
            .truth
            .exchanges
            .values()
            .filter(|fact| fact.end == FactEnd::Unwritten && !self.truth.may_be_lost(fact));
        let unwritten = unwritten.count() as u64;
        let gaps = self.db.gaps.iter().map(|gap| gap.to_seq - gap.from_seq + 1);
        let shown: u64 = gaps.sum();
        if shown < unwritten {
            return violated(
                6,
                format!("{unwritten} records were not written, gaps show {shown}"),
            );
        }
        self.check_estimated()
    }

    /// 3: limits that may be exceeded are exceeded by no more than what was reserved too little, and
    /// let through in outages.
    fn check_estimated(&self) -> Checked {
        if self.failovers > 0 {
            return Ok(());
        }
        let mut buckets: BTreeMap<BucketKey, (u64, u64)> = BTreeMap::new();
        for fact in self.truth.exchanges.values() {
            for part in &fact.parts {
                let limit = &self.scenario.limits[part.limit];
                if limit.is_strict() || !limit.is_counted() {
                    continue;
                }
                let (billed, excess) = part_of(limit, fact, part);
                let bucket = counted_in(&limit.terms, &part.bucket, fact.admitted_at_us);
                let sums = buckets.entry(bucket).or_default();
                sums.0 += billed;
                sums.1 += excess;
            }
        }
        for (bucket, (billed, excess)) in buckets {
            let highest = self.truth.highest.get(&bucket.limit).copied().unwrap_or(0);
            if billed > highest + excess {
                return violated(
                    3,
                    format!(
                        "{billed} billed of {highest} in {bucket:?}, {excess} beyond reservations"
                    ),
                );
            }
        }
        Ok(())
    }

    /// When every process has ended: nothing is held any more.
    pub fn check_over(&self) -> Checked {
        for row in self.db.rows() {
            if row.held > 0 {
                return violated(7, format!("every process has ended: {row:?}"));
            }
        }
        Ok(())
    }

    /// Whether every exchange that a process lost is in a gap of its shards.
    fn gaps_show(&self, boot_id: BootId) -> bool {
        let facts = self.truth.exchanges.values();
        let is_lost = |fact: &&Fact| fact.boot == boot_id.0 && fact.ledgered_at_us.is_none();
        let lost = facts.filter(is_lost).count() as u64;
        let gaps = self.db.gaps.iter();
        let own = gaps.filter(|gap| gap.shard.boot_id == boot_id);
        lost <= own.map(|gap| gap.to_seq - gap.from_seq + 1).sum()
    }

    /// 6: what was lost with disks is written down as unaccounted, and is no less than it was. Of a
    /// window that was over when its epoch was closed, gaps in its records say enough, if they show all
    /// that its process lost: it may have forgotten that window's lease.
    pub fn check_unaccounted(&self) -> Checked {
        let mut lost: BTreeMap<(&BucketKey, LeaseKey), u64> = BTreeMap::new();
        for fact in self.truth.exchanges.values() {
            if fact.ledgered_at_us.is_some() || !self.truth.may_be_lost(fact) {
                continue;
            }
            for part in &fact.parts {
                let limit = &self.scenario.limits[part.limit];
                if limit.is_strict() && limit.is_counted() {
                    let key = LeaseKey {
                        boot_id: BootId(fact.boot),
                        epoch: part.epoch,
                    };
                    *lost.entry((&part.bucket, key)).or_default() += used_of(limit, fact.used);
                }
            }
        }
        for ((key, lease), lost) in lost {
            let bucket = self.db.book.bucket(key);
            let noted = bucket.map_or(0, |bucket| bucket.lease(lease).unaccounted);
            let is_forgotten = bucket.is_some_and(|bucket| bucket.has_ended(self.unix_us()))
                && self.gaps_show(lease.boot_id);
            if noted < lost && self.failovers == 0 && !is_forgotten {
                return violated(
                    6,
                    format!("{lost} lost of {lease:?} in {key:?}, {noted} noted"),
                );
            }
        }
        Ok(())
    }
}

/// What a part was billed, and how much of that was not reserved.
fn part_of(limit: &Limit, fact: &Fact, part: &Part) -> (u64, u64) {
    let billed = match fact.end {
        FactEnd::Settled | FactEnd::Unwritten => part.settled,
        FactEnd::Open | FactEnd::Crashed => used_of(limit, fact.used),
    };
    // What an outage's allowance let through was reserved of nothing.
    let covered = if part.epoch == 0 { 0 } else { part.reserved };
    (billed, billed.saturating_sub(covered))
}

/// The bucket that a charge belongs to.
fn counted_in(terms: &Terms, bucket: &BucketKey, admitted_at_us: i64) -> BucketKey {
    terms.bucket_of(bucket, false, admitted_at_us).0
}

fn key_of(limit: &str, subject: &str) -> BucketKey {
    BucketKey {
        limit: limit.to_owned(),
        subject: subject.to_owned(),
        window_start_s: -1,
    }
}
