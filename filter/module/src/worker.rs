//! What one worker thread keeps: its shard of the spool, its counts, its generator.

use std::{
    cell::RefCell,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use filter_agent::spool::{Appended, ShardWriter};
use filter_core::{
    exchange::{Exchange, Settled, StreamEnd},
    host::HeldBodies,
};

use crate::{
    agent::disk::StateDir, clock::SystemClock, entropy::Generator, exchanges, log, metrics::Counts,
    node::ThisNode,
};

/// Request bytes that this process holds.
pub(crate) static HELD: HeldBodies = HeldBodies::new();

static NODE: OnceLock<Arc<ThisNode>> = OnceLock::new();
static WORKERS: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());
static SHUTTING_DOWN: AtomicBool = AtomicBool::new(false);

/// What the main thread reads of a worker, about once a second.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    open: AtomicU64,
    /// Locked by its worker for each request and by the main thread once a second.
    pub(crate) counts: Mutex<Counts>,
}

struct Worker {
    writer: Option<ShardWriter<StateDir>>,
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
        let shared = Arc::new(Shared::default());
        if let Ok(mut workers) = WORKERS.lock() {
            workers.push(Arc::clone(&shared));
        }
        let writer = NODE.get().map(|node| node.writer(index));
        *worker = Some(Worker {
            writer,
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

/// Settles an exchange: its record goes to the spool, its sample to the counts.
pub(crate) fn settle(exchange: &mut Exchange, end: &StreamEnd<'_>) {
    note_open_count();
    WORKER.with_borrow_mut(|worker| {
        let Some(worker) = worker else { return };
        exchange.settle_into(end, &SystemClock, &mut worker.settled);
        let mut lost = false;
        if let Some(record) = &worker.settled.record {
            lost = match &mut worker.writer {
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
    workers
        .iter()
        .map(|worker| worker.open.load(Ordering::Relaxed))
        .sum()
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
