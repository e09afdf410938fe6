//! The one place where panics are caught.
//!
//! The standard panic hook prints the message, which may quote a request, to stderr. The module
//! has a copy of the standard library of its own, so a hook set here sees this module's panics
//! only; it notes the place and says nothing else.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::log::log;
use crate::status::LogLevel;

/// A hook panicked; it has been logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

thread_local! {
    /// Where the last panic of this thread was.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
    /// Guards on this thread's stack.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
}

/// Runs a hook's body; a panic is logged by hook name and source location only.
pub(crate) fn guard<R>(hook: &str, body: impl FnOnce() -> R) -> Result<R, Panicked> {
    GUARDS.set(GUARDS.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(body));
    GUARDS.set(GUARDS.get() - 1);
    result.map_err(|payload| {
        // A payload's own drop may panic too; leaking it is the lesser evil.
        std::mem::forget(payload);
        let place = PLACE.take();
        let place = if place.is_empty() {
            "unknown place"
        } else {
            &place
        };
        log(LogLevel::Error, &format!("panic in {hook} at {place}"));
        Panicked
    })
}

/// Runs a hook's body that has no answer; a panic is logged and over.
pub(crate) fn contain(hook: &str, body: impl FnOnce()) {
    match guard(hook, body) {
        Ok(()) | Err(Panicked) => {}
    }
}

/// Replaces the standard panic hook: panics outside of hooks (the module's own threads) are
/// logged too, by thread name and location.
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map_or_else(String::new, ToString::to_string);
        if GUARDS.get() > 0 {
            return PLACE.set(place);
        }
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        log(
            LogLevel::Error,
            &format!("panic on thread {name} at {place}"),
        );
    }));
}
