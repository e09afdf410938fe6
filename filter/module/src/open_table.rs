//! The exchanges that this worker has open, in memory that outlives the process.
//!
//! The tables come from [`Supply`], which the main thread fills before there are streams and the
//! agent about once a second. What is in them is `filter_agent::open_table`.

use std::{
    cell::RefCell,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use filter_agent::{
    open_table::{self, OpenTable, TABLE_SLOTS},
    spool::DiskError,
};
use filter_shared_memory::SharedFile;
use proto::metering::v1::{Attempt, UsageRecord};

use crate::{exchanges::Open, node::ThisNode};

/// Of one worker; 128 MiB of disk. More streams than that are open by a mistake.
const TABLES_MAX: u32 = 64;

/// The slot of one exchange.
pub(crate) type Slot = open_table::Slot<SharedFile>;

/// Tables on their way to one worker.
#[derive(Debug)]
pub(crate) struct Supply {
    shard: u32,
    made: AtomicU32,
    ready: Mutex<Vec<SharedFile>>,
    /// Not 0 if there is something to take; asked without the lock.
    waiting: AtomicU32,
    /// Tables made before are not to be used any more.
    given_up: AtomicBool,
    /// Exchanges and attempts that found no room.
    full: AtomicU64,
}

impl Supply {
    pub(crate) fn new(shard: u32) -> Self {
        Self {
            shard,
            made: AtomicU32::new(0),
            ready: Mutex::default(),
            waiting: AtomicU32::new(0),
            given_up: AtomicBool::new(false),
            full: AtomicU64::new(0),
        }
    }

    /// Makes as many tables as twice the exchanges that are open need, and at least one. Called by
    /// one thread at a time, never by a worker.
    ///
    /// # Errors
    /// If the disk has no room or fails.
    pub(crate) fn fill(&self, node: &ThisNode, open: u64) -> Result<(), DiskError> {
        let slots = open.saturating_mul(2).max(1);
        let tables = slots.div_ceil(u64::try_from(TABLE_SLOTS).unwrap_or(1));
        let wanted = u32::try_from(tables).unwrap_or(u32::MAX).min(TABLES_MAX);
        while self.made.load(Ordering::Relaxed) < wanted {
            let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
            let table = node.open_table(self.shard, number).inspect_err(|_| {
                self.made.fetch_sub(1, Ordering::Relaxed);
            })?;
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            ready.push(table);
            self.waiting.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// The files of all tables are gone: their worker is to have new ones.
    pub(crate) fn give_up(&self) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.clear();
        self.made.store(0, Ordering::Relaxed);
        self.given_up.store(true, Ordering::Relaxed);
        self.waiting.store(1, Ordering::Release);
    }

    /// Exchanges and attempts that found no room since the last call.
    pub(crate) fn take_full(&self) -> u64 {
        self.full.swap(0, Ordering::Relaxed)
    }

    /// Gives a worker what is ready for it.
    fn hand_over(&self, to: &mut OpenTable<SharedFile>) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.store(0, Ordering::Relaxed);
        if self.given_up.swap(false, Ordering::Relaxed) {
            to.give_up();
        }
        ready.drain(..).for_each(|table| to.add(table));
    }
}

/// What a worker keeps.
struct Local {
    supply: Arc<Supply>,
    table: OpenTable<SharedFile>,
    /// Refilled by each exchange.
    record: UsageRecord,
    attempt: Attempt,
}

thread_local! {
    static LOCAL: RefCell<Option<Local>> = const { RefCell::new(None) };
}

/// Makes this thread's table.
pub(crate) fn enter(supply: Arc<Supply>) {
    LOCAL.set(Some(Local {
        supply,
        table: OpenTable::default(),
        record: UsageRecord::default(),
        attempt: Attempt::default(),
    }));
}

/// The exchange was admitted: it takes a slot. Nothing happens if it was not, or has one.
pub(crate) fn admit(open: &mut Open) {
    if open.slot.is_some() {
        return;
    }
    with_local(|local| {
        let Some(terms) = open.exchange.write_open(&mut local.record) else {
            return;
        };
        if local.supply.waiting.load(Ordering::Acquire) > 0 {
            local.supply.hand_over(&mut local.table);
        }
        open.slot = local.table.open(&mut local.record, &terms);
        if open.slot.is_none() {
            local.supply.full.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// An attempt has begun, and nothing of it has left yet.
pub(crate) fn begin_attempt(open: &mut Open) {
    let Open {
        exchange,
        slot: Some(slot),
    } = open
    else {
        return;
    };
    // What became of the one before.
    exchange
        .progress()
        .for_each(|progress| slot.note(&progress));
    with_local(|local| {
        let Some(terms) = exchange.write_open_attempt(&mut local.attempt) else {
            return;
        };
        let begun = local.table.begin_attempt(slot, &mut local.attempt, &terms);
        if !begun {
            local.supply.full.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// Notes how far the exchange has come.
pub(crate) fn note(open: &mut Open) {
    if let (Some(slot), Some(progress)) = (&mut open.slot, open.exchange.progress().next_back()) {
        slot.note(&progress);
    }
}

/// The exchange's record is in the spool, or lost and counted there.
pub(crate) fn free(slot: Option<Slot>) {
    let Some(slot) = slot else { return };
    with_local(|local| local.table.free(slot));
}

fn with_local(f: impl FnOnce(&mut Local)) {
    LOCAL.with_borrow_mut(|local| {
        if let Some(local) = local {
            f(local);
        }
    });
}
