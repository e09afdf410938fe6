//! What really happened, which no part of the product knows as a whole.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_core::limit::BucketKey;
use filter_core::credit::Charged;

/// Everything that was admitted, and what each bucket's room was over time.
#[derive(Debug, Default)]
pub struct Truth {
    pub exchanges: BTreeMap<u64, Fact>,
    /// What providers billed, by bucket, for limits whose exchanges hold on to one lease.
    pub billed: BTreeMap<BucketKey, u64>,
    /// The highest amount that a limit ever had.
    pub highest: BTreeMap<String, u64>,
    /// When a bucket's room (what is not settled) changed, and what it was from then on.
    pub rooms: BTreeMap<BucketKey, Vec<(u64, i64)>>,
    /// What could have been had of a limit and subject, others' idle credit included, at some
    /// moments.
    pub obtainable: BTreeMap<(String, String), Vec<(u64, i64)>>,
    /// Disks that were lost took these processes with them.
    pub lost_boots: BTreeSet<[u8; 16]>,
    /// Processes that did not end in order.
    pub killed_boots: BTreeSet<[u8; 16]>,
    /// Requests by how they ended.
    pub tally: Tally,
}

/// One admitted exchange.
#[derive(Debug)]
pub struct Fact {
    pub boot: [u8; 16],
    /// Of admission, as its record has it.
    pub admitted_at_us: i64,
    /// As reserved at admission; as charged once it is settled.
    pub parts: Vec<Part>,
    /// Tokens that the provider billed.
    pub used: u64,
    pub end: FactEnd,
    pub ledgered_at_us: Option<u64>,
}

/// How an exchange ended, on the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactEnd {
    Open,
    Settled,
    /// Its process died.
    Crashed,
    /// The disk did not take its record.
    Unwritten,
}

/// What an exchange has of one bucket.
#[derive(Clone, Debug)]
pub struct Part {
    /// Index of the limit.
    pub limit: usize,
    pub bucket: BucketKey,
    pub epoch: u64,
    pub reserved: u64,
    /// As charged; 0 while it is open.
    pub settled: u64,
}

/// Requests by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub asked: u64,
    pub admitted: u64,
    pub waited: u64,
    pub spent: u64,
    pub reserved: u64,
    pub too_fast: u64,
    pub unavailable: u64,
    pub gone: u64,
    pub crashed: u64,
    pub cut: u64,
}

impl Part {
    /// What a charge is.
    pub fn of(charged: &Charged) -> Self {
        Self {
            limit: charged.need,
            bucket: BucketKey {
                limit: charged.limit.to_string(),
                subject: charged.subject.to_string(),
                window_start_s: charged.window_start_s,
            },
            epoch: charged.epoch,
            reserved: charged.reserved,
            settled: charged.settled,
        }
    }
}

impl Truth {
    /// Whether an exchange's record may be lost without a trace but in its leases: with its disk, or
    /// because a full disk did not take it and the process was killed before it could say so.
    pub fn may_be_lost(&self, fact: &Fact) -> bool {
        let is_unsaid = fact.end == FactEnd::Unwritten && self.killed_boots.contains(&fact.boot);
        is_unsaid || self.lost_boots.contains(&fact.boot)
    }

    /// Whether `holds` was true of a bucket's room at any time from `since_us` on. Without a word of
    /// it the room is `amount`.
    pub fn had_room(
        &self,
        bucket: &BucketKey,
        since_us: u64,
        amount: i64,
        holds: impl Fn(i64) -> bool,
    ) -> bool {
        let Some(rooms) = self.rooms.get(bucket) else {
            return holds(amount);
        };
        let before = rooms.iter().rev().find(|(at_us, _)| *at_us < since_us);
        let at_first = before.map_or(amount, |(_, room)| *room);
        let later = rooms
            .iter()
            .rev()
            .take_while(|(at_us, _)| *at_us >= since_us);
        holds(at_first) || later.into_iter().any(|(_, room)| holds(*room))
    }

    /// Notes a bucket's room.
    pub fn note_room(&mut self, bucket: &BucketKey, now_us: u64, room: i64) {
        let rooms = match self.rooms.get_mut(bucket) {
            Some(rooms) => rooms,
            None => self.rooms.entry(bucket.clone()).or_default(),
        };
        if rooms.last().is_none_or(|(_, last)| *last != room) {
            rooms.push((now_us, room));
        }
    }
}
