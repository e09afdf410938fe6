//! What stands behind the bootstrap pointers that Envoy holds, and its host.
//!
//! Configuration and extension are one instance here: Envoy makes one extension for each
//! configuration, and the gauges need the extension's pointer, all else the configuration's.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::bootstrap::{Bootstrap, BootstrapHost};
use crate::envoy_config::define;
use crate::envoy_stream::label_buffers;
use crate::guard::{Panicked, contain, guard};
use crate::metrics::{CounterId, GaugeId, HistogramId, MetricsError, check};
use crate::raw::{Buffer, Callbacks, Ptr};
use crate::scheduler::{BootstrapScheduler, Target};
use crate::shutdown::ShutdownCalls;
use crate::timer::{self, Timer};

/// Pause before a timer whose hook panicked fires again.
const REARM_MS: u64 = 1000;

/// The extension of one configuration; main thread only.
pub(crate) struct BootstrapInstance {
    callbacks: &'static Callbacks,
    config: Ptr,
    extension: Cell<Ptr>,
    module: RefCell<Option<Box<dyn Bootstrap>>>,
    scheduler: RefCell<Option<BootstrapScheduler>>,
    shutdown: Rc<ShutdownCalls>,
    init_signalled: Cell<bool>,
}

impl BootstrapInstance {
    pub(crate) fn new(callbacks: &'static Callbacks, config: Ptr) -> Self {
        Self {
            callbacks,
            config,
            extension: Cell::new(std::ptr::null_mut()),
            module: RefCell::new(None),
            scheduler: RefCell::new(None),
            shutdown: Rc::default(),
            init_signalled: Cell::new(false),
        }
    }

    /// Makes the module's part; false when the factory refuses or panics.
    pub(crate) fn fill(
        &self,
        factory: impl FnOnce(&mut EnvoyBootstrap<'_>) -> Option<Box<dyn Bootstrap>>,
    ) -> bool {
        let mut host = EnvoyBootstrap::new(self);
        let outer = self.shutdown.enter();
        let made = guard("bootstrap.config_new", || {
            crate::fault_point!("bootstrap.config_new");
            factory(&mut host)
        });
        let made = made.ok().flatten();
        let filled = made.is_some();
        self.module.replace(made);
        host.signal_if_asked();
        self.shutdown.leave(outer);
        filled
    }

    /// Runs a hook; a busy extension is passed over, a panic is logged.
    pub(crate) fn run(
        &self,
        hook: &'static str,
        body: impl FnOnce(&mut dyn Bootstrap, &mut EnvoyBootstrap<'_>),
    ) {
        match self.try_run(hook, body) {
            Ok(()) | Err(Panicked) => {}
        }
    }

    /// Runs a timer's hook; one that panicked, perhaps before it could enable its timer again,
    /// gets it enabled here, so that one fault does not end all periodic work.
    pub(crate) fn fire(
        &self,
        timer: Ptr,
        body: impl FnOnce(&mut dyn Bootstrap, &mut EnvoyBootstrap<'_>),
    ) {
        let result = self.try_run("bootstrap.timer_fired", body);
        if result.is_err() && !timer::is_buried(timer) {
            // SAFETY: Envoy's timer, whose callback is running, so it was not deleted.
            unsafe { (self.callbacks.bootstrap_extension_timer_enable)(timer, REARM_MS) }
        }
    }

    fn try_run(
        &self,
        hook: &'static str,
        body: impl FnOnce(&mut dyn Bootstrap, &mut EnvoyBootstrap<'_>),
    ) -> Result<(), Panicked> {
        timer::delete_buried();
        let mut host = EnvoyBootstrap::new(self);
        let outer = self.shutdown.enter();
        let result = guard(hook, || {
            let Ok(mut slot) = self.module.try_borrow_mut() else {
                return;
            };
            if let Some(module) = slot.as_deref_mut() {
                crate::fault_point!(hook);
                body(module, &mut host);
            }
        });
        host.signal_if_asked();
        self.shutdown.leave(outer);
        result
    }

    pub(crate) fn set_extension(&self, extension: Ptr) {
        self.extension.set(extension);
    }

    pub(crate) fn shutdown_calls(&self) -> Rc<ShutdownCalls> {
        Rc::clone(&self.shutdown)
    }

    /// The extension goes: its pointer and shutdown tokens are dead.
    pub(crate) fn close_extension(&self) {
        self.extension.set(std::ptr::null_mut());
        self.shutdown.close();
    }

    /// The configuration goes: the module's part is dropped.
    pub(crate) fn close(&self) {
        self.shutdown.close();
        if let Some(scheduler) = self.scheduler.take() {
            scheduler.close();
        }
        let module = self.module.try_borrow_mut().ok().and_then(|mut m| m.take());
        contain("bootstrap.config_destroy", || {
            crate::fault_point!("bootstrap.config_destroy");
            drop(module);
        });
        timer::delete_buried();
    }
}

/// Envoy's side of the extension, for the length of one hook.
pub(crate) struct EnvoyBootstrap<'a> {
    instance: &'a BootstrapInstance,
    callbacks: &'static Callbacks,
    init_asked: bool,
}

impl<'a> EnvoyBootstrap<'a> {
    fn new(instance: &'a BootstrapInstance) -> Self {
        Self {
            instance,
            callbacks: instance.callbacks,
            init_asked: false,
        }
    }

    /// Makes the queued signal: workers may start, and hooks run, inside the call.
    fn signal_if_asked(&self) {
        if self.init_asked && !self.instance.init_signalled.replace(true) {
            let signal = self
                .callbacks
                .bootstrap_extension_config_signal_init_complete;
            // SAFETY: the configuration is alive during its hooks.
            unsafe { signal(self.instance.config) }
        }
    }
}

/// A metric call with label values.
macro_rules! metric {
    ($self:ident, $callback:ident, $id:expr, $labels:expr, $value:expr) => {{
        let labels = label_buffers($labels);
        let labels = labels.as_slice();
        // SAFETY: the configuration is alive during its hooks; labels are copied.
        check(unsafe {
            ($self.callbacks.$callback)(
                $self.instance.config,
                $id.0,
                labels.as_ptr(),
                labels.len(),
                $value,
            )
        })
    }};
}

impl BootstrapHost for EnvoyBootstrap<'_> {
    fn new_scheduler(&mut self) -> BootstrapScheduler {
        self.instance
            .scheduler
            .borrow_mut()
            .get_or_insert_with(|| {
                let new = self.callbacks.bootstrap_extension_config_scheduler_new;
                BootstrapScheduler::new(Target {
                    // SAFETY: the configuration is alive during its hooks.
                    raw: unsafe { new(self.instance.config) },
                    commit: self.callbacks.bootstrap_extension_config_scheduler_commit,
                    delete: self.callbacks.bootstrap_extension_config_scheduler_delete,
                })
            })
            .clone()
    }

    fn new_timer(&mut self) -> Timer {
        let new = self.callbacks.bootstrap_extension_timer_new;
        Timer::new(timer::Target {
            // SAFETY: the configuration is alive during its hooks, on the main thread.
            raw: unsafe { new(self.instance.config) },
            enable: self.callbacks.bootstrap_extension_timer_enable,
            disable: self.callbacks.bootstrap_extension_timer_disable,
            delete: self.callbacks.bootstrap_extension_timer_delete,
        })
    }

    fn signal_init_complete(&mut self) {
        self.init_asked = true;
    }

    fn enable_cluster_lifecycle(&mut self) -> bool {
        let enable = self.callbacks.bootstrap_extension_enable_cluster_lifecycle;
        // SAFETY: the configuration is alive during its hooks.
        unsafe { enable(self.instance.config) }
    }

    fn gauge_value(&self, name: &str) -> Option<u64> {
        let extension = self.instance.extension.get();
        if extension.is_null() {
            return None;
        }
        let mut value = 0;
        let name = Buffer::new(name.as_bytes());
        // SAFETY: the extension is alive between its new and destroy hooks.
        unsafe {
            (self.callbacks.bootstrap_extension_get_gauge_value)(extension, name, &raw mut value)
        }
        .then_some(value)
    }

    fn validation_mode(&self) -> bool {
        // SAFETY: Envoy allows this on the main thread.
        unsafe { (self.callbacks.is_validation_mode)() }
    }

    fn concurrency(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (self.callbacks.get_concurrency)() }
    }

    fn define_counter(&mut self, name: &str, labels: &[&str]) -> Result<CounterId, MetricsError> {
        let function = self.callbacks.bootstrap_extension_config_define_counter;
        // SAFETY: function and configuration belong together; it is alive during its hooks.
        unsafe { define(function, self.instance.config, name, labels) }.map(CounterId)
    }

    fn define_gauge(&mut self, name: &str, labels: &[&str]) -> Result<GaugeId, MetricsError> {
        let function = self.callbacks.bootstrap_extension_config_define_gauge;
        // SAFETY: as for the counter.
        unsafe { define(function, self.instance.config, name, labels) }.map(GaugeId)
    }

    fn define_histogram(
        &mut self,
        name: &str,
        labels: &[&str],
    ) -> Result<HistogramId, MetricsError> {
        let function = self.callbacks.bootstrap_extension_config_define_histogram;
        // SAFETY: as for the counter.
        unsafe { define(function, self.instance.config, name, labels) }.map(HistogramId)
    }

    fn increment_counter(
        &mut self,
        counter: CounterId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError> {
        metric!(
            self,
            bootstrap_extension_config_increment_counter,
            counter,
            labels,
            by
        )
    }

    fn increment_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError> {
        metric!(
            self,
            bootstrap_extension_config_increment_gauge,
            gauge,
            labels,
            by
        )
    }

    fn decrement_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError> {
        metric!(
            self,
            bootstrap_extension_config_decrement_gauge,
            gauge,
            labels,
            by
        )
    }

    fn set_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        value: u64,
    ) -> Result<(), MetricsError> {
        metric!(
            self,
            bootstrap_extension_config_set_gauge,
            gauge,
            labels,
            value
        )
    }

    fn record_histogram(
        &mut self,
        histogram: HistogramId,
        labels: &[&str],
        value: u64,
    ) -> Result<(), MetricsError> {
        metric!(
            self,
            bootstrap_extension_config_record_histogram_value,
            histogram,
            labels,
            value
        )
    }
}
