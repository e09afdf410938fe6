//! The gRPC server: the control plane's services, health, and reflection.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use control_plane_grpc::{RpcLayer, Shutdown};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_stream::Stream;
use tonic::service::RoutesBuilder;
use tonic::transport::Server;
use tonic::transport::server::{Connected, TcpIncoming};
use tonic_health::ServingStatus;

use crate::args::Args;
use crate::incoming;
use crate::tls::{Files, Tls};

// A connection that does not answer a ping within the second is dead: so a node that vanished is
// counted as away within half a minute.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(15);
const STOP_TIME: Duration = Duration::from_secs(10);

/// How connections are made safe.
pub(crate) enum Security {
    /// Plain, on loopback only, since tokens and provider credentials cross the connections.
    Loopback,
    Tls(Box<Tls>),
}

/// The security that the command line asks for.
///
/// # Errors
/// When a certificate cannot be used, or none is given for an address that others can reach.
pub(crate) fn security(args: &Args) -> anyhow::Result<Security> {
    let (Some(cert), Some(key)) = (&args.tls_cert_file, &args.tls_key_file) else {
        check_loopback(args.grpc_listen)?;
        return Ok(Security::Loopback);
    };
    let tls = Tls::load(Files {
        cert: cert.clone(),
        key: key.clone(),
        client_ca: args.tls_client_ca_file.clone(),
    })?;
    Ok(Security::Tls(Box::new(tls)))
}

fn check_loopback(address: SocketAddr) -> anyhow::Result<()> {
    if !address.ip().is_loopback() {
        bail!(
            "--grpc-listen {address} is not a loopback address: tokens and provider credentials \
             would cross the network in the clear; give --tls-cert-file and --tls-key-file"
        );
    }
    Ok(())
}

/// Serves until shutdown, and then until running calls are done, at most 10 s.
pub(crate) async fn serve(
    security: Security,
    listener: TcpListener,
    routes: RoutesBuilder,
    timing: RpcLayer,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    match security {
        Security::Loopback => {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            serve_on(incoming, routes, timing, shutdown).await
        }
        Security::Tls(tls) => {
            let incoming = incoming::secured(listener, *tls);
            serve_on(incoming, routes, timing, shutdown).await
        }
    }
}

async fn serve_on<C>(
    incoming: impl Stream<Item = io::Result<C>>,
    mut routes: RoutesBuilder,
    timing: RpcLayer,
    shutdown: Shutdown,
) -> anyhow::Result<()>
where
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let (health, health_service) = tonic_health::server::health_reporter();
    routes.add_service(health_service);
    let reflection = reflection()
        .build_v1()
        .context("the descriptors of the API cannot be read")?;
    routes.add_service(reflection);
    let mut stop = shutdown.clone();
    let serving = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .layer(timing)
        .add_routes(routes.routes())
        .serve_with_incoming_shutdown(incoming, async move {
            stop.requested().await;
            health
                .set_service_status("", ServingStatus::NotServing)
                .await;
        });
    let mut stop = shutdown;
    let too_late = async move {
        stop.requested().await;
        tokio::time::sleep(STOP_TIME).await;
    };
    tokio::select! {
        served = serving => served.context("the gRPC server failed"),
        () = too_late => {
            tracing::warn!("calls that are still running are cut off");
            Ok(())
        }
    }
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_certificate_only_loopback_is_served() {
        for loopback in ["127.0.0.1:9090", "127.8.0.1:1", "[::1]:9090"] {
            check_loopback(loopback.parse().unwrap()).unwrap();
        }
        for open in [
            "0.0.0.0:9090",
            "10.0.0.1:9090",
            "[::]:9090",
            "192.0.2.1:9090",
        ] {
            let refused = check_loopback(open.parse().unwrap()).unwrap_err();
            assert!(refused.to_string().contains("--tls-cert-file"), "{open}");
        }
    }

    #[test]
    fn the_descriptors_can_be_reflected() {
        assert!(reflection().build_v1().is_ok());
    }
}
