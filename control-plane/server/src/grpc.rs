//! The gRPC server: the control plane's services, health, and reflection.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use control_plane_grpc::Shutdown;
use tokio::net::TcpListener;
use tonic::service::RoutesBuilder;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic_health::ServingStatus;

use crate::args::Args;
use crate::files;

// A connection that does not answer a ping within the second is dead: so a node that vanished is
// counted as away within half a minute.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(15);
const STOP_TIME: Duration = Duration::from_secs(10);

/// A server that is secured as the command line says: plain on loopback only, since tokens and
/// provider credentials cross its connections.
pub(crate) fn secured(args: &Args) -> anyhow::Result<Server> {
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT));
    let (Some(cert), Some(key)) = (&args.tls_cert_file, &args.tls_key_file) else {
        check_loopback(args.grpc_listen)?;
        return Ok(server);
    };
    let identity = Identity::from_pem(
        files::text(cert, "--tls-cert-file")?,
        files::text(key, "--tls-key-file")?,
    );
    server
        .tls_config(ServerTlsConfig::new().identity(identity))
        .context("--tls-cert-file and --tls-key-file cannot be used")
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
    mut server: Server,
    listener: TcpListener,
    mut routes: RoutesBuilder,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let (health, health_service) = tonic_health::server::health_reporter();
    routes.add_service(health_service);
    let reflection = reflection()
        .build_v1()
        .context("the descriptors of the API cannot be read")?;
    routes.add_service(reflection);
    let mut stop = shutdown.clone();
    let serving = server
        .add_routes(routes.routes())
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            async move {
                stop.requested().await;
                health
                    .set_service_status("", ServingStatus::NotServing)
                    .await;
            },
        );
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
