//! How fast an account is used.

/// Follows what is used of a lease.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Used and reserved, when last looked at.
    used: u64,
    looked_at_us: u64,
    per_minute: u64,
    /// When it was last seen to move.
    moved_at_us: u64,
}

/// Shorter looks than this would take a burst for a pace.
const SHORTEST_US: u64 = 5_000_000;

const MINUTE_US: u64 = 60_000_000;

// === impl Pace ===

impl Pace {
    /// Starts anew on another lease, of which `used` is used.
    pub(super) fn restart(&mut self, used: u64, now_us: u64) {
        self.used = used;
        self.looked_at_us = now_us;
        self.moved_at_us = now_us;
    }

    /// Takes a look; `used` may fall when reservations are given back. Rises at once, falls slowly.
    pub(super) fn look(&mut self, used: u64, now_us: u64) {
        if used != self.used {
            self.moved_at_us = now_us;
        }
        let elapsed_us = now_us.saturating_sub(self.looked_at_us);
        let more = u128::from(used.saturating_sub(self.used));
        let pace = more * u128::from(MINUTE_US) / u128::from(elapsed_us.max(SHORTEST_US));
        let pace = u64::try_from(pace).unwrap_or(u64::MAX);
        if pace > self.per_minute {
            self.per_minute = pace;
        } else if elapsed_us < SHORTEST_US {
            return;
        } else {
            self.per_minute = self.per_minute - self.per_minute / 4 + pace / 4;
        }
        self.used = used;
        self.looked_at_us = now_us;
    }

    /// Something was used that `look` does not see.
    pub(super) fn moved(&mut self, now_us: u64) {
        self.moved_at_us = now_us;
    }

    /// Use per minute.
    pub(super) fn per_minute(&self) -> u64 {
        self.per_minute
    }

    /// How long nothing has moved.
    pub(super) fn still_for_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.moved_at_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_use_is_found_at_the_first_look() {
        let mut pace = Pace::default();
        pace.restart(0, 0);
        pace.look(100, 5_000_000);
        assert_eq!(pace.per_minute(), 1_200);
        pace.look(200, 10_000_000);
        assert_eq!(pace.per_minute(), 1_200);
    }

    #[test]
    fn a_burst_within_a_moment_counts_as_five_seconds_of_use() {
        let mut pace = Pace::default();
        pace.restart(0, 0);
        pace.look(10, 1_000);
        assert_eq!(pace.per_minute(), 120);
    }

    #[test]
    fn what_stands_still_slows_down_and_says_for_how_long() {
        let mut pace = Pace::default();
        pace.restart(0, 0);
        pace.look(100, 5_000_000);
        for look in 2..=20_u64 {
            pace.look(100, look * 5_000_000);
        }
        assert!(pace.per_minute() < 12, "{pace:?}");
        assert_eq!(pace.still_for_us(100_000_000), 95_000_000);
    }
}
