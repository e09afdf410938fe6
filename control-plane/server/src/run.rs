//! Starting in order, and stopping in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use control_plane_grpc::{ControlPlane, Policy, Shutdown, provider_cluster, shutdown};
use control_plane_store::{Error, Options, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::args::Args;
use crate::http::Readiness;
use crate::{files, grpc, http};

const RETRY: Duration = Duration::from_millis(500);

/// Runs until SIGTERM or SIGINT, or until something that cannot be mended.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let server = grpc::secured(&args)?;
    options(&args)?;
    let admin_token = files::token(&args.admin_token_file, "--admin-token-file")?;
    let node_token = files::token(&args.node_token_file, "--node-token-file")?;
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
        control_plane = start(&args, stopping.clone()) => control_plane?,
        () = interrupted.requested() => return Ok(()),
    };
    let routes = control_plane.routes(admin_token, node_token);
    let version = control_plane.config_version();
    readiness.get_or_init(|| control_plane);
    tracing::info!(
        grpc = %args.grpc_listen,
        http = %args.http_listen,
        config_version = version,
        "serving"
    );
    grpc::serve(server, grpc_listener, routes, stopping).await?;
    health.await.context("the HTTP server failed")??;
    tracing::info!("stopped");
    Ok(())
}

async fn listen(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("{option} {address} cannot be listened on"))
}

async fn start(args: &Args, stopping: Shutdown) -> anyhow::Result<ControlPlane> {
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
    retrying(deadline, async || {
        let started = ControlPlane::start(store.clone(), policy, stopping.clone()).await;
        started.context("loading the config")
    })
    .await
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
        ..Options::new(
            args.database_url.clone(),
            keyring,
            Arc::new(provider_cluster),
        )
    })
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
