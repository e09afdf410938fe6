//! What one worker thread keeps: its shard of the spool, its counts, its generator.

use std::{
    cell::RefCell,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use filter_agent::spool::{Appended, ShardWriter};
use filter_core::{
    exchange::{Exchange, Settled, StreamEnd},
    health::Health,
    host::HeldBodies,
};

use crate::{
    agent::disk::StateDir,
    clock::SystemClock,
    entropy::Generator,
    exchanges::{self, Open},
    log,
    metrics::Counts,
    node::ThisNode,
    open_table::{self, Supply},
};

/// Request bytes that this process holds.
pub(crate) static HELD: HeldBodies = HeldBodies::new();

/// What this process knows of failing targets.
#[cfg(not(test))]
pub(crate) fn health() -> &'static Health {
    static HEALTH: Health = Health::new();
    &HEALTH
}

/// The same, for each test apart: they run in threads of one process.
#[cfg(test)]
pub(crate) fn health() -> &'static Health {
    thread_local!(static HEALTH: &'static Health = Box::leak(Box::default()));
    HEALTH.with(|health| *health)
}

static NODE: OnceLock<Arc<ThisNode>> = OnceLock::new();
static WORKERS: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());
static SHUTTING_DOWN: AtomicBool = AtomicBool::new(false);

/// What other threads see of a worker, about once a second.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    open: AtomicU64,
    /// Locked by its worker for each record, and by the agent, which does no more than a short
    /// write under it.
    spool: Mutex<Option<ShardWriter<StateDir>>>,
    /// Of tables of open exchanges; `None` if there is no bootstrap extension.
    pub(crate) supply: Option<Arc<Supply>>,
    /// Locked by its worker for each request and by the main thread once a second.
    pub(crate) counts: Mutex<Counts>,
}

impl Shared {
    /// Exchanges open on this worker, as of its last change.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// This worker's shard; `None` if there is no bootstrap extension.
    pub(crate) fn spool(&self) -> MutexGuard<'_, Option<ShardWriter<StateDir>>> {
        // Nothing of a writer is left half changed by a panic.
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Worker {
    generator: Generator,
    /// Refilled by each exchange, so that settling allocates nothing new.
    settled: Settled,
    shared: Arc<Shared>,
}

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Called once, before there are workers.
pub(crate) fn install(node: Arc<ThisNode>) {
    if NODE.set(node).is_err() {
        log::error("two bootstrap extensions in one process; the first one's spool is used");
    }
}

/// Makes this thread's worker when it handles its first stream.
pub(crate) fn enter(index: u32) {
    WORKER.with_borrow_mut(|worker| {
        if worker.is_some() {
            return;
        }
        let shared = Arc::new(Shared {
            spool: Mutex::new(NODE.get().map(|node| node.writer(index))),
            supply: NODE.get().map(|node| node.supply(index)),
            ..Shared::default()
        });
        if let Some(supply) = &shared.supply {
            open_table::enter(Arc::clone(supply));
        }
        if let Ok(mut workers) = WORKERS.lock() {
            workers.push(Arc::clone(&shared));
        }
        *worker = Some(Worker {
            generator: Generator::new(),
            settled: Settled::default(),
            shared,
        });
    });
}

/// Random bytes for one exchange.
pub(crate) fn entropy() -> [u8; 32] {
    WORKER.with_borrow_mut(|worker| match worker {
        Some(worker) => worker.generator.bytes(),
        None => crate::entropy::system(),
    })
}

/// The number of exchanges open on this worker has changed.
pub(crate) fn note_open_count() {
    WORKER.with_borrow(|worker| {
        if let Some(worker) = worker {
            let open = u64::try_from(exchanges::open_count()).unwrap_or(u64::MAX);
            worker.shared.open.store(open, Ordering::Relaxed);
        }
    });
}

/// Settles an exchange: its record goes to the spool, its sample to the counts, and its slot is
/// free.
pub(crate) fn settle(open: &mut Open, end: &StreamEnd<'_>) {
    settle_exchange(&mut open.exchange, end);
    // Not before the record is there: whoever adopts a dead process finds one or the other.
    open_table::free(open.slot.take());
}

fn settle_exchange(exchange: &mut Exchange, end: &StreamEnd<'_>) {
    note_open_count();
    WORKER.with_borrow_mut(|worker| {
        let Some(worker) = worker else { return };
        exchange.settle_into(end, &SystemClock, &mut worker.settled);
        let mut lost = false;
        if let Some(record) = &worker.settled.record {
            lost = match &mut *worker.shared.spool() {
                Some(writer) => matches!(writer.append(record), Appended::Lost { .. }),
                None => true,
            };
        }
        if let Ok(mut counts) = worker.shared.counts.lock() {
            counts.add(&worker.settled.sample);
            counts.lost_records += u64::from(lost);
        }
    });
}

/// A wait for credit is over: `forwarded`, `refused` or `gone`.
pub(crate) fn note_wait(outcome: &'static str, waited_us: u64) {
    WORKER.with_borrow(|worker| {
        let Some(worker) = worker else { return };
        if let Ok(mut counts) = worker.shared.counts.lock() {
            counts.add_wait(outcome, waited_us);
        }
    });
}

/// Shows the access-log fields of the exchange that was settled last.
pub(crate) fn with_log(show: impl FnOnce(&[(&str, &[u8])])) {
    WORKER.with_borrow(|worker| {
        let Some(worker) = worker else { return };
        let entries: Vec<(&str, &[u8])> = worker
            .settled
            .log
            .iter()
            .map(|(key, value)| (key, value.as_bytes()))
            .collect();
        show(&entries);
    });
}

/// Exchanges open in this process, as of each worker's last change.
pub(crate) fn open_exchanges() -> u64 {
    let workers = all();
    workers.iter().map(|worker| worker.open()).sum()
}

/// Every worker that has handled a stream.
pub(crate) fn all() -> Vec<Arc<Shared>> {
    WORKERS
        .lock()
        .map(|workers| workers.clone())
        .unwrap_or_default()
}

/// From here on, open exchanges end because this process stops.
pub(crate) fn note_shutting_down() {
    SHUTTING_DOWN.store(true, Ordering::Relaxed);
}

pub(crate) fn is_shutting_down() -> bool {
    SHUTTING_DOWN.load(Ordering::Relaxed)
}
