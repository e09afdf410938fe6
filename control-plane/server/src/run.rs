//! Starting in order, and stopping in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use control_plane_grpc::{ControlPlane, Policy, Shutdown, provider_cluster, shutdown};
use control_plane_store::{Error, Options, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, timeout};

use crate::args::Args;
use crate::http::Readiness;
use crate::webhook::Webhook;
use crate::{files, grpc, http};

const RETRY: Duration = Duration::from_millis(500);
// Postgres may be away for good.
const LEAVE_TIME: Duration = Duration::from_secs(2);

/// Runs until SIGTERM or SIGINT, or until something that cannot be mended.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let security = grpc::security(&args)?;
    options(&args)?;
    let admin_token = files::token(&args.admin_token_file, "--admin-token-file")?;
    let node_token = args.node_token_file.as_deref();
    let node_token = node_token
        .map(|path| files::token(path, "--node-token-file"))
        .transpose()?;
    let webhook = webhook(&args)?;
    let grpc_listener = listen(args.grpc_listen, "--grpc-listen").await?;
    let http_listener = listen(args.http_listen, "--http-listen").await?;

    let (stop, stopping) = shutdown();
    tokio::spawn(async move {
        if let Err(error) = stop_signal().await {
            tracing::error!(%error, "signals cannot be received");
        }
        // Dropping the sender stops everything as well.
        drop(stop);
    });

    let readiness = Readiness::default();
    let health = tokio::spawn(http::serve(
        http_listener,
        readiness.clone(),
        stopping.clone(),
    ));
    let mut interrupted = stopping.clone();
    let control_plane = tokio::select! {
        control_plane = start(&args, webhook, stopping.clone()) => control_plane?,
        () = interrupted.requested() => return Ok(()),
    };
    let routes = control_plane.routes(admin_token, node_token);
    let version = control_plane.config_version();
    readiness.get_or_init(|| control_plane.clone());
    tracing::info!(
        grpc = %args.grpc_listen,
        http = %args.http_listen,
        config_version = version,
        "serving"
    );
    let timing = control_plane.metrics().rpc_layer();
    grpc::serve(security, grpc_listener, routes, timing, stopping).await?;
    if let Ok(Err(error)) = timeout(LEAVE_TIME, control_plane.leave()).await {
        tracing::warn!(%error, "nodes count as connected here for some seconds more");
    }
    health.await.context("the HTTP server failed")??;
    tracing::info!("stopped");
    Ok(())
}

async fn listen(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("{option} {address} cannot be listened on"))
}

async fn start(
    args: &Args,
    webhook: Option<Webhook>,
    stopping: Shutdown,
) -> anyhow::Result<ControlPlane> {
    let deadline = Instant::now() + Duration::from_secs(args.database_wait);
    let policy = Policy {
        credentials: args.master_key_file.is_some(),
    };
    tracing::info!("connecting to postgres");
    let store = retrying(deadline, async || {
        let store = Store::connect(options(args)?).await;
        store.context("--database-url")
    })
    .await?;
    if !args.no_migrate {
        retrying(deadline, async || {
            store.migrate().await.context("migrating the schema")
        })
        .await?;
    }
    let control_plane = retrying(deadline, async || {
        let started = ControlPlane::start(store.clone(), policy, stopping.clone()).await;
        started.context("loading the config")
    })
    .await?;
    if let Some(webhook) = webhook {
        let metrics = control_plane.metrics().clone();
        tokio::spawn(webhook.run(store, metrics, stopping));
    }
    Ok(control_plane)
}

fn webhook(args: &Args) -> anyhow::Result<Option<Webhook>> {
    match (&args.event_webhook, &args.event_webhook_secret_file) {
        (Some(url), Some(secret_file)) => Webhook::new(url, secret_file).map(Some),
        _ => Ok(None),
    }
}

/// Tries again while Postgres is away, until the deadline.
async fn retrying<T>(
    deadline: Instant,
    attempt: impl AsyncFn() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut told = false;
    loop {
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let is_outage = matches!(error.downcast_ref(), Some(Error::Unavailable(_)));
        if !is_outage || Instant::now() >= deadline {
            return Err(error);
        }
        if !told {
            tracing::warn!(error = format!("{error:#}"), "waiting for postgres");
            told = true;
        }
        tokio::time::sleep(RETRY).await;
    }
}

fn options(args: &Args) -> anyhow::Result<Options> {
    let keyring = match &args.master_key_file {
        Some(path) => files::keyring(path)?,
        // Nothing is ever sealed under it.
        None => files::throwaway_keyring()?,
    };
    Ok(Options {
        max_connections: args.database_connections,
        secrets_dir: args.secrets_dir.clone(),
        record_days: args.record_days,
        replica: replica(args.grpc_listen),
        ..Options::new(
            args.database_url.clone(),
            keyring,
            Arc::new(provider_cluster),
        )
    })
}

/// The host and the address: whoever listens there next on this host is this replica again.
fn replica(grpc_listen: SocketAddr) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => String::new(),
        host => format!("{host} {grpc_listen}"),
    }
}

async fn stop_signal() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(signal = name, "stopping");
    Ok(())
}
