//! Why a request can't have what it needs.

/// What the control plane refuses with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What is settled leaves no room; the next window brings more.
    Spent,
    /// Others hold what is left and may give some of it back.
    Reserved,
}

/// A refusal of the control plane, kept so that the node can repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Why.
    pub kind: Refusal,
    /// What was asked for in all, own credit included.
    pub asked: u64,
    /// When to ask again.
    pub retry_at_us: u64,
    /// Until when the node may refuse by itself with this whoever comes later.
    pub valid_until_us: u64,
    /// Free in the bucket, besides what this node holds.
    pub left: i64,
    /// When the window ends; none: never.
    pub resets_at_us: Option<u64>,
}

/// The first need that could not be had, in the order of [`super::reserve`]'s needs; a refused one
/// goes before one that merely lacks credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Index of the need.
    pub need: usize,
    /// Why.
    pub cause: Cause,
}

/// Why a need could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The control plane refuses it.
    Refused {
        /// As what.
        kind: Refusal,
        /// When to try again.
        retry_in_us: u64,
        /// What could be had.
        left: i64,
        /// When the window ends; none: never.
        resets_in_us: Option<u64>,
    },
    /// Nothing was refused: the agent has been told to ask; wait for it.
    Lacking,
    /// A rate's share is spent for now, and no more of it is to be had.
    TooFast {
        /// When this node's share allows it.
        retry_in_us: u64,
    },
    /// The control plane can't be asked, and no allowance is left.
    Unavailable,
}

/// After a wait, a denial may be repeated this long after it was time to ask again: the answer that
/// did not come in time would most likely have been the same.
const AFTER_WAIT_US: u64 = 1_000_000;

// === impl Denial ===

impl Denial {
    /// Whether a node with `available` credit of its own may refuse `need` with this, unasked.
    pub(crate) fn refuses(&self, need: u64, available: i64, now_us: u64) -> bool {
        now_us < self.valid_until_us && self.is_about(need, available)
    }

    /// Whether this is the answer for one who has waited for another in vain.
    pub(crate) fn is_last_word(&self, need: u64, available: i64, now_us: u64) -> bool {
        let asked_again_us = self.retry_at_us.saturating_add(AFTER_WAIT_US);
        now_us < self.valid_until_us.max(asked_again_us) && self.is_about(need, available)
    }

    /// Whether what was refused was no more than `need` is, for a node with `available` of its own.
    #[must_use]
    pub fn is_about(&self, need: u64, available: i64) -> bool {
        match self.kind {
            // How much is not settled was not said, only that it is less than was asked for. What
            // is free is no measure of it: others may hold the rest and return it.
            Refusal::Spent => need >= self.asked,
            Refusal::Reserved => {
                i128::from(need) > i128::from(self.left.max(0)) + i128::from(available.max(0))
            }
        }
    }

    /// What to keep when this comes after `last`.
    pub(crate) fn after(self, last: Option<Self>, now_us: u64) -> Self {
        let is_spent = |denial: &Self| denial.kind == Refusal::Spent;
        let last = last.filter(|last| is_spent(last) && is_spent(&self));
        // Its own time runs out, and is not made longer by refusals of larger requests.
        last.filter(|last| now_us < last.valid_until_us && last.asked <= self.asked)
            .unwrap_or(self)
    }

    pub(crate) fn cause(&self, now_us: u64) -> Cause {
        Cause::Refused {
            kind: self.kind,
            retry_in_us: self.retry_at_us.saturating_sub(now_us),
            left: self.left,
            resets_in_us: self.resets_at_us.map(|at| at.saturating_sub(now_us)),
        }
    }
}
