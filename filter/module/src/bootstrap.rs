//! ④ The bootstrap extension: one per Envoy process, on its main thread.
//!
//! Starts the agent, holds Envoy's listeners back until there is a config (or a deadline has
//! passed), publishes metrics once a second, and drains at shutdown.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use filter_agent::ads::Snapshot;
use filter_core::config::compile;
use filter_envoy_abi::{Bootstrap, BootstrapHost, ShutdownDone, Timer, TimerId, known_release};
use thiserror::Error;
use tokio::sync::watch;

use crate::{
    agent::{
        self, KnownClusters, READY_EVENT, Running, Start,
        clusters::ClusterFile,
        snapshot_file::{SnapshotFile, SnapshotFileError},
    },
    clock, log,
    metrics::Metrics,
    node::{NodeError, ThisNode},
    published,
    settings::{Settings, SettingsError},
    waiting, worker,
};

const TICK_MS: u64 = 1_000;
const DRAIN_TICK_MS: u64 = 50;
/// A node that has a config of its own waits only this long for a newer one.
const RESTORED_WAIT_US: u64 = 2_000_000;

/// Why the extension cannot start.
#[derive(Debug, Error)]
pub(crate) enum BootstrapError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(
        "state_dir {path} cannot be written: {error}. Usage, config and clusters are kept there: \
         name a directory on a local disk with room that this process may write to"
    )]
    StateDir { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Snapshot(#[from] SnapshotFileError),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error("metrics: {0}")]
    Metrics(#[from] filter_envoy_abi::MetricsError),
}

/// The extension's state.
pub(crate) struct Extension {
    settings: Settings,
    metrics: Metrics,
    /// Everything the agent starts with, until Envoy's version is known.
    start: Option<Start>,
    running: Option<Running>,
    known_clusters: watch::Sender<KnownClusters>,
    tick: Timer,
    /// Ends the waits of requests whose time is over.
    sweep: Timer,
    /// Monotonic moment at which the listeners open, config or not.
    release_at_us: u64,
    released: bool,
    drain: Option<Drain>,
}

struct Drain {
    done: ShutdownDone,
    until_us: u64,
}

/// Called when Envoy creates the extension.
///
/// # Errors
/// When the config is wrong or the state directory cannot be used; Envoy then refuses to start.
pub(crate) fn create(
    host: &mut dyn BootstrapHost,
    config: &[u8],
) -> Result<Box<dyn Bootstrap>, BootstrapError> {
    let settings = Settings::parse(config)?;
    let refused = |error| BootstrapError::StateDir {
        path: settings.state_dir.clone(),
        error,
    };
    claim(&settings.state_dir).map_err(refused)?;
    if host.validation_mode() {
        // Envoy refuses a config whose watched file is missing; nothing else may be started.
        ClusterFile::ensure(&settings.clusters_file()).map_err(refused)?;
        return Ok(Box::new(Validation));
    }
    let snapshot_file = SnapshotFile::new(
        settings.snapshot_file(),
        settings.snapshot_key_file.as_deref(),
    )?;
    let stored = load(&snapshot_file);
    let resources = stored
        .as_ref()
        .map(|stored| stored.resources.clone())
        .unwrap_or_default();
    let (compiled, _) = compile(&resources);
    let max_stale_us = u64::from(compiled.settings().max_stale_s) * 1_000_000;
    let clusters = ClusterFile::create(settings.clusters_file(), &resources).map_err(refused)?;
    let (known_clusters, known) = watch::channel(KnownClusters {
        announced: false,
        names: clusters.names(),
    });
    let mut wait_us = settings.start_deadline_ms.saturating_mul(1_000);
    if stored.is_some() {
        published::publish(compiled);
        published::note_restored(max_stale_us);
        wait_us = wait_us.min(RESTORED_WAIT_US);
    }
    let node = Arc::new(ThisNode::create(&settings.state_dir, &settings.node)?);
    make_open_tables(&node, host.concurrency());
    worker::install(Arc::clone(&node));
    let tick = host.new_timer();
    tick.enable(TICK_MS);
    let sweep = host.new_timer();
    sweep.enable(waiting::SWEEP_MS);
    Ok(Box::new(Extension {
        metrics: Metrics::define(host)?,
        start: Some(Start {
            settings: settings.clone(),
            node,
            snapshot_file,
            stored,
            clusters,
            wake: host.new_scheduler(),
            known_clusters: known,
            max_stale_us,
            concurrency: host.concurrency(),
            envoy_version: String::new(),
        }),
        running: None,
        known_clusters,
        tick,
        sweep,
        release_at_us: clock::mono_us().saturating_add(wait_us),
        released: false,
        drain: None,
        settings,
    }))
}

/// Makes each worker's first table of open exchanges.
fn make_open_tables(node: &ThisNode, workers: u32) {
    for shard in 0..workers {
        if let Err(error) = node.supply(shard).fill(node, 0) {
            // Tried again once a second; until then requests go on all the same.
            log::error(&format!(
                "state_dir: no table of open exchanges: {error}. What is open when this process \
                 is killed will not be recorded"
            ));
        }
    }
}

/// Makes the state directory and shows that it can be written. An Envoy that could keep no usage
/// does not start; one whose disk fails later goes on serving, and shows what it lost.
fn claim(state_dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(state_dir)?;
    let probe = state_dir.join(format!("probe.{}", std::process::id()));
    let written = std::fs::write(&probe, "room for one line\n");
    let removed = std::fs::remove_file(&probe);
    written.and(removed)
}

/// A snapshot that cannot be read is as good as none, and said.
fn load(file: &SnapshotFile) -> Option<Snapshot> {
    match file.load() {
        Ok(stored) => stored,
        Err(error) => {
            log::warn(&format!("starting without the stored config: {error}"));
            None
        }
    }
}

/// Stands in while Envoy only validates its config.
struct Validation;

impl Bootstrap for Validation {}

impl Bootstrap for Extension {
    fn on_extension_created(&mut self, host: &mut dyn BootstrapHost) {
        self.start_agent(host);
    }

    fn on_server_initialized(&mut self, host: &mut dyn BootstrapHost) {
        let announced = host.enable_cluster_lifecycle();
        self.known_clusters
            .send_modify(|known| known.announced = announced);
        if !announced {
            log::error(
                "Envoy does not announce clusters; new ones are used only when they have hosts",
            );
        }
    }

    fn on_scheduled(&mut self, host: &mut dyn BootstrapHost, event_id: u64) {
        if event_id == READY_EVENT {
            self.release(host);
        }
    }

    fn on_cluster_add_or_update(&mut self, _host: &mut dyn BootstrapHost, cluster: &str) {
        self.known_clusters.send_modify(|known| {
            known.names.insert(cluster.to_owned());
        });
    }

    fn on_cluster_removal(&mut self, _host: &mut dyn BootstrapHost, cluster: &str) {
        self.known_clusters.send_modify(|known| {
            known.names.remove(cluster);
        });
    }

    fn on_timer_fired(&mut self, host: &mut dyn BootstrapHost, timer: TimerId) {
        if timer == self.sweep.id() {
            self.sweep.enable(waiting::SWEEP_MS);
            return waiting::sweep(clock::mono_us());
        }
        self.tick.enable(if self.drain.is_some() {
            DRAIN_TICK_MS
        } else {
            TICK_MS
        });
        if self.drain.is_none() {
            // Nothing to start, unless the hook that does so failed.
            self.start_agent(host);
        }
        if clock::mono_us() >= self.release_at_us && !self.released {
            log::warn("no config from the control plane yet; listeners open without one");
            self.release(host);
        }
        self.metrics.flush(host);
        self.end_drain();
    }

    fn on_shutdown(&mut self, host: &mut dyn BootstrapHost, done: ShutdownDone) {
        self.metrics.flush(host);
        if let Some(running) = &self.running {
            running.drain();
        }
        let wait_us = self.settings.drain_deadline_ms.saturating_mul(1_000);
        let until_us = clock::mono_us().saturating_add(wait_us);
        // A second signal replaces the first one's token, which completes when it is dropped.
        if self.drain.replace(Drain { done, until_us }).is_some() {
            self.drain = None;
            return;
        }
        self.tick.enable(DRAIN_TICK_MS);
        self.end_drain();
    }
}

impl Extension {
    /// Starts the agent, once.
    fn start_agent(&mut self, host: &mut dyn BootstrapHost) {
        let Some(mut start) = self.start.take() else {
            return;
        };
        let version = host.gauge_value("server.version").unwrap_or(0);
        start.envoy_version = known_release(version).map_or_else(
            || {
                log::warn(&format!(
                    "this Envoy (build {version:x}) is not one that was tested"
                ));
                format!("build {version:x}")
            },
            str::to_owned,
        );
        match agent::start(start) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                log::error(&format!("agent thread: {error}"));
                self.release(host);
            }
        }
    }

    fn release(&mut self, host: &mut dyn BootstrapHost) {
        self.released = true;
        host.signal_init_complete();
    }

    /// Lets Envoy stop once nothing is open, or the deadline has passed.
    fn end_drain(&mut self) {
        let Some(drain) = &self.drain else { return };
        if worker::open_exchanges() > 0 && clock::mono_us() < drain.until_us {
            return;
        }
        worker::note_shutting_down();
        if let Some(drain) = self.drain.take() {
            drain.done.complete();
        }
    }
}

impl Drop for Extension {
    /// Envoy drops the extension after the last stream has settled: now the spool can end.
    fn drop(&mut self) {
        self.running = None;
    }
}
