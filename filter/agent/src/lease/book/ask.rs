//! What to ask for.

use filter_core::credit::{Account, Denial, Kind, Lack, Lease};
use proto::metering::v1::Want;

use super::{ANSWER_US, Book, IDLE_US, Moment};

/// An account whose pace is not known asks for this many of what the first request needs.
const FIRST: u64 = 8;

impl Book {
    /// Asks for what is lacking, for more before that, and for the next window.
    pub(super) fn supply(&mut self, account: &Account, at: Moment, wants: &mut Vec<Want>) {
        let has_expired = |asked_at: u64| at.now_us >= asked_at.saturating_add(ANSWER_US);
        self.asked_at_us.take_if(|asked_at| has_expired(*asked_at));
        self.asked_next_at_us
            .take_if(|asked_at| has_expired(*asked_at));
        if self.asked_at_us.is_none() && at.now_us >= self.not_before_us {
            let lack = account.take_lack(at.now_us);
            wants.extend(self.raise(account, lack, at));
        }
        self.watch(account, at);
        if at.now_us >= self.next_window_at_us && self.asked_next_at_us.is_none() && !at.is_draining
        {
            wants.extend(self.want_next_window(at.now_us));
        }
    }

    /// The want for more of this window, if more is wanted.
    fn raise(&mut self, account: &Account, lack: Lack, at: Moment) -> Option<Want> {
        let terms = account.terms();
        let lease = self.current();
        let available = lease.as_ref().map_or(0, |lease| lease.available());
        let is_rate = matches!(terms.kind, Kind::Rate { .. });
        let enough = match terms.kind {
            Kind::Rate { amount, .. } => signed(amount),
            Kind::Credit | Kind::InFlight => signed(lack.first),
        };
        let is_lacking = lack.first > 0 && available < enough;
        let is_scarce = self.is_scarce(account, at.now_us);
        let is_low = self.size > 0 && available < self.low() && !is_scarce;
        if !is_lacking && (!is_low || at.is_draining) {
            return None;
        }
        self.pace.moved(at.now_us);
        let min_useful = match (is_rate, is_lacking) {
            // Any share helps: how much it takes is a matter of time.
            (true, _) | (_, false) => 1,
            // What was used beyond the lease is no part of what a request lacks.
            (false, true) => missing(lack.first, available.max(0)),
        };
        let wished = if at.is_draining {
            // What is left of this process is not to draw credit away from the others.
            missing(lack.first, available)
        } else {
            self.resize(terms.kind, terms.amount, lack);
            self.sized_at_us = at.now_us;
            missing(self.size, available).max(min_useful)
        };
        self.asked_at_us = Some(at.now_us);
        let own = available.max(0).unsigned_abs();
        self.asked_for = min_useful.saturating_add(own);
        let window = match terms.kind {
            Kind::Credit => lease
                .as_ref()
                .map_or(-1, |lease| lease.span().window_start_s),
            Kind::InFlight | Kind::Rate { .. } => 0,
        };
        Some(Want {
            bucket: Some(self.name.bucket(window)),
            granted_total: total(lease.as_deref()).saturating_add(wished),
            returned_total: lease.as_ref().map_or(0, |lease| lease.returned()),
            reserved: lease.as_ref().map_or(0, |lease| lease.reserved()),
            demand_per_minute: self.pace.per_minute(),
            min_useful,
            urgent: is_lacking && lack.is_urgent,
            next_window: false,
            available: own,
        })
    }

    /// How much is to be available: half a minute's use, enough for all who wait, and for a start
    /// some of the first. Shares and slots are asked for whole, and divided by the control plane.
    fn resize(&mut self, kind: Kind, amount: u64, lack: Lack) {
        self.size = match kind {
            Kind::Credit => (self.pace.per_minute() / 2)
                .max(lack.all)
                .max(lack.first.saturating_mul(FIRST))
                .max(1),
            Kind::InFlight | Kind::Rate { .. } => amount,
        };
    }

    /// What is worth keeping at the present pace.
    pub(super) fn enough(&self, now_us: u64) -> u64 {
        let is_recent = now_us < self.sized_at_us.saturating_add(IDLE_US);
        let size = if is_recent { self.size } else { 0 };
        self.pace.per_minute().max(size)
    }

    /// Below this more is asked for before anyone lacks it.
    fn low(&self) -> i64 {
        signed(self.pace.per_minute() / 4)
    }

    /// Whether others need it more than one who only asks ahead.
    fn is_scarce(&self, account: &Account, now_us: u64) -> bool {
        let is_denied = |denial: Denial| now_us < denial.retry_at_us;
        now_us < self.modest_until_us || account.denial().is_some_and(is_denied)
    }

    fn watch(&self, account: &Account, at: Moment) {
        let is_scarce = self.is_scarce(account, at.now_us);
        let is_answered = self.asked_at_us.is_none() && at.now_us >= self.not_before_us;
        let may_ask = is_answered && !is_scarce && account.is_counted() && !at.is_draining;
        account.watch(if may_ask { self.low() } else { i64::MIN });
    }

    fn want_next_window(&mut self, now_us: u64) -> Option<Want> {
        self.next_window_at_us = u64::MAX;
        let account = self.account.as_ref()?;
        let is_used = self.pace.still_for_us(now_us) < IDLE_US;
        let current = account.current()?;
        if account.next().is_some() || !is_used {
            return None;
        }
        self.asked_next_at_us = Some(now_us);
        Some(Want {
            bucket: Some(self.name.bucket(current.span().window_start_s)),
            granted_total: self.enough(now_us).max(1),
            demand_per_minute: self.pace.per_minute(),
            min_useful: 1,
            next_window: true,
            ..Want::default()
        })
    }
}

fn total(lease: Option<&Lease>) -> u64 {
    lease.map_or(0, Lease::granted)
}

/// What `wished` is above what is available, which may be below 0.
fn missing(wished: u64, available: i64) -> u64 {
    let missing = i128::from(wished) - i128::from(available);
    u64::try_from(missing.max(0)).unwrap_or(u64::MAX)
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
