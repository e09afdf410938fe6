//! Requests that wait for credit: who rings them awake, and who ends their wait.
//!
//! A waiting stream costs its worker nothing. The agent's thread wakes it when there is credit or
//! an answer; the main thread, which looks every 100 ms, when its time is over. Either only posts
//! to the worker, which then asks the exchange.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use filter_core::credit::Wake;
use filter_envoy_abi::StreamScheduler;

/// How often the main thread looks for waits that are over.
pub(crate) const SWEEP_MS: u64 = 100;

/// The event by which a downstream stream is woken.
const AWAKE: u64 = 1;

/// By deadline, then number.
static WAITING: Mutex<BTreeMap<Key, StreamScheduler>> = Mutex::new(BTreeMap::new());
/// Rises with each wait.
static NUMBER: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    until_us: u64,
    number: u64,
}

/// One stream's wait; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Wait(Key);

impl Wait {
    /// The stream is woken at `until_us` of the monotonic clock, if not before.
    pub(crate) fn until(until_us: u64, stream: StreamScheduler) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let key = Key { until_us, number };
        waiting().insert(key, stream);
        Self(key)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let stream = waiting().remove(&self.0);
        // Without the lock: it may be the last handle.
        drop(stream);
    }
}

/// Wakes a stream when there is credit.
struct Alarm(StreamScheduler);

impl Wake for Alarm {
    fn wake(&self) {
        self.0.commit(AWAKE);
    }
}

/// What the agent rings for this stream.
pub(crate) fn alarm(stream: StreamScheduler) -> Arc<dyn Wake> {
    Arc::new(Alarm(stream))
}

/// Wakes every stream whose wait is over. Called on the main thread.
pub(crate) fn sweep(now_us: u64) {
    let over = {
        let mut waiting = waiting();
        let later = waiting.split_off(&Key {
            until_us: now_us.saturating_add(1),
            number: 0,
        });
        std::mem::replace(&mut *waiting, later)
    };
    over.values().for_each(|stream| stream.commit(AWAKE));
}

fn waiting() -> MutexGuard<'static, BTreeMap<Key, StreamScheduler>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}
