//! One limit's account for one subject.

mod supply;
mod take;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};

use super::accounts::Common;
use super::rate::{Pace, Rate};
use super::waiting::Queue;
use super::{Crowded, Denial, Kind, Lease, LimitTerms, Waiting, Wake};

pub(crate) use take::{Held, Patience};

/// Waiters of one account, and of a process: more would time out before their turn.
const ACCOUNT_WAITERS: usize = 256;
const PROCESS_WAITERS: usize = 4_096;

/// What this node may spend of one limit for one subject.
#[derive(Debug)]
pub struct Account {
    limit: Arc<str>,
    subject: Arc<str>,
    terms: ArcSwap<LimitTerms>,
    common: Arc<Common>,
    current: ArcSwapOption<Lease>,
    /// Of the window after the current one.
    next: ArcSwapOption<Lease>,
    /// Credit that nobody granted, while the control plane is away.
    outage: ArcSwapOption<Lease>,
    rate: Option<Rate>,
    denial: ArcSwapOption<Denial>,
    /// The control plane knows no such limit, and will not until then.
    exempt_until_us: AtomicU64,
    /// Below this the agent wants to know.
    low: AtomicI64,
    /// The largest need that was missed since the agent looked; 0: none.
    missed: AtomicU64,
    is_marked: AtomicBool,
    queue: Queue,
    told_amount: AtomicU64,
    told_left: AtomicI64,
}

/// What is lacking at an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lack {
    /// What the next request needs; 0: nothing is lacking.
    pub first: u64,
    /// What all who wait need.
    pub all: u64,
    /// Whether a request waits, or is about to.
    pub is_urgent: bool,
}

/// How a limit stands, for the headers that tell clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The limit's amount.
    pub amount: u64,
    /// What can still be used; as of the control plane's last answer where others use it too.
    pub left: u64,
    /// When the window ends, or a rate is whole again; none: never.
    pub resets_in_us: Option<u64>,
}

// === impl Account ===

impl Account {
    pub(crate) fn new(terms: &LimitTerms, subject: &str, common: Arc<Common>) -> Self {
        Self {
            limit: Arc::clone(&terms.id),
            subject: subject.into(),
            terms: ArcSwap::from_pointee(terms.clone()),
            common,
            current: ArcSwapOption::empty(),
            next: ArcSwapOption::empty(),
            outage: ArcSwapOption::empty(),
            rate: pace(terms.kind).map(Rate::new),
            denial: ArcSwapOption::empty(),
            exempt_until_us: AtomicU64::new(0),
            low: AtomicI64::new(i64::MIN),
            missed: AtomicU64::new(0),
            is_marked: AtomicBool::new(false),
            queue: Queue::default(),
            told_amount: AtomicU64::new(terms.amount),
            told_left: AtomicI64::new(0),
        }
    }

    /// Id of the limit.
    #[must_use]
    pub fn limit(&self) -> &Arc<str> {
        &self.limit
    }

    /// Whom the account is for; empty: everything.
    #[must_use]
    pub fn subject(&self) -> &Arc<str> {
        &self.subject
    }

    /// The limit's terms as last seen.
    #[must_use]
    pub fn terms(&self) -> Arc<LimitTerms> {
        self.terms.load_full()
    }

    /// Whether its credit is used up, so that what was used is charged. Shares and slots are not.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.terms.load().kind == Kind::Credit
    }

    /// Waits for credit or an answer; the agent is told to ask. Whoever is woken reserves by
    /// itself. Dropping the place ends it.
    ///
    /// # Errors
    /// [`Crowded`] if too many wait.
    pub fn wait(self: &Arc<Self>, need: u64, wake: Arc<dyn Wake>) -> Result<Waiting, Crowded> {
        if !self.common.join(PROCESS_WAITERS) {
            return Err(Crowded);
        }
        let Some(ticket) = self.queue.join(need, wake, ACCOUNT_WAITERS) else {
            self.common.leave();
            return Err(Crowded);
        };
        // After joining: credit that came in between is found by the agent's look.
        self.mark();
        Ok(Waiting::new(Arc::clone(self), ticket))
    }

    /// How the limit stands at `now_us`.
    #[must_use]
    pub fn status(&self, now_us: u64) -> Status {
        let amount = self.told_amount.load(Ordering::Relaxed);
        if let Some(rate) = &self.rate {
            let (left, resets_in_us) = rate.left(now_us);
            return Status {
                amount,
                left,
                resets_in_us: Some(resets_in_us),
            };
        }
        let lease = self.open_lease(now_us);
        let own = lease.as_ref().map_or(0, |lease| lease.available().max(0));
        let told = self.told_left.load(Ordering::Relaxed).max(0);
        let ends_at_us = lease.map(|lease| lease.span().ends_at_us);
        let denied = || {
            self.denial
                .load()
                .as_ref()
                .and_then(|denial| denial.resets_at_us)
        };
        let resets_at_us = ends_at_us.filter(|at| *at != u64::MAX).or_else(denied);
        Status {
            amount,
            left: own.saturating_add(told).unsigned_abs().min(amount),
            resets_in_us: resets_at_us.map(|at| at.saturating_sub(now_us)),
        }
    }

    pub(crate) fn take_on(self: &Arc<Self>, terms: &LimitTerms) {
        if **self.terms.load() == *terms {
            return;
        }
        self.told_amount.store(terms.amount, Ordering::Relaxed);
        // Refused by the old amount.
        self.clear_denial();
        self.terms.store(Arc::new(terms.clone()));
        // The agent sets a rate's clock.
        self.mark();
    }

    pub(crate) fn wait_again(self: &Arc<Self>, ticket: u64, need: u64) {
        self.queue.again(ticket, need);
        self.mark();
    }

    pub(crate) fn left_queue(self: &Arc<Self>, ticket: u64) {
        self.queue.leave(ticket);
        self.common.leave();
        // It may have been woken for credit that the next one can have now.
        if !self.queue.is_empty() {
            self.mark();
        }
    }

    pub(crate) fn unmark(&self) {
        self.is_marked.store(false, Ordering::Release);
    }

    /// Has the agent look at this account.
    pub(crate) fn mark(self: &Arc<Self>) {
        if !self.is_marked.swap(true, Ordering::AcqRel) {
            self.common.mark(Arc::clone(self));
        }
    }
}

pub(crate) fn pace(kind: Kind) -> Option<Pace> {
    match kind {
        Kind::Credit | Kind::InFlight => None,
        Kind::Rate {
            window_us,
            burst,
            amount,
        } => Some(Pace {
            window_us,
            burst: burst.max(1),
            amount,
        }),
    }
}
