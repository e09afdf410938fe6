//! When to try a lost stream again.

const FLOOR_MS: u64 = 500;
const FIRST_CEILING_MS: u64 = 1_000;

/// Waits before retries, up to a ceiling that doubles from a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest wait, milliseconds.
    ceiling_ms: u64,
}

impl Backoff {
    /// Up to 30 s: for what a node goes on without.
    pub const PATIENT: Self = Self { ceiling_ms: 30_000 };
    /// Up to 5 s: for credit, which is usable for 15 s after the last sign of the control plane, and
    /// for usage, which limits are settled by.
    pub const PROMPT: Self = Self { ceiling_ms: 5_000 };

    /// Milliseconds to wait before retry number `attempt` (0 for the first): evenly drawn by
    /// `entropy` from 500 up to the ceiling of this retry.
    #[must_use]
    pub fn wait_ms(self, attempt: u32, entropy: u64) -> u64 {
        let factor = 1_u64.checked_shl(attempt).unwrap_or(u64::MAX);
        let ceiling_ms = FIRST_CEILING_MS.saturating_mul(factor).min(self.ceiling_ms);
        FLOOR_MS + entropy % (ceiling_ms - FLOOR_MS + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_retry_comes_within_a_second() {
        assert_eq!(Backoff::PATIENT.wait_ms(0, 0), 500);
        assert_eq!(Backoff::PATIENT.wait_ms(0, 500), 1_000);
    }

    #[test]
    fn the_spread_doubles_up_to_its_ceiling() {
        assert_eq!(Backoff::PATIENT.wait_ms(1, 1_500), 2_000);
        assert_eq!(Backoff::PATIENT.wait_ms(4, 15_500), 16_000);
        assert_eq!(Backoff::PATIENT.wait_ms(5, 29_500), 30_000);
        assert_eq!(Backoff::PATIENT.wait_ms(u32::MAX, 29_500), 30_000);
        assert_eq!(Backoff::PROMPT.wait_ms(2, 3_500), 4_000);
        assert_eq!(Backoff::PROMPT.wait_ms(3, 4_500), 5_000);
    }

    proptest! {
        #[test]
        fn every_wait_lies_between_half_a_second_and_the_ceiling(attempt: u32, entropy: u64) {
            prop_assert!((500..=30_000).contains(&Backoff::PATIENT.wait_ms(attempt, entropy)));
            prop_assert!((500..=5_000).contains(&Backoff::PROMPT.wait_ms(attempt, entropy)));
        }
    }
}
