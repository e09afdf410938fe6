//! Connections, from the listener through the TLS handshake.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::Error;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;

use crate::tls::Tls;

// Strangers get this far, so both their number and their time are bounded.
const HANDSHAKES: usize = 256;
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
// Connections that the server has not yet taken.
const AHEAD: usize = 16;
// How long a refused client has to read why, and the most that it may still say.
const FAREWELL_TIME: Duration = Duration::from_secs(1);
const FAREWELL_BYTES: u64 = 64 * 1024;
// When file descriptors are spent, until some are free again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections that have been through their handshake, for as long as the stream is kept.
pub(crate) fn secured(
    listener: TcpListener,
    tls: Tls,
) -> ReceiverStream<io::Result<TlsStream<TcpStream>>> {
    let (connections, incoming) = mpsc::channel(AHEAD);
    tokio::spawn(accept(listener, tls, connections));
    ReceiverStream::new(incoming)
}

async fn accept(
    listener: TcpListener,
    mut tls: Tls,
    connections: mpsc::Sender<io::Result<TlsStream<TcpStream>>>,
) {
    let mut handshakes = JoinSet::new();
    loop {
        tokio::select! {
            () = connections.closed() => return,
            Some(_) = handshakes.join_next() => {}
            accepted = listener.accept(), if handshakes.len() < HANDSHAKES => match accepted {
                Ok((stream, peer)) => {
                    let acceptor = TlsAcceptor::from(tls.current());
                    let connections = connections.clone();
                    handshakes.spawn(async move {
                        if let Some(stream) = handshake(acceptor, stream, peer).await {
                            // Refused only by a server that stops.
                            connections.send(Ok(stream)).await.unwrap_or_default();
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn handshake(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
) -> Option<TlsStream<TcpStream>> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "a connection keeps its delay");
    }
    let accept = acceptor.accept(stream).into_fallible();
    match timeout(HANDSHAKE_TIME, accept).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err((error, stream))) => {
            tell(peer, &error);
            farewell(stream).await;
            None
        }
        Err(_) => {
            tracing::debug!(%peer, "a TLS handshake took too long");
            None
        }
    }
}

fn tell(peer: SocketAddr, error: &io::Error) {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(Error::InvalidCertificate(fault)) => {
            tracing::warn!(%peer, reason = %fault, "a client's certificate is refused");
        }
        Some(Error::AlertReceived(alert)) => {
            tracing::warn!(%peer, ?alert, "a client refuses our certificate");
        }
        // Probes and scanners.
        Some(_) | None => tracing::debug!(%peer, %error, "a TLS handshake failed"),
    }
}

/// Waits until the client has read the alert: closing with something unread would reset the
/// connection, and the alert could be lost.
async fn farewell(mut stream: TcpStream) {
    let reading = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(FAREWELL_BYTES), &mut tokio::io::sink()).await
    };
    match timeout(FAREWELL_TIME, reading).await {
        Ok(Ok(_) | Err(_)) | Err(_) => {}
    }
}
