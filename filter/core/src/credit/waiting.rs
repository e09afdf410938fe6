//! Requests that wait for credit, first come first served, per account.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Account;

/// Wakes one who waits. Called on the agent's thread: it must not block.
pub trait Wake: Send + Sync {
    /// There may be something to be had, or an answer: try again.
    fn wake(&self);
}

/// Too many wait already, for this account or in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests wait for credit")]
pub struct Crowded;

/// A place in an account's queue; dropping it gives it up. It outlasts being woken: one who then
/// finds too little keeps its place with [`Self::again`].
#[derive(Debug)]
pub struct Waiting {
    account: Arc<Account>,
    ticket: u64,
}

/// Those who wait at one account.
#[derive(Default)]
pub(crate) struct Queue {
    line: Mutex<Line>,
    length: AtomicUsize,
}

#[derive(Default)]
struct Line {
    tickets: u64,
    waiters: BTreeMap<u64, Waiter>,
}

struct Waiter {
    need: u64,
    wake: Arc<dyn Wake>,
    woken: bool,
}

// === impl Waiting ===

impl Waiting {
    pub(crate) fn new(account: Arc<Account>, ticket: u64) -> Self {
        Self { account, ticket }
    }

    /// Waits on in the same place, after having been woken in vain.
    pub fn again(&self, need: u64) {
        self.account.wait_again(self.ticket, need);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.account.left_queue(self.ticket);
    }
}

// === impl Queue ===

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::Acquire) == 0
    }

    pub(crate) fn join(&self, need: u64, wake: Arc<dyn Wake>, cap: usize) -> Option<u64> {
        let mut line = self.line();
        if line.waiters.len() >= cap {
            return None;
        }
        let ticket = line.tickets;
        line.tickets += 1;
        let woken = false;
        line.waiters.insert(ticket, Waiter { need, wake, woken });
        self.length.store(line.waiters.len(), Ordering::Release);
        Some(ticket)
    }

    pub(crate) fn again(&self, ticket: u64, need: u64) {
        if let Some(waiter) = self.line().waiters.get_mut(&ticket) {
            waiter.need = need;
            waiter.woken = false;
        }
    }

    pub(crate) fn leave(&self, ticket: u64) {
        let mut line = self.line();
        let waiter = line.waiters.remove(&ticket);
        self.length.store(line.waiters.len(), Ordering::Release);
        // Whatever its waker owns is dropped without the lock.
        drop(line);
        drop(waiter);
    }

    /// What the first of those who sleep and `count` needs, and all of them together. None: nobody
    /// does.
    pub(crate) fn needs(&self, count: impl Fn(u64) -> bool) -> Option<(u64, u64)> {
        let line = self.line();
        let mut needs = line
            .waiters
            .values()
            .filter(|waiter| !waiter.woken && count(waiter.need))
            .map(|waiter| waiter.need);
        let first = needs.next()?;
        Some((first, needs.fold(first, u64::saturating_add)))
    }

    /// Asks about each in order, by its need and whether it is awake already, whether it may go, and
    /// wakes those who may.
    pub(crate) fn wake(&self, mut may_go: impl FnMut(u64, bool) -> bool) {
        let mut awake = Vec::new();
        for waiter in self.line().waiters.values_mut() {
            if may_go(waiter.need, waiter.woken) && !waiter.woken {
                waiter.woken = true;
                awake.push(Arc::clone(&waiter.wake));
            }
        }
        // Without the lock: a waker may drop its `Waiting` at once.
        awake.iter().for_each(|wake| wake.wake());
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}
