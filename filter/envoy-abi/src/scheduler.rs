//! Handles that wake a stream, or the bootstrap extension, from any thread.
//!
//! Envoy's own object is deleted with the last clone or when its stream (or extension) ends,
//! whichever comes first; a commit after that does nothing. The lock makes that true also for
//! a thread that is in `commit` while Envoy tears the stream down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::raw::Ptr;

/// Envoy's scheduler object and the two callbacks that know it.
pub(crate) struct Target {
    pub(crate) raw: Ptr,
    pub(crate) commit: unsafe extern "C" fn(Ptr, u64),
    pub(crate) delete: unsafe extern "C" fn(Ptr),
}

// SAFETY: Envoy allows a scheduler to be committed and deleted on any thread.
unsafe impl Send for Target {}

impl Drop for Target {
    fn drop(&mut self) {
        // SAFETY: `raw` is owned by this value and deleted only here.
        unsafe { (self.delete)(self.raw) }
    }
}

#[derive(Clone)]
struct Wake(Arc<Mutex<Option<Target>>>);

impl Wake {
    fn new(target: Target) -> Self {
        let target = (!target.raw.is_null()).then_some(target);
        Self(Arc::new(Mutex::new(target)))
    }

    fn target(&self) -> MutexGuard<'_, Option<Target>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit(&self, event_id: u64) {
        if let Some(target) = self.target().as_ref() {
            // SAFETY: the object lives until the lock's content is taken; commit only posts to
            // the target thread's queue, so the lock is never taken again inside.
            unsafe { (target.commit)(target.raw, event_id) }
        }
    }
}

/// Wakes one stream: its filter's `on_scheduled` is called on its worker.
#[derive(Clone)]
pub struct StreamScheduler(Wake);

impl StreamScheduler {
    pub(crate) fn new(target: Target) -> Self {
        Self(Wake::new(target))
    }

    /// Asks for `on_scheduled(event_id)`; a no-op once the stream has ended.
    pub fn commit(&self, event_id: u64) {
        self.0.commit(event_id);
    }

    /// Ends the handle: called when the stream's filter goes.
    pub(crate) fn close(&self) {
        drop(self.0.target().take());
    }
}

impl std::fmt::Debug for StreamScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamScheduler")
    }
}

/// Wakes the bootstrap extension: its `on_scheduled` is called on the main thread.
#[derive(Clone)]
pub struct BootstrapScheduler(Wake);

impl BootstrapScheduler {
    pub(crate) fn new(target: Target) -> Self {
        Self(Wake::new(target))
    }

    /// Asks for `on_scheduled(event_id)`; a no-op once the extension is being destroyed.
    pub fn commit(&self, event_id: u64) {
        self.0.commit(event_id);
    }

    /// Ends the handle: called when the extension goes.
    pub(crate) fn close(&self) {
        drop(self.0.target().take());
    }
}

impl std::fmt::Debug for BootstrapScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BootstrapScheduler")
    }
}
