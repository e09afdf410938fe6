//! The config that this node serves, published to the workers without a lock.
//!
//! A worker keeps a reference of its own and compares one version number per request. The agent
//! keeps every config that it has published until no one else does, so that a config is freed on
//! the agent's thread and never on a worker.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use filter_core::{
    config::{Compiled, Resources, compile},
    exchange::Config,
    host::NodeState,
};

use crate::clock;

static CURRENT: LazyLock<ArcSwap<Compiled>> =
    LazyLock::new(|| ArcSwap::from_pointee(compile(&Resources::default()).0));
/// Rises with each publication; 0 is the empty config.
static PUBLICATION: AtomicU64 = AtomicU64::new(0);
/// Held until only this list holds them.
static KEPT: Mutex<Vec<Arc<Compiled>>> = Mutex::new(Vec::new());

/// Monotonic microseconds until which an unknown key may be called unknown.
static IN_SYNC_UNTIL_US: AtomicU64 = AtomicU64::new(0);
/// Monotonic microseconds until which the config may be served.
static FRESH_UNTIL_US: AtomicU64 = AtomicU64::new(0);
static CONNECTED: AtomicBool = AtomicBool::new(false);

/// How long after a lost connection this node still answers 401 for keys it does not know.
const IN_SYNC_GRACE_US: u64 = 5_000_000;

/// Makes a config the one that new exchanges begin with, and frees those no longer in use.
/// Called by the agent's thread, and once on the main thread before it starts.
pub(crate) fn publish(compiled: Compiled) {
    let compiled = Arc::new(compiled);
    CURRENT.store(Arc::clone(&compiled));
    PUBLICATION.fetch_add(1, Ordering::Release);
    if let Ok(mut kept) = KEPT.lock() {
        kept.retain(|config| Arc::strong_count(config) > 1);
        kept.push(compiled);
    }
}

/// Frees the configs that nobody uses any more. Called by the agent's thread from time to time.
pub(crate) fn sweep() {
    if let Ok(mut kept) = KEPT.lock() {
        kept.retain(|config| Arc::strong_count(config) > 1);
    }
}

/// The control plane's stream is up and its newest checkpoint is applied.
pub(crate) fn note_in_sync() {
    CONNECTED.store(true, Ordering::Relaxed);
    IN_SYNC_UNTIL_US.store(u64::MAX, Ordering::Relaxed);
    FRESH_UNTIL_US.store(u64::MAX, Ordering::Relaxed);
}

/// The stream was lost; the config may be served for `max_stale_us` more.
pub(crate) fn note_disconnected(max_stale_us: u64) {
    if CONNECTED.swap(false, Ordering::Relaxed) {
        let now = clock::mono_us();
        IN_SYNC_UNTIL_US.store(now.saturating_add(IN_SYNC_GRACE_US), Ordering::Relaxed);
        FRESH_UNTIL_US.store(now.saturating_add(max_stale_us), Ordering::Relaxed);
    }
}

/// A config read from disk may be served for this long.
pub(crate) fn note_restored(fresh_for_us: u64) {
    FRESH_UNTIL_US.store(
        clock::mono_us().saturating_add(fresh_for_us),
        Ordering::Relaxed,
    );
}

/// What the core must know of this node's connection.
pub(crate) fn node_state(now_us: u64) -> NodeState {
    NodeState {
        in_sync: now_us < IN_SYNC_UNTIL_US.load(Ordering::Relaxed),
        stale: now_us >= FRESH_UNTIL_US.load(Ordering::Relaxed),
    }
}

struct Cached {
    publication: u64,
    config: Config,
}

thread_local! {
    static CACHED: RefCell<Option<Cached>> = const { RefCell::new(None) };
}

/// The newest config, for an exchange that begins on this worker.
pub(crate) fn current() -> Config {
    let publication = PUBLICATION.load(Ordering::Acquire);
    CACHED.with_borrow_mut(|cached| match cached {
        Some(cached) if cached.publication == publication => Rc::clone(&cached.config),
        _ => {
            let config = Rc::new(CURRENT.load_full());
            *cached = Some(Cached {
                publication,
                config: Rc::clone(&config),
            });
            config
        }
    })
}
