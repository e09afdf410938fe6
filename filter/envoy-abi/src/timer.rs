//! Timers of the bootstrap extension, on the main thread.

use std::cell::{Cell, RefCell};

use crate::raw::Ptr;

/// Tells timers apart in `on_timer_fired`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(pub(crate) usize);

/// Envoy's timer object and the callbacks that know it.
pub(crate) struct Target {
    pub(crate) raw: Ptr,
    pub(crate) enable: unsafe extern "C" fn(Ptr, u64),
    pub(crate) disable: unsafe extern "C" fn(Ptr),
    pub(crate) delete: unsafe extern "C" fn(Ptr),
}

/// A one-shot timer; deleted on drop. Not `Send`: use and drop it on the main thread.
pub struct Timer(Option<Target>);

impl Timer {
    pub(crate) fn new(target: Target) -> Self {
        Self((!target.raw.is_null()).then_some(target))
    }

    /// The id that `on_timer_fired` is given.
    pub fn id(&self) -> TimerId {
        TimerId(self.0.as_ref().map_or(0, |target| target.raw.addr()))
    }

    /// Fires once in `delay_ms` milliseconds; an earlier delay is replaced.
    pub fn enable(&self, delay_ms: u64) {
        if let Some(target) = &self.0 {
            // SAFETY: the object is owned by this value.
            unsafe { (target.enable)(target.raw, delay_ms) }
        }
    }

    /// Does not fire any more until enabled again.
    pub fn disable(&self) {
        if let Some(target) = &self.0 {
            // SAFETY: the object is owned by this value.
            unsafe { (target.disable)(target.raw) }
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.disable();
        let Some(target) = self.0.take() else { return };
        if FIRING.get() == target.raw {
            BURIED.with_borrow_mut(|buried| buried.push(target));
        } else {
            delete(&target);
        }
    }
}

impl std::fmt::Debug for Timer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Timer").field(&self.id()).finish()
    }
}

thread_local! {
    /// The timer whose callback is running: deleting it now would free the running callback.
    static FIRING: Cell<Ptr> = const { Cell::new(std::ptr::null_mut()) };
    /// Timers dropped by their own hook, deleted at the next bootstrap hook.
    static BURIED: RefCell<Vec<Target>> = const { RefCell::new(Vec::new()) };
}

/// Runs a timer's hook.
pub(crate) fn while_firing<R>(raw: Ptr, hook: impl FnOnce() -> R) -> R {
    FIRING.set(raw);
    let result = hook();
    FIRING.set(std::ptr::null_mut());
    result
}

/// Whether a timer was dropped by its own hook and waits for its deletion.
pub(crate) fn is_buried(raw: Ptr) -> bool {
    BURIED.with_borrow(|buried| buried.iter().any(|target| target.raw == raw))
}

/// Deletes timers that were dropped by their own hook earlier.
pub(crate) fn delete_buried() {
    for target in BURIED.take() {
        delete(&target);
    }
}

fn delete(target: &Target) {
    // SAFETY: the object was owned by a `Timer` that is gone, and its callback is not running.
    unsafe { (target.delete)(target.raw) }
}
