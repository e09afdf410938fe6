//! Epochs that are over, until nothing is reserved on them.

use std::sync::Arc;

use filter_core::credit::Lease;
use proto::metering::v1::{BucketKey, Close, Holding, ShardEnd};

/// An exchange gives back its reservation a moment before its record is in the spool. A Close that
/// names the spool's end is not to come between the two.
const QUIET_US: u64 = 1_000_000;

/// An epoch that is over.
#[derive(Debug)]
pub(super) struct Closing {
    pub(super) epoch: u64,
    /// Retired, with the names of their buckets.
    pub(super) leases: Vec<(BucketKey, Arc<Lease>)>,
    quiet_since_us: Option<u64>,
    /// When its Close went out on this stream.
    sent_at_us: Option<u64>,
}

// === impl Closing ===

impl Closing {
    pub(super) fn new(epoch: u64, leases: Vec<(BucketKey, Arc<Lease>)>) -> Self {
        Self {
            epoch,
            leases,
            quiet_since_us: None,
            sent_at_us: None,
        }
    }

    /// A new stream. A Close has no answer, so whether the last stream carried it to its end is not
    /// known: it is said again.
    pub(super) fn reconnected(&mut self) {
        self.sent_at_us = None;
    }

    /// Whether its Close went out on this stream.
    pub(super) fn is_sent(&self) -> bool {
        self.sent_at_us.is_some()
    }

    /// When to look again; none: it is sent.
    pub(super) fn look_at_us(&self, now_us: u64) -> Option<u64> {
        match (self.sent_at_us, self.quiet_since_us) {
            (Some(_), _) => None,
            (None, Some(since)) => Some(since.saturating_add(QUIET_US)),
            (None, None) => Some(now_us.saturating_add(QUIET_US)),
        }
    }

    /// The Close, once nothing has been reserved for a moment. With `at_once` the spool is known
    /// to be complete.
    pub(super) fn close(
        &mut self,
        shards: &[ShardEnd],
        at_once: bool,
        now_us: u64,
    ) -> Option<Close> {
        if self.sent_at_us.is_some() {
            return None;
        }
        if self.leases.iter().any(|(_, lease)| lease.reserved() > 0) {
            self.quiet_since_us = None;
            return None;
        }
        let since = *self.quiet_since_us.get_or_insert(now_us);
        if !at_once && now_us < since.saturating_add(QUIET_US) {
            return None;
        }
        self.sent_at_us = Some(now_us);
        let holdings = self.leases.iter().map(|(bucket, lease)| {
            lease.give_back(0);
            holding(bucket.clone(), lease)
        });
        Some(Close {
            epoch: self.epoch,
            holdings: holdings.collect(),
            shards: shards.to_vec(),
        })
    }
}

/// What is held on a lease.
pub(super) fn holding(bucket: BucketKey, lease: &Lease) -> Holding {
    // What is reserved is read first: between the two reads it may only get less, never appear to
    // be neither reserved nor there.
    let reserved = lease.reserved();
    Holding {
        bucket: Some(bucket),
        granted_total: lease.granted(),
        returned_total: lease.returned(),
        reserved,
    }
}
