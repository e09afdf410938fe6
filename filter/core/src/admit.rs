//! Admission: the one place where a routed request is let through to a provider.

use crate::host::Now;

/// A request that was let through. From here on it is in the ledger, however it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    /// The record's day and its roll-up slot are those of this moment.
    pub(crate) at: Now,
}

/// Admits a routed request.
pub(crate) const fn admit(now: Now) -> Admission {
    Admission { at: now }
}
