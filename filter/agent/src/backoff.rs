//! When to try a lost stream again.

const FLOOR_MS: u64 = 500;
const FIRST_CEILING_MS: u64 = 1_000;
const CEILING_MS: u64 = 30_000;

/// Milliseconds to wait before retry number `attempt` (0 for the first): evenly drawn by `entropy`
/// from 500 up to a ceiling that doubles from 1,000 to 30,000.
#[must_use]
pub fn backoff_ms(attempt: u32, entropy: u64) -> u64 {
    let doubled = FIRST_CEILING_MS.saturating_mul(1_u64.checked_shl(attempt).unwrap_or(u64::MAX));
    let ceiling = doubled.min(CEILING_MS);
    FLOOR_MS + entropy % (ceiling - FLOOR_MS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_retry_comes_within_a_second() {
        assert_eq!(backoff_ms(0, 0), 500);
        assert_eq!(backoff_ms(0, 500), 1_000);
    }

    #[test]
    fn the_spread_doubles_until_thirty_seconds() {
        assert_eq!(backoff_ms(1, 1_500), 2_000);
        assert_eq!(backoff_ms(4, 15_500), 16_000);
        assert_eq!(backoff_ms(5, 29_500), 30_000);
        assert_eq!(backoff_ms(u32::MAX, 29_500), 30_000);
    }

    proptest! {
        #[test]
        fn every_wait_lies_between_half_a_second_and_thirty(attempt: u32, entropy: u64) {
            prop_assert!((500..=30_000).contains(&backoff_ms(attempt, entropy)));
        }
    }
}
