//! The token of a pending shutdown.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::raw::{DoneFn, Ptr};

/// Envoy waits for this; completed exactly once, at the latest on drop.
///
/// It may be kept and completed later, from a timer for instance: Envoy serves on until then.
/// Completion from inside a hook takes effect when the hook has returned. After the extension
/// has been destroyed (a second signal can get there first) completion does nothing.
pub struct ShutdownDone {
    call: Option<Call>,
    calls: Rc<ShutdownCalls>,
}

/// Envoy's function and its argument.
#[derive(Clone, Copy)]
struct Call {
    done: DoneFn,
    context: Ptr,
}

impl ShutdownDone {
    pub(crate) fn new(done: DoneFn, context: Ptr, calls: Rc<ShutdownCalls>) -> Self {
        Self {
            call: Some(Call { done, context }),
            calls,
        }
    }

    /// Lets Envoy go on with its shutdown.
    pub fn complete(self) {
        drop(self);
    }
}

impl Drop for ShutdownDone {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.calls.complete(call);
        }
    }
}

impl std::fmt::Debug for ShutdownDone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShutdownDone")
    }
}

/// What one extension's tokens share: whether Envoy still listens, and whether a hook runs.
#[derive(Default)]
pub(crate) struct ShutdownCalls {
    closed: Cell<bool>,
    in_hook: Cell<bool>,
    ready: RefCell<Vec<Call>>,
}

impl ShutdownCalls {
    fn complete(&self, call: Call) {
        if self.closed.get() {
            return;
        }
        if self.in_hook.get() {
            self.ready.borrow_mut().push(call);
            return;
        }
        // SAFETY: Envoy gave function and argument to the shutdown hook for one call, and the
        // extension that it belongs to still exists.
        unsafe { (call.done)(call.context) }
    }

    /// Marks a hook as running; answers what to restore.
    pub(crate) fn enter(&self) -> bool {
        self.in_hook.replace(true)
    }

    /// Ends a hook: makes the completions that it asked for.
    pub(crate) fn leave(&self, outer: bool) {
        self.in_hook.set(outer);
        if outer {
            return;
        }
        for call in self.ready.take() {
            self.complete(call);
        }
    }

    /// The extension goes: later completions do nothing.
    pub(crate) fn close(&self) {
        self.closed.set(true);
    }
}
