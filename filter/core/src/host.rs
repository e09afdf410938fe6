//! What a shell lends: the clock, the clusters, a way to change headers, and the node's state.

use std::sync::atomic::{AtomicU64, Ordering};

/// A moment, by two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds of a clock that never goes back; durations come from it.
    pub mono_us: u64,
    /// Microseconds since the Unix epoch; expiry and the ledger's days come from it.
    pub unix_us: i64,
}

impl Now {
    /// Whole seconds since the Unix epoch; 0 before it.
    pub(crate) fn unix_s(self) -> u64 {
        u64::try_from(self.unix_us / 1_000_000).unwrap_or(0)
    }
}

/// Tells the time when asked, which the core does a few times per request and never once per frame.
pub trait Clock {
    /// The present moment.
    fn now(&self) -> Now;
}

/// What Envoy knows about clusters on this worker.
pub trait Clusters {
    /// True when the cluster exists and has at least one host.
    fn has_hosts(&self, cluster: &str) -> bool;
}

/// Headers that can be changed. Names are lower case, pseudo headers start with a colon.
pub trait HeaderSink {
    /// Replaces every value of `name`.
    fn set(&mut self, name: &str, value: &[u8]);
    /// Removes every value of `name`; does nothing when there is none.
    fn remove(&mut self, name: &str);
}

/// How far this node may trust what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// Connected and in sync with the control plane, or was within the last 5 seconds.
    pub in_sync: bool,
    /// The config is older than `max_stale`, or there is none.
    pub stale: bool,
}

/// Request bytes that this process holds in memory, against one cap.
#[derive(Debug, Default)]
pub struct HeldBodies(AtomicU64);

impl HeldBodies {
    /// Nothing held.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Bytes held now.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One request's part of [`HeldBodies`]; gives it back when dropped.
#[derive(Debug)]
pub(crate) struct HeldBody {
    pool: &'static HeldBodies,
    bytes: u64,
}

impl HeldBody {
    pub(crate) const fn new(pool: &'static HeldBodies) -> Self {
        Self { pool, bytes: 0 }
    }

    /// Raises this request's part to `total_bytes`; false, and nothing changed, when the process
    /// would then hold more than `cap_bytes`.
    pub(crate) fn grow_to(&mut self, total_bytes: u64, cap_bytes: u64) -> bool {
        let more = total_bytes.saturating_sub(self.bytes);
        if more == 0 {
            return true;
        }
        let held = self.pool.0.fetch_add(more, Ordering::Relaxed);
        if held.saturating_add(more) > cap_bytes {
            self.pool.0.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.bytes = total_bytes;
        true
    }

    pub(crate) fn give_back(&mut self) {
        if self.bytes > 0 {
            self.pool.0.fetch_sub(self.bytes, Ordering::Relaxed);
            self.bytes = 0;
        }
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_bytes_are_capped_and_come_back_on_drop() {
        static POOL: HeldBodies = HeldBodies::new();
        let mut first = HeldBody::new(&POOL);
        assert!(first.grow_to(600, 1000));
        assert!(first.grow_to(500, 1000), "a smaller total is no growth");
        let mut second = HeldBody::new(&POOL);
        assert!(!second.grow_to(500, 1000));
        assert_eq!(POOL.bytes(), 600);
        drop(first);
        assert!(second.grow_to(500, 1000));
        drop(second);
        assert_eq!(POOL.bytes(), 0);
    }
}
