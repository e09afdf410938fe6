//! What a run comes to.

use std::time::Duration;

use serde::Serialize;

use crate::connection::Times;

/// The figures of one run; times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    pub requests: usize,
    pub requests_per_s: f64,
    /// To the first bytes of the body.
    pub first_p50_us: f64,
    pub first_p99_us: f64,
    /// To the end of the answer.
    pub whole_p50_us: f64,
    pub whole_p99_us: f64,
}

impl Figures {
    /// Of all answers of a run that took so long.
    pub fn new(took: Duration, all: &[Times]) -> Self {
        let sorted = |time: fn(&Times) -> Duration| {
            let mut times: Vec<Duration> = all.iter().map(time).collect();
            times.sort_unstable();
            times
        };
        let (first, whole) = (sorted(|times| times.first), sorted(|times| times.whole));
        let count = u32::try_from(all.len()).unwrap_or(u32::MAX);
        Self {
            requests: all.len(),
            requests_per_s: f64::from(count) / took.as_secs_f64(),
            first_p50_us: quantile_us(&first, 50),
            first_p99_us: quantile_us(&first, 99),
            whole_p50_us: quantile_us(&whole, 50),
            whole_p99_us: quantile_us(&whole, 99),
        }
    }
}

/// The smallest time that `percent` of all reach; 0 of none.
fn quantile_us(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted
        .get(rank)
        .map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(us: impl Iterator<Item = u64>) -> Vec<Times> {
        us.map(|us| Times {
            first: Duration::from_micros(us),
            whole: Duration::from_micros(2 * us),
        })
        .collect()
    }

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let figures = Figures::new(Duration::from_secs(2), &times((1..=200).rev()));
        assert_eq!(figures.requests, 200);
        assert!((figures.requests_per_s - 100.0).abs() < 1e-9);
        assert!((figures.first_p50_us - 100.0).abs() < 1e-6);
        assert!((figures.first_p99_us - 198.0).abs() < 1e-6);
        assert!((figures.whole_p50_us - 200.0).abs() < 1e-6);
    }

    #[test]
    fn nothing_comes_to_nothing() {
        let figures = Figures::new(Duration::from_secs(1), &[]);
        assert!(figures.whole_p99_us.abs() < f64::EPSILON);
    }
}
