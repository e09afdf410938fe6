//! What an account needs to know of its limit.

use std::sync::Arc;

/// The part of a limit that its accounts work by. Equal terms are the same terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitTerms {
    /// Id of the limit.
    pub id: Arc<str>,
    /// How credit is spent. One limit id never changes its kind's variant.
    pub kind: Kind,
    /// The limit's amount, in its unit.
    pub amount: u64,
    /// What may be used without credit while the control plane is away, in the unit, per outage;
    /// none: nothing.
    pub on_unavailable_allowance: Option<u64>,
}

/// How a limit's credit is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Used up within a window: money, tokens, requests.
    Credit,
    /// Slots that come back.
    InFlight,
    /// A share of a rate, spent evenly over time with a burst.
    Rate {
        /// Length of the limit's window in microseconds.
        window_us: u64,
        /// What may come at once beyond the even spread, for the whole limit; at least 1.
        burst: u64,
        /// The whole limit, per window.
        amount: u64,
    },
}

/// What a need does where its account has no credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It fails.
    Must,
    /// It is taken all the same, and charged.
    Warn,
}
