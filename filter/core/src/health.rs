//! Which targets a process leaves alone for a while: those that failed again and again, and those
//! whose provider said when to come again.
//!
//! It is kept by target and credential, since a provider's limits are those of an account; a
//! rejected credential is kept by provider. Healthy targets cost one atomic load.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// So many failures within `WITHIN_US` begin a cool-down.
const FAILURES: usize = 3;
const WITHIN_US: u64 = 60_000_000;
/// The first cool-down; each that follows without a success in between is twice as long.
const FIRST_US: u64 = 30_000_000;
/// The longest, and the longest that a provider's Retry-After is followed.
const LONGEST_US: u64 = 300_000_000;
/// Who was not heard of for so long is forgotten.
const FORGET_US: u64 = 2 * LONGEST_US;

/// What a process knows of failing targets. One per process, shared by its workers.
#[derive(Debug, Default)]
pub struct Health {
    /// By target and credential, or provider and credential. Healthy ones are not in it.
    ailing: Mutex<BTreeMap<Name, Ailing>>,
    /// How many there are.
    count: AtomicUsize,
}

/// A target's label, or a provider's id where the credential is what fails; and a credential's id,
/// empty where the provider takes none.
type Name = (Box<str>, Box<str>);

/// How a target stands at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It may be asked.
    Well,
    /// It failed again and again: others come first.
    Cooling,
    /// Its provider said when to come again: it is not asked before, in microseconds of the
    /// monotonic clock.
    Told { until_us: u64 },
}

/// Why an attempt failed, as far as it concerns those that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection, no answer in time, an answer that is no use, or a status that says so.
    Unwell,
    /// Too many requests.
    RateLimited { retry_after_s: Option<u32> },
    /// The credential was rejected, or has no money left.
    Rejected,
}

#[derive(Debug, Default)]
struct Ailing {
    /// The last failures since the last cool-down began, the oldest first.
    failed_at_us: Vec<u64>,
    /// How long the last cool-down was; 0: none yet.
    cooled_us: u64,
    cooling_until_us: u64,
    told_until_us: u64,
    heard_of_at_us: u64,
}

// === impl Health ===

impl Health {
    /// Nobody has failed.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ailing: Mutex::new(BTreeMap::new()),
            count: AtomicUsize::new(0),
        }
    }

    /// Whether nobody has failed lately.
    pub(crate) fn is_all_well(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// How a target of a provider stands with a credential (empty: it takes none).
    pub(crate) fn standing(
        &self,
        target: &str,
        provider: &str,
        credential: &str,
        now_us: u64,
    ) -> Standing {
        if self.is_all_well() {
            return Standing::Well;
        }
        let ailing = self.ailing.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |name: &str| {
            let ailing = ailing.get(&(name.into(), credential.into()));
            ailing.map_or(Standing::Well, |ailing| ailing.standing(now_us))
        };
        of(target).max(of(provider))
    }

    /// An attempt failed.
    pub(crate) fn failed(
        &self,
        target: &str,
        provider: &str,
        credential: &str,
        failure: Failure,
        now_us: u64,
    ) {
        let name = match failure {
            Failure::Rejected => provider,
            Failure::Unwell | Failure::RateLimited { .. } => target,
        };
        let mut ailing = self.ailing.lock().unwrap_or_else(PoisonError::into_inner);
        ailing.retain(|_, one| now_us < one.heard_of_at_us.saturating_add(FORGET_US));
        let one = ailing.entry((name.into(), credential.into())).or_default();
        one.fail(failure, now_us);
        self.count.store(ailing.len(), Ordering::Release);
    }

    /// An attempt was answered: whatever was wrong is over.
    pub(crate) fn succeeded(&self, target: &str, provider: &str, credential: &str) {
        if self.is_all_well() {
            return;
        }
        let mut ailing = self.ailing.lock().unwrap_or_else(PoisonError::into_inner);
        for name in [target, provider] {
            ailing.remove(&(name.into(), credential.into()));
        }
        self.count.store(ailing.len(), Ordering::Release);
    }
}

// === impl Ailing ===

impl Ailing {
    fn standing(&self, now_us: u64) -> Standing {
        if now_us < self.told_until_us {
            Standing::Told {
                until_us: self.told_until_us,
            }
        } else if now_us < self.cooling_until_us {
            Standing::Cooling
        } else {
            Standing::Well
        }
    }

    fn fail(&mut self, failure: Failure, now_us: u64) {
        self.heard_of_at_us = now_us;
        match failure {
            Failure::RateLimited {
                retry_after_s: Some(seconds),
            } => {
                let wait_us = u64::from(seconds).saturating_mul(1_000_000).min(LONGEST_US);
                self.told_until_us = self.told_until_us.max(now_us.saturating_add(wait_us));
            }
            Failure::Rejected => self.cool(now_us),
            Failure::RateLimited {
                retry_after_s: None,
            }
            | Failure::Unwell => self.count(now_us),
        }
    }

    /// Counts a failure. After a cool-down the first is enough for another.
    fn count(&mut self, now_us: u64) {
        if now_us < self.cooling_until_us {
            return;
        }
        self.failed_at_us
            .retain(|at_us| now_us < at_us.saturating_add(WITHIN_US));
        self.failed_at_us.push(now_us);
        if self.failed_at_us.len() >= FAILURES || self.cooled_us > 0 {
            self.cool(now_us);
        }
    }

    fn cool(&mut self, now_us: u64) {
        if now_us < self.cooling_until_us {
            return;
        }
        self.failed_at_us.clear();
        self.cooled_us = self.cooled_us.saturating_mul(2).clamp(FIRST_US, LONGEST_US);
        self.cooling_until_us = now_us.saturating_add(self.cooled_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    fn fail(health: &Health, at_us: u64) {
        health.failed("p/m", "p", "c", Failure::Unwell, at_us);
    }

    fn standing(health: &Health, at_us: u64) -> Standing {
        health.standing("p/m", "p", "c", at_us)
    }

    #[test]
    fn the_third_failure_within_a_minute_cools_for_half_a_minute() {
        let health = Health::new();
        fail(&health, 0);
        fail(&health, 30 * S);
        fail(&health, 61 * S);
        assert_eq!(standing(&health, 61 * S), Standing::Well);
        fail(&health, 70 * S);
        assert_eq!(standing(&health, 70 * S), Standing::Cooling);
        assert_eq!(standing(&health, 100 * S - 1), Standing::Cooling);
        assert_eq!(standing(&health, 100 * S), Standing::Well);
    }

    #[test]
    fn each_further_cool_down_is_twice_as_long_up_to_five_minutes_until_it_succeeds() {
        let health = Health::new();
        let mut at_us = 0;
        fail(&health, at_us);
        fail(&health, at_us);
        for seconds in [30, 60, 120, 240, 300, 300] {
            fail(&health, at_us);
            let end_us = at_us + seconds * S;
            assert_eq!(standing(&health, end_us - 1), Standing::Cooling);
            assert_eq!(standing(&health, end_us), Standing::Well);
            at_us = end_us;
        }
        health.succeeded("p/m", "p", "c");
        fail(&health, at_us);
        assert_eq!(standing(&health, at_us), Standing::Well);
    }

    #[test]
    fn a_retry_after_is_followed_for_five_minutes_at_most() {
        let health = Health::new();
        for (seconds, followed_s) in [(20, 20), (86_400, 300)] {
            let failure = Failure::RateLimited {
                retry_after_s: Some(seconds),
            };
            health.failed("p/m", "p", "c", failure, 0);
            let until_us = followed_s * S;
            assert_eq!(standing(&health, until_us - 1), Standing::Told { until_us });
            assert_eq!(standing(&health, until_us), Standing::Well);
            health.succeeded("p/m", "p", "c");
        }
    }

    #[test]
    fn a_rejected_credential_cools_at_once_for_all_of_its_provider() {
        let health = Health::new();
        health.failed("p/m", "p", "c", Failure::Rejected, 0);
        assert_eq!(health.standing("p/other", "p", "c", S), Standing::Cooling);
        assert_eq!(health.standing("p/other", "p", "d", S), Standing::Well);
        assert_eq!(health.standing("q/m", "q", "c", S), Standing::Well);
    }

    #[test]
    fn failures_while_it_cools_do_not_make_it_longer() {
        let health = Health::new();
        for at_us in [0, 0, 0, 10 * S, 20 * S, 29 * S] {
            fail(&health, at_us);
        }
        assert_eq!(standing(&health, 30 * S), Standing::Well);
    }

    #[test]
    fn what_was_not_heard_of_for_long_is_forgotten() {
        let health = Health::new();
        fail(&health, 0);
        health.failed("q/m", "q", "", Failure::Unwell, FORGET_US);
        assert_eq!(health.count.load(Ordering::Relaxed), 1);
    }
}
