//! What to give back.

use std::sync::Arc;

use proto::metering::v1::Want;

use super::{ANSWER_US, Book, IDLE_US, Kept, Moment};

impl Book {
    /// Takes out of use what is not needed. It is told by [`Self::say_returned`].
    pub(super) fn give_back(&mut self, at: Moment) {
        let is_idle = self.pace.still_for_us(at.now_us) >= IDLE_US;
        let is_wanted = self
            .account
            .as_ref()
            .is_some_and(|account| account.has_waiters());
        let current = self.current();
        let is_counted = self
            .account
            .as_ref()
            .is_some_and(|account| account.is_counted());
        let keep_of_current = match (&self.account, is_wanted) {
            (None, _) => 0,
            (_, true) => u64::MAX,
            _ if is_idle => 0,
            // Streams that are open may have to extend what they hold.
            _ if at.is_draining => current.as_ref().map_or(0, |lease| lease.reserved()),
            _ if is_counted => self.enough(at.now_us).saturating_mul(2),
            _ => u64::MAX,
        };
        for kept in &self.leases {
            let is_current = current
                .as_ref()
                .is_some_and(|own| Arc::ptr_eq(own, &kept.lease));
            let is_next = kept.lease.span().starts_at_us > at.now_us;
            let keep = if is_current {
                keep_of_current
            } else if is_next && !at.is_draining || at.now_us < kept.give_back_at_us {
                u64::MAX
            } else {
                0
            };
            kept.lease.give_back(keep);
        }
        if let Some(account) = &self.account {
            account.follow_share(at.now_us);
        }
    }

    /// Tells what was returned since it was last told, and again what was not heard.
    pub(super) fn say_returned(&mut self, now_us: u64, wants: &mut Vec<Want>) {
        for kept in &mut self.leases {
            let returned = kept.lease.returned();
            let bucket = self.name.bucket(kept.lease.span().window_start_s);
            let is_same =
                |want: &&mut Want| want.bucket.as_ref() == Some(&bucket) && !want.next_window;
            if let Some(want) = wants.iter_mut().find(is_same) {
                want.returned_total = returned;
            } else if kept.has_to_say(returned, now_us) {
                wants.push(Want {
                    bucket: Some(bucket),
                    granted_total: kept.lease.granted(),
                    returned_total: returned,
                    reserved: kept.lease.reserved(),
                    available: kept.lease.available().max(0).unsigned_abs(),
                    ..Want::default()
                });
            } else {
                continue;
            }
            kept.said_returned = returned;
            kept.said_at_us = now_us;
        }
    }
}

// === impl Kept ===

impl Kept {
    fn has_to_say(&self, returned: u64, now_us: u64) -> bool {
        let is_overdue = now_us >= self.said_at_us.saturating_add(ANSWER_US);
        returned > self.said_returned || (returned > self.heard_returned && is_overdue)
    }
}
