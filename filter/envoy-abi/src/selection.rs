//! How a request learns that the cluster specifier panicked.
//!
//! A specifier can only keep Envoy's previous choice, which at first is none, and Envoy then
//! answers without a body. But the first selection that matters runs inside a call of the
//! downstream filter's, on the same thread: so that filter can answer instead.

use std::cell::Cell;

thread_local! {
    static FAILED: Cell<bool> = const { Cell::new(false) };
}

/// Notes a panic of the specifier.
pub(crate) fn note_failure() {
    FAILED.set(true);
}

/// Makes calls that may select a cluster; true when a selection panicked in them.
pub(crate) fn fails_in(calls: impl FnOnce()) -> bool {
    FAILED.set(false);
    calls();
    FAILED.take()
}
