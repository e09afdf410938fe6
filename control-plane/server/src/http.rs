//! `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;
use std::sync::OnceLock;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use control_plane_grpc::{ControlPlane, Shutdown};
use tokio::net::TcpListener;

/// Set once, when the control plane has a config in memory. From then on it is ready: nodes are
/// served from memory, whether Postgres answers right now or not.
pub(crate) type Readiness = Arc<OnceLock<ControlPlane>>;

/// Serves until shutdown.
pub(crate) async fn serve(
    listener: TcpListener,
    readiness: Readiness,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(readiness);
    axum::serve(listener, router)
        .with_graceful_shutdown(async move { shutdown.requested().await })
        .await
        .context("the HTTP server failed")
}

/// Nothing is counted before there is a config.
async fn metrics(State(readiness): State<Readiness>) -> Result<impl IntoResponse, StatusCode> {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    let control_plane = readiness.get().ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    let text = control_plane.metrics().render().map_err(|error| {
        tracing::error!(%error, "the metrics cannot be written");
        StatusCode::INTERNAL_SERVER_ERROR
    })?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], text))
}

async fn readyz(State(readiness): State<Readiness>) -> (StatusCode, String) {
    match readiness.get() {
        Some(control_plane) => {
            let version = control_plane.config_version();
            (StatusCode::OK, format!("ready, config version {version}\n"))
        }
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            "no config yet: postgres has not answered\n".to_owned(),
        ),
    }
}
