//! The side of the module that talks to the control plane: one thread, with a tokio of its own.
//!
//! The workers never wait for it. Config goes to them through [`crate::published`], clusters to
//! Envoy through a file, and usage comes from the spool on disk.

mod channel;
pub(crate) mod clusters;
mod config_stream;
pub(crate) mod disk;
pub(crate) mod snapshot_file;
mod usage_stream;

use std::{
    cell::Cell, collections::BTreeSet, io, path::PathBuf, sync::Arc, thread::JoinHandle,
    time::Duration,
};

use filter_agent::{
    ads::{Node, Session, Snapshot, Violation},
    spool::BootId,
};
use filter_envoy_abi::BootstrapScheduler;
use thiserror::Error;
use tokio::sync::{oneshot, watch};
use tonic::transport::Channel;

use self::{
    clusters::ClusterFile, config_stream::ConfigStream, snapshot_file::SnapshotFile,
    usage_stream::UsageStream,
};
use crate::{log, node::ThisNode, settings::Settings};

/// The event that tells the main thread that a config is in force.
pub(crate) const READY_EVENT: u64 = 1;

/// How long a stopping process goes on sending usage; the spool keeps the rest.
const LAST_FLUSH: Duration = Duration::from_secs(2);

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
        Self::Status(Box::new(status))
    }
}

/// The clusters that Envoy has said it has.
#[derive(Debug, Default)]
pub(crate) struct KnownClusters {
    /// Envoy announces changes from here on.
    pub(crate) announced: bool,
    pub(crate) names: BTreeSet<String>,
}

/// What both streams share.
struct Agent {
    settings: Settings,
    channel: Channel,
    snapshot_file: SnapshotFile,
    wake: BootstrapScheduler,
    known_clusters: watch::Receiver<KnownClusters>,
    boot: BootId,
    max_stale_us: Cell<u64>,
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
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts the agent's thread.
pub(crate) fn start(start: Start) -> io::Result<Running> {
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("turnpike".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            match runtime {
                Ok(runtime) => runtime.block_on(run(start, stopped)),
                Err(error) => log::error(&format!("agent cannot start: {error}")),
            }
        })?;
    Ok(Running {
        stop: Some(stop),
        thread: Some(thread),
    })
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

async fn run(start: Start, stopped: oneshot::Receiver<()>) {
    let channel = match channel::channel(&start.settings.control_plane) {
        Ok(channel) => channel,
        Err(error) => return log::error(&error.to_string()),
    };
    let wire_node = Node {
        id: start.settings.node.clone(),
        cluster: String::new(),
        user_agent_name: "turnpike".to_owned(),
        user_agent_version: start.envoy_version,
    };
    let agent = Agent {
        settings: start.settings,
        channel,
        snapshot_file: start.snapshot_file,
        wake: start.wake,
        known_clusters: start.known_clusters,
        boot: start.node.boot_id(),
        max_stale_us: Cell::new(start.max_stale_us),
    };
    let session = Session::new(wire_node, start.stored);
    let config = ConfigStream {
        agent: &agent,
        session,
        clusters: start.clusters,
    };
    let mut usage = UsageStream::new(&agent, start.node, start.concurrency);
    tokio::select! {
        () = config.run() => {}
        () = usage.run() => {}
        _ = stopped => {}
    }
    if tokio::time::timeout(LAST_FLUSH, usage.flush())
        .await
        .is_err()
    {
        log::info("usage not yet sent stays in the spool");
    }
}
