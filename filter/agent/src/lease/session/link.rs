//! The stream's phase, and its beats.

use std::collections::VecDeque;

use proto::metering::v1::Beat;

/// Beats that are remembered without an answer; the credit of older ones is over.
const UNANSWERED: usize = 16;

const MS_US: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) phase: Phase,
    pub(super) beat_at_us: u64,
    greeted_at_us: u64,
    ttl_us: u64,
    every_us: u64,
    /// When the beats without an answer were sent.
    unanswered: VecDeque<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// No stream.
    #[default]
    Closed,
    /// A Hello is to be sent.
    Greeting,
    /// It was sent.
    Greeted,
    /// It was answered.
    Open,
}

// === impl Link ===

impl Link {
    pub(super) fn disconnected(&mut self) {
        self.phase = Phase::Closed;
        self.unanswered.clear();
    }

    pub(super) fn greeted(&mut self, now_us: u64) {
        self.phase = Phase::Greeted;
        self.greeted_at_us = now_us;
    }

    /// A Hello counts as a beat. Until when credit is usable.
    pub(super) fn welcomed(&mut self, ttl_ms: u32, beat_ms: u32) -> u64 {
        self.phase = Phase::Open;
        self.ttl_us = u64::from(ttl_ms).saturating_mul(MS_US);
        self.every_us = u64::from(beat_ms.max(1)).saturating_mul(MS_US);
        self.beat_at_us = self.greeted_at_us.saturating_add(self.every_us);
        self.greeted_at_us.saturating_add(self.ttl_us)
    }

    /// The oldest beat is answered: until when credit is usable by it.
    pub(super) fn answered(&mut self) -> Option<u64> {
        let sent_at_us = self.unanswered.pop_front()?;
        Some(sent_at_us.saturating_add(self.ttl_us))
    }

    pub(super) fn beat(&mut self, epoch: u64, open_exchanges: u64, now_us: u64) -> Option<Beat> {
        if now_us < self.beat_at_us {
            return None;
        }
        self.beat_at_us = now_us.saturating_add(self.every_us);
        if self.unanswered.len() == UNANSWERED {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back(now_us);
        Some(Beat {
            epoch,
            open_exchanges,
        })
    }
}
