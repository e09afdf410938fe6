//! Waiting on a condition, with a deadline.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// Asks until there is an answer; panics with `what` after the deadline.
pub fn until<T>(deadline: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(
            start.elapsed() < deadline,
            "not within {deadline:?}: {what}"
        );
        sleep(Duration::from_millis(20));
    }
}
