//! What can happen next, and when.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use proto::metering::v1::{LeaseDown, LeaseUp, UsageDown, UsageUp};

use crate::random::Random;

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// A client asks node `node` something.
    Arrive {
        node: usize,
    },
    /// The agent of a process looks.
    Poll {
        node: usize,
        life: u32,
    },
    /// A worker turns to an exchange or a request that waits.
    Worker {
        node: usize,
        life: u32,
        number: u64,
        turn: Turn,
    },
    Connect {
        node: usize,
        life: u32,
        kind: Kind,
    },
    LeaseUp {
        stream: u64,
        message: LeaseUp,
    },
    LeaseDown {
        stream: u64,
        message: LeaseDown,
    },
    UsageUp {
        stream: u64,
        message: UsageUp,
    },
    UsageDown {
        stream: u64,
        message: UsageDown,
    },
    /// One end of a stream learns that it is over.
    Broken {
        stream: u64,
        end: End,
    },
    /// A replica looks after its streams, and the database.
    Tick {
        replica: usize,
        life: u32,
    },
    Start {
        node: usize,
    },
    StartReplica {
        replica: usize,
    },
    StoreIsBack,
    DiskHasRoom {
        disk: usize,
    },
    /// A process looks for dead ones, and after its disk.
    Upkeep {
        node: usize,
        life: u32,
    },
    /// Something goes wrong.
    Fault(Fault),
    /// The database is copied, to be fallen back on.
    Copy,
    /// A process that ends in order has had its time.
    Overdue {
        node: usize,
        life: u32,
    },
}

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It was woken.
    Woken,
    /// The time to wait is over.
    Deadline,
    /// The client went away while it waited.
    Gone,
    /// A frame of the answer is due, or its end.
    Frame,
}

/// Streams of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Lease,
    Usage,
}

/// Ends of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Node,
    Replica,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Break,
    Partition,
    Kill,
    KillReplica,
    StoreGoes,
    DiskFills,
    Amount,
    Failover,
}

/// Events in the order of time; those of one moment in an order of the seed's.
#[derive(Debug, Default)]
pub struct Agenda {
    queue: BinaryHeap<Reverse<Entry>>,
    made: u64,
}

#[derive(Debug)]
struct Entry {
    at_us: u64,
    lot: u64,
    number: u64,
    event: Event,
}

impl Agenda {
    /// Something is to happen at `at_us`.
    pub fn put(&mut self, at_us: u64, event: Event, random: &mut Random) {
        self.made += 1;
        self.queue.push(Reverse(Entry {
            at_us,
            lot: random.draw(),
            number: self.made,
            event,
        }));
    }

    /// What happens next.
    pub fn take_next(&mut self) -> Option<(u64, Event)> {
        let Reverse(entry) = self.queue.pop()?;
        Some((entry.at_us, entry.event))
    }
}

impl Entry {
    const fn order(&self) -> (u64, u64, u64) {
        (self.at_us, self.lot, self.number)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}
