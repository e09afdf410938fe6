//! A node's clocks: one that only runs forward, at a pace of its own, and one on the wall.

/// Clocks of one process, told from true time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Of the monotonic clock at the start of the run.
    pub offset_us: u64,
    /// Parts per million by which it runs too fast.
    pub drift_ppm: i64,
    /// By which the wall clock is ahead.
    pub skew_us: i64,
}

const MILLION: i128 = 1_000_000;

impl Clock {
    /// What the monotonic clock shows at a true time.
    pub fn mono_us(&self, now_us: u64) -> u64 {
        let run_us = i128::from(now_us) * (MILLION + i128::from(self.drift_ppm)) / MILLION;
        self.offset_us + u64::try_from(run_us).expect("clocks run forward")
    }

    /// The true time by which the monotonic clock shows at least this.
    pub fn when_us(&self, mono_us: u64) -> u64 {
        let run_us = i128::from(mono_us.saturating_sub(self.offset_us));
        let now_us = run_us * MILLION / (MILLION + i128::from(self.drift_ppm)) + 1;
        u64::try_from(now_us).unwrap_or(u64::MAX)
    }

    /// What the wall clock shows, in Unix microseconds, at a true Unix time.
    pub const fn wall_us(&self, unix_us: i64) -> i64 {
        unix_us + self.skew_us
    }
}
