//! One exchange on a node, from its needs to its record: the seam to the request path.
//!
//! What a worker does in `filter-module` with an exchange of `filter_core::exchange` is done here
//! with reservations alone: reserve, take a slot, send, note, settle, append, free.

use std::sync::Arc;

use filter_agent::open_table::Slot;
use filter_core::credit::{
    Account, Charged, Mode, Need, Reservation, Shortage, Waiting, reserve, reserve_after_wait,
};
use filter_core::exchange::{AttemptTerms, OpenTerms, Progress};
use filter_llm::usage::Usage;
use proto::config::v1::{LimitUnit, Price};
use proto::metering::v1::{Attempt, Charge, End, UsageRecord, Verdict};

use crate::database::id_of;
use crate::mutant::Mutant;
use crate::outage::Outage;
use crate::process::{Process, Table};
use crate::scenario::{Enforcement, Limit, Unit};

/// What a client asks, and what the provider will do.
#[derive(Clone, Debug)]
pub struct Plan {
    pub number: u64,
    pub key: u64,
    pub worker: usize,
    /// Of output tokens; holds.
    pub bound: u64,
    pub estimate: u64,
    /// Pauses in microseconds, and the tokens that follow.
    pub frames: Vec<(u64, u64)>,
    /// How long the client stays while it waits for credit.
    pub patience_us: u64,
}

/// An exchange that is let through.
#[derive(Debug)]
pub struct Exchange {
    pub plan: Plan,
    /// Indices into the limits, one for each need.
    pub limits: Vec<usize>,
    reservation: Reservation,
    slot: Option<Slot<Table>>,
    pub used: u64,
    /// When a limit let it through without credit.
    pub outages: Vec<Outage>,
    pub frames_done: usize,
    pub admitted_at_us: i64,
}

/// A request that waits for credit.
#[derive(Debug)]
pub struct Waiter {
    pub plan: Plan,
    pub place: Waiting,
    pub account: Arc<Account>,
    /// Index of the need that it waits for.
    pub at: usize,
    pub deadline_us: u64,
}

/// A moment on a process's clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub mono_us: u64,
    pub wall_us: i64,
}

/// Where a process dies in a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dies {
    Not,
    BeforeAppend,
    BeforeFree,
}

/// How a frame left the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// More is to come.
    Goes,
    /// It was the last.
    Ends,
    /// What is reserved does not cover more.
    IsCut,
}

/// One nano-dollar a token.
fn price() -> Price {
    Price {
        input_pusd: Some(0),
        output_pusd: Some(1_000),
        ..Price::default()
    }
}

impl Plan {
    fn need(&self, limit: &Limit) -> u64 {
        match (limit.unit, limit.enforcement) {
            (Unit::Money, Enforcement::Strict) => self.bound,
            (Unit::Money, _) => self.estimate,
            _ => 1,
        }
    }

    /// What it needs at the limits' accounts of a process, in their order.
    pub fn needs(&self, limits: &[Limit], process: &Process) -> Vec<Need> {
        let need = |limit: &Limit| Need {
            account: process
                .accounts
                .account(&limit.account, &limit.subject(self.key)),
            amount: self.need(limit),
            mode: Mode::Must,
        };
        limits.iter().map(need).collect()
    }
}

/// What an exchange used of a limit.
pub fn used_of(limit: &Limit, used: u64) -> u64 {
    match limit.unit {
        Unit::Money => used,
        Unit::Requests | Unit::InFlight | Unit::Rate => 1,
    }
}

impl Exchange {
    /// Reserves and takes a slot; nothing is sent yet.
    pub fn admit(
        plan: &Plan,
        limits: &[Limit],
        process: &mut Process,
        now: Moment,
        has_waited: bool,
    ) -> Result<Self, Shortage> {
        let needs = plan.needs(limits, process);
        let reservation = if has_waited {
            reserve_after_wait(&needs, now.mono_us)?
        } else {
            reserve(&needs, now.mono_us)?
        };
        let mut exchange = Self {
            plan: plan.clone(),
            limits: (0..limits.len()).collect(),
            reservation,
            slot: None,
            used: 0,
            outages: Vec::new(),
            frames_done: 0,
            admitted_at_us: now.wall_us,
        };
        exchange.open(limits, process);
        Ok(exchange)
    }

    fn open(&mut self, limits: &[Limit], process: &mut Process) {
        let charges: Vec<Charged> = self.reservation.open_charges().collect();
        let units: Vec<LimitUnit> = charges
            .iter()
            .map(|charged| match limits[charged.need].unit {
                Unit::Money => LimitUnit::Money,
                Unit::Requests | Unit::Rate => LimitUnit::Requests,
                Unit::InFlight => LimitUnit::InFlight,
            })
            .collect();
        let mut record = self.record(charges);
        let terms = OpenTerms {
            text_bytes: 0,
            estimates: true,
            units: &units,
        };
        let shard = &mut process.shards[self.plan.worker];
        self.slot = shard.table.open(&mut record, &terms);
        assert!(self.slot.is_some(), "a slot is free");
    }

    /// The charges as they stand, for those who keep the truth.
    pub fn charges(&self) -> Vec<Charged> {
        self.reservation.open_charges().collect()
    }

    /// The one attempt begins: from here on the provider may have it.
    pub fn send(&mut self, process: &mut Process) {
        let mut attempt = Attempt {
            number: 1,
            ..Attempt::default()
        };
        let price = price();
        let terms = AttemptTerms {
            price: Some(&price),
            ..AttemptTerms::default()
        };
        let shard = &mut process.shards[self.plan.worker];
        if let Some(slot) = &mut self.slot {
            assert!(
                shard.table.begin_attempt(slot, &mut attempt, &terms),
                "it has room"
            );
        }
        self.note();
    }

    fn note(&mut self) {
        if let Some(slot) = &mut self.slot {
            slot.note(&Progress {
                number: 1,
                is_sent: true,
                visible_bytes: self.used * 4,
                ..Progress::default()
            });
        }
    }

    /// Extends what is reserved for the next frame where it has to be, or cuts the answer.
    pub fn before_frame(&mut self, limits: &[Limit], now: Moment) -> Flow {
        let Some((_, tokens)) = self.plan.frames.get(self.frames_done) else {
            return Flow::Ends;
        };
        let after = self.used + tokens;
        for (need, limit) in self.limits.iter().map(|at| &limits[*at]).enumerate() {
            if limit.enforcement != Enforcement::Guarded || limit.unit != Unit::Money {
                continue;
            }
            let reserved = self.reservation.reserved(need);
            if after * 5 > reserved * 4 {
                let more = (self.plan.estimate / 2).max(after.saturating_sub(reserved));
                if !self.reservation.extend(need, more, now.mono_us) && after > reserved {
                    return Flow::IsCut;
                }
            }
        }
        Flow::Goes
    }

    /// The frame has come.
    pub fn on_frame(&mut self) -> u64 {
        let (_, tokens) = self.plan.frames[self.frames_done];
        self.frames_done += 1;
        self.used += tokens;
        self.note();
        tokens
    }

    /// Settles, writes the record, frees the slot; as far as the process lives. What was charged,
    /// and whether the record was lost to the disk.
    pub fn settle(
        mut self,
        limits: &[Limit],
        process: &mut Process,
        dies: Dies,
        mutant: Option<Mutant>,
    ) -> (Vec<Charged>, bool) {
        let reservation = std::mem::take(&mut self.reservation);
        let used = self.used;
        let mut actual = |need: usize| used_of(&limits[need], used);
        let charges: Vec<Charged> = reservation.settle(&mut actual).collect();
        let mut slot = self.slot.take();
        let shard = self.plan.worker;
        if mutant == Some(Mutant::FreesSlotFirst)
            && let Some(slot) = slot.take()
        {
            process.shards[shard].table.free(slot);
        }
        if dies == Dies::BeforeAppend {
            return (charges, false);
        }
        let mut record = self.record(charges.clone());
        record.end = End::Complete.into();
        record.attempts = vec![Attempt {
            number: 1,
            verdict: Verdict::Billed.into(),
            usage: Some(reported(used)),
            ..Attempt::default()
        }];
        let is_lost = process.append(shard, &record);
        if dies == Dies::Not
            && let Some(slot) = slot.take()
        {
            process.shards[shard].table.free(slot);
        }
        (charges, is_lost)
    }

    fn record(&self, charges: Vec<Charged>) -> UsageRecord {
        let charges = charges.into_iter().map(|charged| Charge {
            limit: charged.limit.to_string(),
            subject: charged.subject.to_string(),
            window_start_s: charged.window_start_s,
            epoch: charged.epoch,
            reserved: charged.reserved,
            settled: charged.settled,
        });
        UsageRecord {
            exchange_id: id_of(self.plan.number),
            admitted_at_us: self.admitted_at_us,
            charges: charges.collect(),
            ..UsageRecord::default()
        }
    }
}

fn reported(output: u64) -> proto::metering::v1::Usage {
    let usage = Usage {
        output,
        ..Usage::default()
    };
    proto::metering::v1::Usage {
        output: usage.output,
        ..Default::default()
    }
}
