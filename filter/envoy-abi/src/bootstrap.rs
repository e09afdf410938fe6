//! The bootstrap extension: one per Envoy process, all hooks on the main thread.

use crate::metrics::{CounterId, GaugeId, HistogramId, MetricsError};
use crate::scheduler::BootstrapScheduler;
use crate::shutdown::ShutdownDone;
use crate::timer::{Timer, TimerId};

/// The process-wide part of a module; dropped in Envoy's `config_destroy`, after every stream.
///
/// A panic in a hook is logged and the extension lives on; a timer whose hook panicked fires
/// again after a second.
pub trait Bootstrap {
    /// Envoy has made the extension; gauges are readable from here on.
    fn on_extension_created(&mut self, _host: &mut dyn BootstrapHost) {}
    /// The server is initialized; the only hook in which the cluster life-cycle can be enabled.
    fn on_server_initialized(&mut self, _host: &mut dyn BootstrapHost) {}
    /// Comes once, on the main thread: not a per-worker hook.
    fn on_worker_thread_initialized(&mut self, _host: &mut dyn BootstrapHost) {}
    /// A graceful listener drain has begun; SIGTERM alone does not cause it.
    fn on_drain_started(&mut self, _host: &mut dyn BootstrapHost) {}
    /// Envoy wants to stop; it serves on until `done` is completed or dropped. Streams still
    /// open then settle after this hook. A second signal calls it again with its own `done`.
    fn on_shutdown(&mut self, _host: &mut dyn BootstrapHost, done: ShutdownDone) {
        done.complete();
    }
    /// A [`BootstrapScheduler::commit`] arrived on the main thread.
    fn on_scheduled(&mut self, _host: &mut dyn BootstrapHost, _event_id: u64) {}
    /// A timer fired; it is then disabled until enabled again.
    fn on_timer_fired(&mut self, _host: &mut dyn BootstrapHost, _timer: TimerId) {}
    /// A cluster was added or changed; it may still have no hosts.
    fn on_cluster_add_or_update(&mut self, _host: &mut dyn BootstrapHost, _cluster: &str) {}
    /// A cluster was removed.
    fn on_cluster_removal(&mut self, _host: &mut dyn BootstrapHost, _cluster: &str) {}
}

/// What a bootstrap extension may call, on the main thread.
pub trait BootstrapHost {
    /// A handle that calls `on_scheduled` from any thread.
    fn new_scheduler(&mut self) -> BootstrapScheduler;
    /// A timer, disabled.
    fn new_timer(&mut self) -> Timer;
    /// Lets Envoy open its listeners; without it Envoy never serves. Only the first call counts.
    /// Queued until the hook has returned.
    fn signal_init_complete(&mut self);
    /// Asks for `on_cluster_*`; true only in `on_server_initialized`. Clusters that exist by then
    /// are not announced.
    fn enable_cluster_lifecycle(&mut self) -> bool;
    /// Current value of an Envoy gauge; `None` when unknown or before `on_extension_created`.
    /// `server.version` is the first 24 bits of the build's commit.
    fn gauge_value(&self, name: &str) -> Option<u64>;
    /// Whether Envoy only checks its configuration: start no thread and dial nothing then.
    fn validation_mode(&self) -> bool;
    /// Number of worker threads.
    fn concurrency(&self) -> u32;

    /// Defines a counter; only while the extension's configuration is created.
    fn define_counter(&mut self, name: &str, labels: &[&str]) -> Result<CounterId, MetricsError>;
    /// Defines a gauge; only while the extension's configuration is created.
    fn define_gauge(&mut self, name: &str, labels: &[&str]) -> Result<GaugeId, MetricsError>;
    /// Defines a histogram; only while the extension's configuration is created.
    fn define_histogram(
        &mut self,
        name: &str,
        labels: &[&str],
    ) -> Result<HistogramId, MetricsError>;
    /// Adds to a counter.
    fn increment_counter(
        &mut self,
        counter: CounterId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError>;
    /// Adds to a gauge.
    fn increment_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError>;
    /// Subtracts from a gauge, which wraps below zero.
    fn decrement_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        by: u64,
    ) -> Result<(), MetricsError>;
    /// Sets a gauge.
    fn set_gauge(
        &mut self,
        gauge: GaugeId,
        labels: &[&str],
        value: u64,
    ) -> Result<(), MetricsError>;
    /// Records a value in a histogram.
    fn record_histogram(
        &mut self,
        histogram: HistogramId,
        labels: &[&str],
        value: u64,
    ) -> Result<(), MetricsError>;
}

/// Value of the gauge `server.version` for a release that this crate was run against.
///
/// Answers `None` for a build it does not know, which may still be newer and fine.
pub fn known_release(server_version: u64) -> Option<&'static str> {
    KNOWN_BUILDS
        .iter()
        .find(|(gauge, _)| *gauge == server_version)
        .map(|(_, release)| *release)
}

/// First 24 bits of the commit, and the release built from it.
const KNOWN_BUILDS: &[(u64, &str)] = &[(0x009e_5580, "1.40.0")];
