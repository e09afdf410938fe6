//! What the control plane says about one account.

use std::sync::Arc;

use filter_core::credit::{Denial, Lease, Refusal, Span};
use proto::metering::v1::{Deny, DenyKind, Grant};

use super::{Book, Kept, MODEST_US, Moment, NOTHING_US, used};

/// A limit that the control plane does not know is asked about again after this long at the
/// earliest.
const NO_LIMIT_US: u64 = 5_000_000;

const MS_US: u64 = 1_000;

impl Book {
    /// Takes in a grant of `epoch`, which is the present one.
    pub(in super::super) fn on_grant(&mut self, grant: &Grant, epoch: u64, at: Moment) {
        let Some(bucket) = &grant.bucket else {
            return;
        };
        let window_start_s = bucket.window_start_s;
        let lease = match self.known(window_start_s) {
            Some(lease) => lease,
            None if self.past_window_start_s >= Some(window_start_s) => {
                self.answered_in_vain(at);
                return;
            }
            None => self.make(window_start_s, epoch, grant, at),
        };
        let more = lease.raise(grant.granted_total, grant.returned_total);
        let mut kept = self.leases.iter_mut();
        if let Some(kept) = kept.find(|kept| Arc::ptr_eq(&kept.lease, &lease)) {
            kept.heard_returned = kept.heard_returned.max(grant.returned_total);
        }
        if lease.span().starts_at_us > at.now_us {
            self.asked_next_at_us = None;
            return;
        }
        let Some(account) = self.account.clone() else {
            return;
        };
        let current = account.current();
        if !current.is_some_and(|own| Arc::ptr_eq(&own, &lease)) {
            // Of a window that is over here, though perhaps not quite there.
            self.answered_in_vain(at);
            return;
        }
        account.tell(grant.amount, grant.left);
        account.end_outage();
        account.follow_share(at.now_us);
        if let Some(denial) = account.denial()
            && denial.kind == Refusal::Reserved
        {
            if more > 0 {
                account.clear_denial();
            } else if grant.left > denial.left {
                // Who needs no more than that is not refused by it any longer.
                let left = grant.left;
                account.deny(Denial { left, ..denial }, at.now_us);
            }
        }
        if self.asked_at_us.take().is_some() && more == 0 {
            self.not_before_us = at.now_us.saturating_add(NOTHING_US);
        }
    }

    /// Takes in a refusal.
    pub(in super::super) fn on_deny(&mut self, deny: &Deny, at: Moment) {
        let Some(account) = &self.account else {
            return;
        };
        let window = deny
            .bucket
            .as_ref()
            .map_or(-1, |bucket| bucket.window_start_s);
        let current = account.current().map(|lease| lease.span().window_start_s);
        if current.is_some_and(|current| window != current) {
            // The next window is asked for again when it begins.
            return;
        }
        self.asked_at_us = None;
        // The denial itself says when to ask again, and about what.
        self.not_before_us = 0;
        account.end_outage();
        let valid_for_us = u64::from(deny.valid_for_ms).saturating_mul(MS_US);
        let kind = match deny.kind() {
            DenyKind::Spent => Refusal::Spent,
            DenyKind::Reserved => Refusal::Reserved,
            DenyKind::NoLimit => {
                account.exempt_until(at.now_us.saturating_add(valid_for_us.max(NO_LIMIT_US)));
                return;
            }
            DenyKind::Unspecified => {
                self.not_before_us = at.now_us.saturating_add(NOTHING_US);
                return;
            }
        };
        account.tell(deny.amount, deny.left);
        let resets_at_us = (deny.ends_in_ms > 0).then(|| {
            at.now_us
                .saturating_add(deny.ends_in_ms.saturating_mul(MS_US))
        });
        let last_us = resets_at_us.unwrap_or(u64::MAX);
        let retry_in_us = u64::from(deny.retry_in_ms).saturating_mul(MS_US);
        let denial = Denial {
            kind,
            asked: if deny.asked > 0 {
                deny.asked
            } else {
                self.asked_for
            },
            retry_at_us: at.now_us.saturating_add(retry_in_us).min(last_us),
            valid_until_us: at.now_us.saturating_add(valid_for_us).min(last_us),
            left: deny.left,
            resets_at_us,
        };
        account.deny(denial, at.now_us);
    }

    /// The store can't be asked now.
    pub(in super::super) fn on_unavailable(&mut self, at: Moment) {
        self.asked_at_us = None;
        self.not_before_us = at.now_us.saturating_add(NOTHING_US);
    }

    /// Idle credit is wanted back: it is out of use before this returns.
    pub(in super::super) fn on_recall(&mut self, window_start_s: i64, keep: u64, now_us: u64) {
        self.modest_until_us = now_us.saturating_add(MODEST_US);
        for kept in &self.leases {
            if kept.lease.span().window_start_s == window_start_s {
                kept.lease.give_back(keep);
            }
        }
        if let Some(account) = &self.account {
            account.follow_share(now_us);
        }
    }

    /// What came says nothing of what was asked for, if anything was.
    fn answered_in_vain(&mut self, at: Moment) {
        if self.asked_at_us.take().is_some() {
            self.not_before_us = at.now_us.saturating_add(NOTHING_US);
        }
    }

    /// The lease of a window.
    fn known(&self, window_start_s: i64) -> Option<Arc<Lease>> {
        let mut leases = self.leases.iter();
        let kept = leases.find(|kept| kept.lease.span().window_start_s == window_start_s)?;
        Some(Arc::clone(&kept.lease))
    }

    /// Makes the lease of a window, and puts it in its place.
    fn make(&mut self, window_start_s: i64, epoch: u64, grant: &Grant, at: Moment) -> Arc<Lease> {
        let starts_in_us = u64::from(grant.starts_in_ms).saturating_mul(MS_US);
        let ends_at_us = match grant.ends_in_ms {
            0 => u64::MAX,
            ends_in_ms => at.now_us.saturating_add(ends_in_ms.saturating_mul(MS_US)),
        };
        let lease = Arc::new(Lease::new(Span {
            epoch,
            window_start_s,
            starts_at_us: if starts_in_us == 0 {
                0
            } else {
                at.now_us.saturating_add(starts_in_us)
            },
            ends_at_us,
        }));
        self.leases.push(Kept {
            lease: Arc::clone(&lease),
            said_returned: 0,
            said_at_us: at.now_us,
            heard_returned: grant.returned_total,
            give_back_at_us: 0,
        });
        self.install(&lease, at);
        lease
    }

    fn install(&mut self, lease: &Arc<Lease>, at: Moment) {
        let Some(account) = self.account.clone() else {
            return;
        };
        let start = |lease: &Arc<Lease>| lease.span().window_start_s;
        let current = account.current();
        let is_newest = current
            .as_ref()
            .is_none_or(|current| start(current) < start(lease));
        if !is_newest {
            // Of a window that is over: given back at the next look.
            lease.retire();
        } else if lease.span().starts_at_us > at.now_us {
            account.set_next(Some(Arc::clone(lease)));
        } else {
            account.set_current(Some(Arc::clone(lease)));
            if account.next().is_some_and(|next| Arc::ptr_eq(&next, lease)) {
                account.set_next(None);
            }
            if let Some(old) = current {
                old.retire();
            }
            self.pace.restart(used(lease), at.now_us);
            self.begin_window(at);
        }
    }
}
