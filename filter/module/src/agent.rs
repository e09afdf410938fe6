//! The side of the module that talks to the control plane: one thread, with a tokio of its own.
//!
//! The workers never wait for it. Config goes to them through [`crate::published`], clusters to
//! Envoy through a file, and usage comes from the spool on disk.

mod channel;
pub(crate) mod clusters;
mod config_stream;
mod dead_leases;
pub(crate) mod disk;
mod lease_stream;
pub(crate) mod snapshot_file;
mod spool_upkeep;
mod usage_stream;

use std::{
    cell::Cell, collections::BTreeSet, io, path::PathBuf, sync::Arc, thread::JoinHandle,
    time::Duration,
};

use filter_agent::{
    ads::{Node, Session, Snapshot, Violation},
    lease,
    spool::BootId,
};
use filter_core::credit::Wake;
use filter_envoy_abi::BootstrapScheduler;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tonic::transport::Channel;

use self::{
    clusters::ClusterFile,
    config_stream::ConfigStream,
    dead_leases::{Dead, DeadLeases},
    lease_stream::{Bell, LeaseStream},
    snapshot_file::SnapshotFile,
    spool_upkeep::SpoolUpkeep,
    usage_stream::UsageStream,
};
use crate::{credit, log, node::ThisNode, settings::Settings};

/// The event that tells the main thread that a config is in force.
pub(crate) const READY_EVENT: u64 = 1;

/// How long a stopping process goes on sending usage and giving back credit. The spool keeps the
/// rest, and the control plane finds out for itself.
const LAST_FLUSH: Duration = Duration::from_secs(2);
/// How long a stopping process waits for its disk.
const LAST_SYNC: Duration = Duration::from_secs(2);

/// Why a stream to the control plane ended or could not begin.
#[derive(Debug, Error)]
pub(crate) enum AgentError {
    #[error("control_plane: {0}")]
    Address(String),
    #[error("node token file {file}: {error}")]
    Token { file: PathBuf, error: io::Error },
    #[error("node token file {0} must hold visible ASCII")]
    TokenForm(PathBuf),
    #[error("control plane unreachable: {0}")]
    Unreachable(String),
    #[error("control plane said {:?}: {}", .0.code(), .0.message())]
    Status(Box<tonic::Status>),
    #[error("control plane broke the protocol: {0}")]
    Violation(#[from] Violation),
    #[error("spool: {0}")]
    Disk(#[from] io::Error),
    #[error("stream closed")]
    Closed,
}

impl From<tonic::Status> for AgentError {
    fn from(status: tonic::Status) -> Self {
        // A status that the control plane sent has no cause; this one was made here.
        match std::error::Error::source(&status) {
            Some(_) => Self::Unreachable(channel::cause(&status)),
            None => Self::Status(Box::new(status)),
        }
    }
}

/// The clusters that Envoy has said it has.
#[derive(Debug, Default)]
pub(crate) struct KnownClusters {
    /// Envoy announces changes from here on.
    pub(crate) announced: bool,
    pub(crate) names: BTreeSet<String>,
}

/// What the streams share.
struct Agent {
    settings: Settings,
    channel: Channel,
    snapshot_file: SnapshotFile,
    wake: BootstrapScheduler,
    known_clusters: watch::Receiver<KnownClusters>,
    boot: BootId,
    max_stale_us: Cell<u64>,
    /// The spool needs room more than it needs what was acked.
    disk_full: Cell<bool>,
    /// Where dead processes go whose records are all in the ledger.
    dead: mpsc::UnboundedSender<Dead>,
}

impl Agent {
    fn announce_ready(&self) {
        self.wake.commit(READY_EVENT);
    }
}

/// What the main thread hands over.
pub(crate) struct Start {
    pub(crate) settings: Settings,
    pub(crate) node: Arc<ThisNode>,
    pub(crate) snapshot_file: SnapshotFile,
    pub(crate) stored: Option<Snapshot>,
    pub(crate) clusters: ClusterFile,
    pub(crate) wake: BootstrapScheduler,
    pub(crate) known_clusters: watch::Receiver<KnownClusters>,
    pub(crate) max_stale_us: u64,
    /// Worker threads, and so shards.
    pub(crate) concurrency: u32,
    /// Name of the Envoy build, shown by the control plane.
    pub(crate) envoy_version: String,
}

/// The running agent. Dropping it stops the thread, after a last flush of the spool.
pub(crate) struct Running {
    bell: Arc<Bell>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the agent's thread.
pub(crate) fn start(start: Start) -> io::Result<Running> {
    let (stop, stopped) = oneshot::channel();
    let bell = Arc::<Bell>::default();
    let rung = Arc::clone(&bell);
    let thread = std::thread::Builder::new()
        .name("turnpike".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            match runtime {
                Ok(runtime) => {
                    runtime.block_on(run(start, rung, stopped));
                    // A disk that hangs must not keep the process.
                    runtime.shutdown_timeout(LAST_SYNC);
                }
                Err(error) => log::error(&format!("agent cannot start: {error}")),
            }
        })?;
    Ok(Running {
        bell,
        stop: Some(stop),
        thread: Some(thread),
    })
}

impl Running {
    /// The process is about to end: unused credit goes back now, what is in use goes on.
    pub(crate) fn drain(&self) {
        self.bell.drain();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::error("agent ended by a panic");
        }
    }
}

async fn run(start: Start, bell: Arc<Bell>, stopped: oneshot::Receiver<()>) {
    let channel = match channel::channel(&start.settings) {
        Ok(channel) => channel,
        Err(error) => return log::error(&error.to_string()),
    };
    let wire_node = Node {
        id: start.settings.node.clone(),
        cluster: String::new(),
        user_agent_name: "turnpike".to_owned(),
        user_agent_version: start.envoy_version,
    };
    let (dead, dead_leases) = mpsc::unbounded_channel();
    let agent = Agent {
        settings: start.settings,
        channel,
        snapshot_file: start.snapshot_file,
        wake: start.wake,
        known_clusters: start.known_clusters,
        boot: start.node.boot_id(),
        max_stale_us: Cell::new(start.max_stale_us),
        disk_full: Cell::new(false),
        dead,
    };
    let session = Session::new(wire_node, start.stored);
    let config = ConfigStream {
        agent: &agent,
        session,
        clusters: start.clusters,
    };
    let mut dead_leases = DeadLeases {
        settings: &agent.settings,
        channel: agent.channel.clone(),
        node: &agent.settings.node,
        dead: dead_leases,
    };
    let mut leases = leases(&agent, &start.node, bell);
    let mut upkeep = SpoolUpkeep::new(&agent, Arc::clone(&start.node));
    let mut usage = UsageStream::new(&agent, start.node, start.concurrency);
    tokio::select! {
        () = config.run() => {}
        () = usage.run() => {}
        () = leases.run() => {}
        () = dead_leases.run() => {}
        () = upkeep.run() => {}
        _ = stopped => {}
    }
    // Every stream has settled: what was lost and never marked is told now or never.
    let ends = upkeep.finish();
    usage.end(ends.clone());
    if tokio::time::timeout(LAST_SYNC, upkeep.keep())
        .await
        .is_err()
    {
        log::warn("the disk of state_dir does not answer; the spool may not be on it yet");
    }
    let last = async { tokio::join!(usage.flush(), leases.close(&ends)) };
    if tokio::time::timeout(LAST_FLUSH, last).await.is_err() {
        log::info("usage not yet sent stays in the spool");
    }
}

fn leases<'a>(agent: &'a Agent, node: &ThisNode, bell: Arc<Bell>) -> LeaseStream<'a> {
    let accounts = Arc::clone(&credit::limits().accounts);
    accounts.set_bell(Arc::clone(&bell) as Arc<dyn Wake>);
    let session = lease::Session::new(node.boot_id(), node.name.as_str(), accounts);
    let channel = agent.channel.clone();
    LeaseStream::new(&agent.settings, channel, session, bell, &credit::LEASES)
}
