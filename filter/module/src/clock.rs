//! The clocks of this process.

use std::{
    sync::LazyLock,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use filter_core::host::{Clock, Now};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Reads the system's clocks: monotonic since the process began, and Unix time.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now {
            mono_us: mono_us(),
            unix_us: unix_us(),
        }
    }
}

/// Microseconds since the process first asked.
pub(crate) fn mono_us() -> u64 {
    u64::try_from(START.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Microseconds since the Unix epoch; 0 before it.
pub(crate) fn unix_us() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
