//! Credit for limits in this process: what its workers spend, and in numbers who fills it.

use std::sync::{
    LazyLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use filter_core::limits::NodeLimits;
use proto::metering::v1::Want;

static LIMITS: LazyLock<NodeLimits> = LazyLock::new(NodeLimits::default);

/// What this process keeps for its limits.
pub(crate) fn limits() -> &'static NodeLimits {
    &LIMITS
}

/// What is counted of the Lease stream, by the agent's thread.
pub(crate) static LEASES: LeaseCounts = LeaseCounts::new();

/// Counts of one process's Lease stream.
#[derive(Debug)]
pub(crate) struct LeaseCounts {
    is_connected: AtomicBool,
    urgent_wants: AtomicU64,
    other_wants: AtomicU64,
}

/// Wants that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WantCounts {
    /// A request waited for the answer.
    pub(crate) urgent: u64,
    /// Nobody waited: more was asked for ahead of need, or something was given back.
    pub(crate) other: u64,
}

impl LeaseCounts {
    pub(crate) const fn new() -> Self {
        Self {
            is_connected: AtomicBool::new(false),
            urgent_wants: AtomicU64::new(0),
            other_wants: AtomicU64::new(0),
        }
    }

    pub(crate) fn note_connected(&self, is_connected: bool) {
        self.is_connected.store(is_connected, Ordering::Relaxed);
    }

    pub(crate) fn note_wants(&self, wants: &[Want]) {
        for want in wants {
            let count = if want.urgent {
                &self.urgent_wants
            } else {
                &self.other_wants
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the control plane answers on the stream.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed)
    }

    /// The wants since the last call.
    pub(crate) fn take_wants(&self) -> WantCounts {
        WantCounts {
            urgent: self.urgent_wants.swap(0, Ordering::Relaxed),
            other: self.other_wants.swap(0, Ordering::Relaxed),
        }
    }
}
