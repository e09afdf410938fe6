//! One account's leases of this epoch: what to ask for, what to give back, and when to look.

mod answer;
mod ask;
mod give;

use std::sync::Arc;

use filter_core::credit::{Account, Lease};
use proto::metering::v1::{BucketKey, Want};

use super::pace::Pace;

/// Looks at an account that has credit come at least this often.
const SWEEP_US: u64 = 5_000_000;
/// Credit that nothing has moved for this long is given back.
const IDLE_US: u64 = 60_000_000;
/// An account that has no credit and that nobody used for this long is forgotten.
const FORGET_US: u64 = 600_000_000;
/// A want without an answer is repeated after this long.
const ANSWER_US: u64 = 3_000_000;
/// After a recall only what is lacking is asked for, for this long.
const MODEST_US: u64 = 10_000_000;
/// An answer that gave nothing and refused nothing is asked about again after this long.
const NOTHING_US: u64 = 250_000;
/// The next window is asked for so long before the end of this one, and up to `SPREAD_US` more.
const AHEAD_US: u64 = 5_000_000;
const SPREAD_US: u64 = 25_000_000;

/// One account.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) name: Name,
    /// None: forgotten by the workers; its totals are kept, since they only rise.
    account: Option<Arc<Account>>,
    /// Of this epoch: the current one, the next, and old ones.
    leases: Vec<Kept>,
    pace: Pace,
    activity: u64,
    /// When the want for this window that waits for its answer was sent.
    asked_at_us: Option<u64>,
    /// The same, of the next window's.
    asked_next_at_us: Option<u64>,
    /// What the last want needed in all.
    asked_for: u64,
    /// The wished size of what is available, and when it was found.
    size: u64,
    sized_at_us: u64,
    not_before_us: u64,
    /// Credit was recalled: until then nothing is asked for ahead.
    modest_until_us: u64,
    /// When to ask for the next window.
    next_window_at_us: u64,
    /// The last window of this epoch whose lease was let go of. What the control plane still says
    /// of it, or of those before, is no news: its credit was used or given back.
    past_window_start_s: Option<i64>,
}

/// Limit and subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) limit: Arc<str>,
    pub(super) subject: Arc<str>,
}

#[derive(Debug)]
struct Kept {
    lease: Arc<Lease>,
    /// What was last said to be returned, and when.
    said_returned: u64,
    said_at_us: u64,
    /// What the control plane is known to have heard of it.
    heard_returned: u64,
    /// An old window's credit is given back from here on.
    give_back_at_us: u64,
}

/// What holds for the whole process at a look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now_us: u64,
    /// Drawn anew for each account.
    pub(super) entropy: u64,
    /// Whether wants can be sent.
    pub(super) is_open: bool,
    pub(super) is_draining: bool,
}

// === impl Name ===

impl Name {
    pub(super) fn of(account: &Account) -> Self {
        Self {
            limit: Arc::clone(account.limit()),
            subject: Arc::clone(account.subject()),
        }
    }

    pub(super) fn bucket(&self, window_start_s: i64) -> BucketKey {
        BucketKey {
            limit: self.limit.to_string(),
            subject: self.subject.to_string(),
            window_start_s,
        }
    }
}

// === impl Book ===

impl Book {
    pub(super) fn new(name: Name) -> Self {
        Self {
            name,
            account: None,
            leases: Vec::new(),
            pace: Pace::default(),
            activity: 0,
            asked_at_us: None,
            asked_next_at_us: None,
            asked_for: 0,
            size: 0,
            sized_at_us: 0,
            not_before_us: 0,
            modest_until_us: 0,
            next_window_at_us: u64::MAX,
            past_window_start_s: None,
        }
    }

    /// Takes on the account that workers use, which may be new after one was forgotten.
    pub(super) fn attach(&mut self, account: &Arc<Account>, now_us: u64) {
        if self
            .account
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, account))
        {
            return;
        }
        self.pace.moved(now_us);
        let is_usable = |kept: &&Kept| kept.lease.is_open(now_us) && !kept.lease.is_retired();
        let open = self.leases.iter().find(is_usable);
        account.set_current(open.map(|kept| Arc::clone(&kept.lease)));
        account.follow_share(now_us);
        self.account = Some(Arc::clone(account));
    }

    pub(super) fn account(&self) -> Option<&Arc<Account>> {
        self.account.as_ref()
    }

    /// The stream is gone: nothing that was sent is sure to have come.
    pub(super) fn disconnected(&mut self) {
        self.asked_at_us = None;
        self.asked_next_at_us = None;
        self.not_before_us = 0;
    }

    /// All leases are named in a Hello.
    pub(super) fn said(&mut self, now_us: u64) {
        for kept in &mut self.leases {
            kept.said_returned = kept.lease.returned();
            kept.said_at_us = now_us;
        }
    }

    /// Retires all leases, and gives them away with the names of their buckets.
    pub(super) fn retire(&mut self, now_us: u64) -> Vec<(BucketKey, Arc<Lease>)> {
        if let Some(account) = &self.account {
            account.set_current(None);
            account.set_next(None);
            account.follow_share(now_us);
            account.watch(i64::MIN);
        }
        self.disconnected();
        self.past_window_start_s = None;
        self.next_window_at_us = u64::MAX;
        let retired = std::mem::take(&mut self.leases).into_iter().map(|kept| {
            kept.lease.retire();
            (
                self.name.bucket(kept.lease.span().window_start_s),
                kept.lease,
            )
        });
        retired.collect()
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = (BucketKey, &Arc<Lease>)> {
        self.leases.iter().map(|kept| {
            let bucket = self.name.bucket(kept.lease.span().window_start_s);
            (bucket, &kept.lease)
        })
    }

    /// Looks after the account: moves to the next window, wakes who waits, and appends what there
    /// is to say to `wants`. When to look again; none: when something happens.
    pub(super) fn look(&mut self, at: Moment, wants: &mut Vec<Want>) -> Option<u64> {
        self.roll(at);
        self.measure(at.now_us);
        if let Some(account) = self.account.clone() {
            account.follow_share(at.now_us);
            account.wake_waiters(at.now_us);
            if at.is_open {
                self.supply(&account, at, wants);
            }
        }
        self.give_back(at);
        if at.is_open {
            self.say_returned(at.now_us, wants);
        }
        self.look_at_us(at)
    }

    /// Whether nothing is left to remember.
    pub(super) fn is_empty(&self) -> bool {
        self.account.is_none() && self.leases.is_empty()
    }

    /// The account, to be forgotten, if nothing has been held or used for long.
    pub(super) fn take_idle(&mut self, now_us: u64) -> Option<Arc<Account>> {
        let is_bare = self.leases.iter().all(|kept| kept.lease.is_spent());
        let is_idle = is_bare && self.pace.still_for_us(now_us) >= FORGET_US;
        let account = self
            .account
            .take_if(|account| is_idle && !account.has_waiters())?;
        account.set_current(None);
        account.set_next(None);
        Some(account)
    }

    /// It could not be forgotten.
    pub(super) fn keep(&mut self, account: &Arc<Account>, now_us: u64) {
        self.pace.moved(now_us);
        self.attach(account, now_us);
    }

    fn current(&self) -> Option<Arc<Lease>> {
        self.account.as_ref()?.current()
    }

    /// Moves on when the window is over; leases of old windows are retired.
    fn roll(&mut self, at: Moment) {
        let is_over =
            |lease: &Arc<Lease>| lease.span().ends_at_us <= at.now_us || lease.is_retired();
        if let Some(account) = &self.account
            && account.current().as_ref().is_some_and(is_over)
        {
            let next = account.next().filter(|lease| !is_over(lease));
            let used = next.as_ref().map_or(0, |lease| used(lease));
            account.set_current(next);
            account.set_next(None);
            self.pace.restart(used, at.now_us);
            self.begin_window(at);
        }
        for kept in self.leases.iter_mut().filter(|kept| is_over(&kept.lease)) {
            if !kept.lease.is_retired() {
                kept.lease.retire();
                // Nobody waits for an old window's credit: not all at its end at once.
                kept.give_back_at_us = at.now_us.saturating_add(at.entropy % SPREAD_US);
            }
        }
        self.drop_settled(at.now_us);
    }

    /// Sets when to ask for the window after the current one.
    fn begin_window(&mut self, at: Moment) {
        let ends_at_us = self.current().map(|lease| lease.span().ends_at_us);
        self.next_window_at_us = match ends_at_us {
            Some(ends_at_us) if ends_at_us != u64::MAX => {
                let ahead_us = AHEAD_US.saturating_add(at.entropy % SPREAD_US);
                ends_at_us.saturating_sub(ahead_us)
            }
            _ => u64::MAX,
        };
    }

    /// Old windows of which nothing is reserved, and all that was left has been told.
    fn drop_settled(&mut self, now_us: u64) {
        self.leases.retain(|kept| {
            let is_over = kept.lease.span().ends_at_us <= now_us;
            let is_told = kept.heard_returned >= kept.lease.returned();
            let is_done = is_over && kept.lease.is_retired() && kept.lease.is_spent() && is_told;
            if is_done {
                let window_start_s = Some(kept.lease.span().window_start_s);
                self.past_window_start_s = self.past_window_start_s.max(window_start_s);
            }
            !is_done
        });
    }

    fn measure(&mut self, now_us: u64) {
        if let Some(lease) = self.current() {
            self.pace.look(used(&lease), now_us);
        }
        let activity = self
            .account
            .as_ref()
            .map_or(0, |account| account.activity());
        if activity != self.activity {
            self.activity = activity;
            self.pace.moved(now_us);
        }
    }

    fn look_at_us(&self, at: Moment) -> Option<u64> {
        let has_credit = self.leases.iter().any(|kept| !kept.lease.is_spent());
        let is_held = self.account.is_some() || has_credit;
        let account = self.account.as_ref();
        let is_waited_for = at.is_open && account.is_some_and(|account| account.has_waiters());
        let answer_by = self
            .asked_at_us
            .map(|asked| asked.saturating_add(ANSWER_US));
        let ends = self.leases.iter().map(|kept| kept.lease.span().ends_at_us);
        let retry_at = account
            .and_then(|account| account.denial())
            .map(|denial| denial.retry_at_us);
        let give_back = self.leases.iter().map(|kept| kept.give_back_at_us);
        [
            is_held.then(|| at.now_us.saturating_add(SWEEP_US)),
            is_waited_for.then_some(self.not_before_us),
            retry_at.filter(|_| is_waited_for),
            answer_by.filter(|_| at.is_open),
            Some(self.next_window_at_us).filter(|_| at.is_open),
        ]
        .into_iter()
        .flatten()
        .chain(ends)
        .chain(give_back)
        .filter(|look_at_us| *look_at_us > at.now_us && *look_at_us != u64::MAX)
        .min()
    }
}

/// Used and reserved.
fn used(lease: &Lease) -> u64 {
    let left = i128::from(lease.granted()) - i128::from(lease.returned());
    u64::try_from(left - i128::from(lease.available())).unwrap_or(0)
}
