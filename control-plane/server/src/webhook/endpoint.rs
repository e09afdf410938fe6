//! Where events are posted to: one connection an event, since they are few.

use std::fmt;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::message::Message;

/// A receiver's URL.
pub(super) struct Endpoint {
    host: String,
    port: u16,
    /// For the `host` header.
    authority: String,
    /// With the query. It may hold a secret.
    path: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Endpoint {
    /// Takes an https URL, or an http URL of this host.
    ///
    /// # Errors
    /// When it is neither, or the system has no certificate authorities. The URL is not shown.
    pub(super) fn new(url: &str) -> anyhow::Result<Self> {
        let uri: Uri = url.parse().ok().context("it is not a URL")?;
        let authority = uri.authority().context("the URL has no host")?;
        ensure!(
            !authority.as_str().contains('@'),
            "the URL has a user or a password: what is posted is signed instead"
        );
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let (tls, port) = match uri.scheme_str() {
            Some("https") => {
                let name = ServerName::try_from(host.clone()).context("the URL's host")?;
                (Some((connector()?, name)), 443)
            }
            Some("http") if is_loopback(&host) => (None, 80),
            Some("http") => bail!("http is for receivers on this host only: use https"),
            _ => bail!("it is not an https URL"),
        };
        Ok(Self {
            port: authority.port_u16().unwrap_or(port),
            authority: authority.as_str().to_owned(),
            path: uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned(),
            host,
            tls,
        })
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Posts a message and returns the status of the answer, whose body is not read.
    pub(super) async fn post(&self, message: Message) -> anyhow::Result<StatusCode> {
        let request = Request::post(&self.path)
            .header("host", &self.authority)
            .header("user-agent", "turnpike-control-plane")
            .header("content-type", "application/json")
            .header("webhook-id", message.id)
            .header("webhook-timestamp", message.timestamp)
            .header("webhook-signature", message.signature)
            .body(Full::new(Bytes::from(message.body)))?;
        let stream = TcpStream::connect((self.host.as_str(), self.port));
        let stream = stream.await.context("connecting")?;
        match &self.tls {
            None => send(stream, request).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await;
                send(stream.context("TLS")?, request).await
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<StatusCode> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut answer = pin!(sender.send_request(request));
    tokio::select! {
        answer = &mut answer => return Ok(answer?.status()),
        end = connection => end?,
    }
    // A receiver that closes right after it has answered: both are seen at once.
    let answer = answer.await;
    Ok(answer
        .context("the connection was closed without an answer")?
        .status())
}

fn connector() -> anyhow::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    ensure!(
        !roots.is_empty(),
        "the system has no certificate authorities; SSL_CERT_FILE names a file with some"
    );
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_goes_to_this_host_only() {
        for url in [
            "http://127.0.0.1:8000/hook?x=1",
            "http://localhost/hook",
            "http://[::1]:8000",
        ] {
            assert!(Endpoint::new(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "/hook",
            "hooks.example/hook",
            "ftp://hooks.example",
            "http://hooks.example/sk-test-1",
            "http://localhost.example",
            "http://10.0.0.1",
            "https://user:sk-test-1@hooks.example",
        ] {
            let error = format!("{:#}", Endpoint::new(url).unwrap_err());
            assert!(!error.contains("sk-test"), "{error}");
        }
    }

    #[test]
    fn a_path_is_kept_and_not_shown() {
        let endpoint = Endpoint::new("http://127.0.0.1:8000/sk-test-1?a=b").unwrap();
        assert_eq!(endpoint.path, "/sk-test-1?a=b");
        assert_eq!(endpoint.authority, "127.0.0.1:8000");
        assert!(!format!("{endpoint:?}").contains("sk-test"));
        assert_eq!(Endpoint::new("http://localhost").unwrap().path, "/");
    }
}
