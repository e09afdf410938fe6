//! The host of a bootstrap extension.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use crate::bootstrap::BootstrapHost;
use crate::fake::metric::{
    Definition, MetricCall, MetricKind, check_labels, definition, metric_call, recorded_metrics,
};
use crate::metrics::{CounterId, GaugeId, HistogramId, MetricsError};
use crate::raw::Ptr;
use crate::scheduler::{BootstrapScheduler, Target};
use crate::shutdown::{ShutdownCalls, ShutdownDone};
use crate::timer::{self, Timer, TimerId};

/// What the extension's timers and wakes did, shared with the objects handed out.
#[derive(Default)]
struct Outside {
    wakes: Vec<u64>,
    delays: BTreeMap<usize, Option<u64>>,
    completed: u32,
}

type Shared = Arc<Mutex<Outside>>;

/// Records what a bootstrap extension does; call the extension's hooks with it directly.
#[derive(Default)]
pub struct FakeBootstrap {
    outside: Shared,
    /// Values of gauges.
    pub gauges: BTreeMap<String, u64>,
    /// Whether start-up was released.
    pub init_complete: bool,
    /// What `enable_cluster_lifecycle` answers.
    pub lifecycle_allowed: bool,
    /// What `validation_mode` answers.
    pub validation_mode: bool,
    /// What `concurrency` answers.
    pub concurrency: u32,
    /// Metrics in the order of definition.
    pub defined: Vec<Definition>,
    /// Metric calls.
    pub metrics: Vec<MetricCall>,
}

impl FakeBootstrap {
    /// Commits since the last call of this, from any thread.
    pub fn take_wakes(&self) -> Vec<u64> {
        std::mem::take(&mut lock(&self.outside).wakes)
    }

    /// Delay in milliseconds of an enabled timer; `None` when disabled or deleted.
    pub fn delay_ms(&self, timer: TimerId) -> Option<u64> {
        lock(&self.outside).delays.get(&timer.0).copied().flatten()
    }

    /// Timers that were not deleted.
    pub fn live_timers(&self) -> usize {
        lock(&self.outside).delays.len()
    }

    /// A token for the shutdown hook.
    pub fn shutdown_done(&self) -> ShutdownDone {
        let context = Box::into_raw(Box::new(Arc::clone(&self.outside))).cast();
        ShutdownDone::new(done, context, Rc::<ShutdownCalls>::default())
    }

    /// Tokens that were completed.
    pub fn completed_shutdowns(&self) -> u32 {
        lock(&self.outside).completed
    }

    fn record(
        &mut self,
        kind: MetricKind,
        metric: usize,
        labels: &[&str],
        value: u64,
    ) -> Result<(), MetricsError> {
        check_labels(&self.defined, metric, labels)?;
        self.metrics.push(metric_call(kind, metric, labels, value));
        Ok(())
    }
}

impl std::fmt::Debug for FakeBootstrap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeBootstrap")
            .field("init_complete", &self.init_complete)
            .field("metrics", &self.metrics)
            .finish_non_exhaustive()
    }
}

impl BootstrapHost for FakeBootstrap {
    fn new_scheduler(&mut self) -> BootstrapScheduler {
        BootstrapScheduler::new(Target {
            raw: shared_ptr(&self.outside),
            commit: commit_wake,
            delete: drop_shared,
        })
    }

    fn new_timer(&mut self) -> Timer {
        let raw = shared_ptr(&self.outside);
        lock(&self.outside).delays.insert(raw.addr(), None);
        Timer::new(timer::Target {
            raw,
            enable,
            disable,
            delete,
        })
    }

    fn signal_init_complete(&mut self) {
        self.init_complete = true;
    }

    fn enable_cluster_lifecycle(&mut self) -> bool {
        self.lifecycle_allowed
    }

    fn gauge_value(&self, name: &str) -> Option<u64> {
        self.gauges.get(name).copied()
    }

    fn validation_mode(&self) -> bool {
        self.validation_mode
    }

    fn concurrency(&self) -> u32 {
        self.concurrency
    }

    fn define_counter(&mut self, name: &str, labels: &[&str]) -> Result<CounterId, MetricsError> {
        Ok(CounterId(definition(&mut self.defined, name, labels)))
    }

    fn define_gauge(&mut self, name: &str, labels: &[&str]) -> Result<GaugeId, MetricsError> {
        Ok(GaugeId(definition(&mut self.defined, name, labels)))
    }

    fn define_histogram(
        &mut self,
        name: &str,
        labels: &[&str],
    ) -> Result<HistogramId, MetricsError> {
        Ok(HistogramId(definition(&mut self.defined, name, labels)))
    }

    recorded_metrics!();
}

fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, Outside> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One strong count behind a pointer, as the handles carry it.
fn shared_ptr(shared: &Shared) -> Ptr {
    Box::into_raw(Box::new(Arc::clone(shared))).cast::<c_void>()
}

/// The state behind a handle's pointer.
///
/// # Safety
/// `raw` came from `shared_ptr` and was not dropped.
unsafe fn with_outside(raw: Ptr, change: impl FnOnce(&mut Outside)) {
    // SAFETY: as the caller says.
    let shared = unsafe { &*raw.cast::<Shared>() };
    change(&mut lock(shared));
}

unsafe extern "C" fn commit_wake(raw: Ptr, event_id: u64) {
    // SAFETY: the handle owns `raw`.
    unsafe { with_outside(raw, |outside| outside.wakes.push(event_id)) }
}

unsafe extern "C" fn enable(raw: Ptr, delay_ms: u64) {
    let timer = raw.addr();
    // SAFETY: the handle owns `raw`.
    unsafe {
        with_outside(raw, |outside| {
            outside.delays.insert(timer, Some(delay_ms));
        });
    }
}

unsafe extern "C" fn disable(raw: Ptr) {
    let timer = raw.addr();
    // SAFETY: the handle owns `raw`.
    unsafe {
        with_outside(raw, |outside| {
            outside.delays.insert(timer, None);
        });
    }
}

unsafe extern "C" fn delete(raw: Ptr) {
    let timer = raw.addr();
    // SAFETY: the handle owns `raw` and gives it up.
    unsafe {
        with_outside(raw, |outside| {
            outside.delays.remove(&timer);
        });
        drop_shared(raw);
    }
}

unsafe extern "C" fn drop_shared(raw: Ptr) {
    // SAFETY: made by `shared_ptr`; the handle gives it up.
    drop(unsafe { Box::from_raw(raw.cast::<Shared>()) });
}

unsafe extern "C" fn done(context: Ptr) {
    // SAFETY: made by `shutdown_done` for one call.
    unsafe {
        with_outside(context, |outside| outside.completed += 1);
        drop_shared(context);
    }
}
