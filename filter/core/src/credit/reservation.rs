//! Reserving on all of a request's limits, or on none.

use std::sync::Arc;

use super::account::{Held, Patience};
use super::{Account, Cause, Mode, Shortage};

/// What a request needs of one account.
#[derive(Clone, Debug)]
pub struct Need {
    /// Whose credit.
    pub account: Arc<Account>,
    /// How much, in the limit's unit.
    pub amount: u64,
    /// Whether it must be there.
    pub mode: Mode,
}

/// What a request holds. Dropping it gives everything back: nothing was used.
#[derive(Debug, Default)]
pub struct Reservation {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    need: usize,
    account: Arc<Account>,
    mode: Mode,
    held: Held,
    amount: u64,
}

/// What one bucket is charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charged {
    /// Index of the need.
    pub need: usize,
    /// Id of the limit.
    pub limit: Arc<str>,
    /// Whom it is for.
    pub subject: Arc<str>,
    /// Start of the window, Unix seconds; 0: one for ever; -1: the window of admission.
    pub window_start_s: i64,
    /// Epoch of the lease; 0: let through without credit.
    pub epoch: u64,
    /// In the limit's unit.
    pub reserved: u64,
    /// In the limit's unit.
    pub settled: u64,
}

/// The charges of a settled reservation, in the order of its needs.
pub type Charges = std::vec::IntoIter<Charged>;

/// Takes all of `needs`, or nothing. They are to be in the order of limit and subject, so that
/// requests with the same limits meet at the first.
///
/// # Errors
/// The [`Shortage`] to act on. The agent has been told of whatever is lacking.
pub fn reserve(needs: &[Need], now_us: u64) -> Result<Reservation, Shortage> {
    attempt(needs, now_us, Patience::Ask)
}

/// The last try of one who has waited for as long as it would: a recent refusal counts though it is
/// no longer valid; without one, the allowance for outages is used where there is one.
///
/// # Errors
/// As [`reserve`], but never [`Cause::Lacking`].
pub fn reserve_after_wait(needs: &[Need], now_us: u64) -> Result<Reservation, Shortage> {
    attempt(needs, now_us, Patience::Over)
}

fn attempt(needs: &[Need], now_us: u64, patience: Patience) -> Result<Reservation, Shortage> {
    let mut parts = Vec::with_capacity(needs.len());
    for (index, need) in needs.iter().enumerate() {
        match need.account.take(need.amount, need.mode, now_us, patience) {
            Ok(held) => parts.push(Part {
                need: index,
                account: Arc::clone(&need.account),
                mode: need.mode,
                held,
                amount: need.amount,
            }),
            Err(cause) => {
                drop(Reservation { parts });
                let shortage = Shortage { need: index, cause };
                return Err(worst(needs, shortage, now_us));
            }
        }
    }
    Ok(Reservation { parts })
}

/// Looks at the needs behind the first that was missed: the agent asks for all that is lacking at
/// once, and who would be refused there need not wait here.
fn worst(needs: &[Need], first: Shortage, now_us: u64) -> Shortage {
    let mut worst = first;
    for (index, need) in needs.iter().enumerate().skip(first.need + 1) {
        if need.mode == Mode::Warn {
            continue;
        }
        if let Some(cause @ Cause::Refused { .. }) = need.account.lacks(need.amount, now_us)
            && worst.cause == Cause::Lacking
        {
            worst = Shortage { need: index, cause };
        }
    }
    worst
}

// === impl Reservation ===

impl Reservation {
    /// Ends it: `actual` says what was used of each need, in the limit's unit, asked once per need.
    /// The charges are what the usage record is to say; shares and slots make none.
    pub fn settle(mut self, actual: &mut dyn FnMut(usize) -> u64) -> Charges {
        let mut parts = std::mem::take(&mut self.parts);
        // Parts of one need lie together, the oldest first.
        parts.sort_by_key(|part| part.need);
        let mut charges = Vec::with_capacity(parts.len());
        let mut parts = parts.into_iter().peekable();
        let mut rest: Option<u64> = None;
        while let Some(part) = parts.next() {
            let used = rest.take().unwrap_or_else(|| actual(part.need));
            let has_more = parts.peek().is_some_and(|next| next.need == part.need);
            // What exceeds all parts is charged to the last.
            let own = if has_more {
                used.min(part.amount)
            } else {
                used
            };
            if has_more {
                rest = Some(used - own);
            }
            charges.extend(part.settle(own));
        }
        charges.into_iter()
    }

    /// Takes `more` for a need, from credit that this node has; false: there is none, nothing
    /// changed, and the agent has been told. Where the lease that it began on is over, the current
    /// one is charged for it.
    pub fn extend(&mut self, need: usize, more: u64, now_us: u64) -> bool {
        let Some(part) = self.parts.iter_mut().rfind(|part| part.need == need) else {
            return false;
        };
        let Some(held) = part.more(more, now_us) else {
            part.account.miss(more);
            return false;
        };
        if let Some(joined) = part.held.joined(&held) {
            part.held = joined;
            part.amount = part.amount.saturating_add(more);
            return true;
        }
        let (account, mode) = (Arc::clone(&part.account), part.mode);
        self.parts.push(Part {
            need,
            account,
            mode,
            held,
            amount: more,
        });
        true
    }

    /// Gives back what a need holds above `to`.
    pub fn shrink(&mut self, need: usize, to: u64) {
        let mut excess = self.reserved(need).saturating_sub(to);
        for part in self.parts.iter_mut().rev().filter(|part| part.need == need) {
            let back = excess.min(part.amount);
            part.shrink(back);
            excess -= back;
        }
    }

    /// What it would be charged with nothing settled: for those who settle it if this process can't.
    /// Extensions that are charged to another lease come last.
    pub fn open_charges(&self) -> impl Iterator<Item = Charged> + '_ {
        self.parts.iter().filter_map(|part| part.charged(0))
    }

    /// What a need holds.
    #[must_use]
    pub fn reserved(&self, need: usize) -> u64 {
        let amounts = self.parts.iter().filter(|part| part.need == need);
        amounts.map(|part| part.amount).sum()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for part in self.parts.drain(..) {
            part.give_back();
        }
    }
}

// === impl Part ===

impl Part {
    /// Gives back all of it.
    fn give_back(&self) {
        match &self.held {
            Held::Lease(lease) => {
                lease.settle(self.amount, 0);
            }
            Held::Share { cost_ns } => self.account.correct(*cost_ns, 0),
            Held::Uncovered | Held::Exempt => return,
        }
        self.account.freed();
    }

    fn settle(self, used: u64) -> Option<Charged> {
        match &self.held {
            Held::Share { cost_ns } => {
                self.account.correct(*cost_ns, self.account.cost_ns(used));
                self.account.freed();
            }
            Held::Lease(lease) => {
                let is_counted = self.account.is_counted();
                let remains = lease.settle(self.amount, if is_counted { used } else { 0 });
                self.account.notice(remains);
                self.account.freed();
            }
            Held::Uncovered | Held::Exempt => {}
        }
        self.charged(used)
    }

    /// What the bucket is charged; none: it is a share or a slot, or not charged.
    fn charged(&self, used: u64) -> Option<Charged> {
        let (epoch, window_start_s) = match &self.held {
            Held::Lease(lease) => (lease.span().epoch, lease.span().window_start_s),
            Held::Uncovered => (0, -1),
            Held::Share { .. } | Held::Exempt => return None,
        };
        self.account.is_counted().then(|| Charged {
            need: self.need,
            limit: Arc::clone(self.account.limit()),
            subject: Arc::clone(self.account.subject()),
            window_start_s,
            epoch,
            reserved: self.amount,
            settled: used,
        })
    }

    fn more(&self, more: u64, now_us: u64) -> Option<Held> {
        match &self.held {
            Held::Exempt => Some(Held::Exempt),
            Held::Uncovered => Some(Held::Uncovered),
            _ if self.mode == Mode::Warn => Some(self.account.take_anyway(more, now_us)),
            Held::Lease(lease) if lease.span().epoch == 0 => {
                lease.take(more)?;
                Some(Held::Lease(Arc::clone(lease)))
            }
            Held::Lease(_) | Held::Share { .. } => self.account.take_local(more, now_us),
        }
    }

    fn shrink(&mut self, back: u64) {
        if back == 0 {
            return;
        }
        self.amount -= back;
        match &mut self.held {
            Held::Lease(lease) => {
                lease.settle(back, 0);
            }
            Held::Share { cost_ns } => {
                let less = self.account.cost_ns(back).min(*cost_ns);
                self.account.correct(less, 0);
                *cost_ns -= less;
            }
            Held::Uncovered | Held::Exempt => return,
        }
        self.account.freed();
    }
}

// === impl Held ===

impl Held {
    /// Both as one, if they come from the same place.
    fn joined(&self, more: &Self) -> Option<Self> {
        match (self, more) {
            (Self::Lease(a), Self::Lease(b)) => {
                Arc::ptr_eq(a, b).then(|| Self::Lease(Arc::clone(a)))
            }
            (Self::Share { cost_ns: a }, Self::Share { cost_ns: b }) => Some(Self::Share {
                cost_ns: a.saturating_add(*b),
            }),
            (Self::Uncovered, Self::Uncovered) => Some(Self::Uncovered),
            (Self::Exempt, Self::Exempt) => Some(Self::Exempt),
            _ => None,
        }
    }
}
