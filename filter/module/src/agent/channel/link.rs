//! TCP and TLS to the control plane, with files that are read anew for every connection, so that
//! renewed certificates are taken up.
//!
//! Without a `ca_file` the system's authorities are trusted: they are what an operator can change
//! without a new release, which compiled-in ones are not.

use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        AlertDescription, CertificateError, ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};
use tonic::{codegen::Service, transport::Uri};

use crate::settings::ControlPlaneTls;

const HTTP_2: &[u8] = b"h2";

/// Why there is no connection. No variant holds what is in a file.
#[derive(Debug, Error)]
pub(super) enum LinkError {
    #[error("control_plane_tls.{field} {}: {error}", file.display())]
    File {
        field: &'static str,
        file: PathBuf,
        error: io::Error,
    },
    #[error("control_plane_tls.{field} {} holds no {what} in PEM", file.display())]
    Pem {
        field: &'static str,
        file: PathBuf,
        what: &'static str,
    },
    #[error("control_plane_tls.cert_file and key_file cannot be used: {0}")]
    OwnCertificate(tokio_rustls::rustls::Error),
    #[error("this system trusts no authority; name one in control_plane_tls.ca_file")]
    NoSystemAuthority,
    #[error("{0}")]
    Tcp(String),
    #[error("the control plane's certificate {0}")]
    Certificate(String),
    #[error("{0}")]
    Refused(String),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("the control plane offers no HTTP/2 on this port")]
    NoHttp2,
}

/// Makes connections.
#[derive(Clone, Debug)]
pub(super) struct Link {
    tcp: HttpConnector,
    tls: Arc<ControlPlaneTls>,
    server_name: ServerName<'static>,
}

impl Link {
    pub(super) fn new(tls: ControlPlaneTls, server_name: ServerName<'static>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        Self {
            tcp,
            tls: Arc::new(tls),
            server_name,
        }
    }

    async fn connect(mut self, uri: Uri) -> Result<TlsStream<TcpStream>, LinkError> {
        let config = config(&self.tls).await?;
        let stream = Service::call(&mut self.tcp, uri).await;
        let stream = stream.map_err(|error| LinkError::Tcp(super::cause(&error)))?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector
            .connect(self.server_name, stream.into_inner())
            .await
            .map_err(|error| failed(&error, &self.tls))?;
        let (_, session) = stream.get_ref();
        if session.alpn_protocol() != Some(HTTP_2) {
            return Err(LinkError::NoHttp2);
        }
        Ok(stream)
    }
}

impl Service<Uri> for Link {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = LinkError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, LinkError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let ready = self.tcp.poll_ready(context);
        ready.map_err(|error| LinkError::Tcp(error.to_string()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let link = self.clone();
        Box::pin(async move { link.connect(uri).await.map(TokioIo::new) })
    }
}

async fn config(tls: &ControlPlaneTls) -> Result<ClientConfig, LinkError> {
    let authorities = match &tls.ca_file {
        Some(file) => authorities(file).await?,
        None => system_authorities()?,
    };
    // Named here: a crate elsewhere in the process may bring another one in.
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| LinkError::Tls(error.to_string()))?
        .with_root_certificates(authorities);
    let mut config = match (&tls.cert_file, &tls.key_file) {
        (Some(cert), Some(key)) => {
            let chain = certificates("cert_file", cert).await?;
            let key = private_key(key).await?;
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(LinkError::OwnCertificate)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols.push(HTTP_2.to_vec());
    Ok(config)
}

async fn authorities(file: &Path) -> Result<RootCertStore, LinkError> {
    let mut store = RootCertStore::empty();
    let (usable, _) = store.add_parsable_certificates(certificates("ca_file", file).await?);
    if usable == 0 {
        return Err(pem("ca_file", file, "usable certificate"));
    }
    Ok(store)
}

fn system_authorities() -> Result<RootCertStore, LinkError> {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (usable, _) = store.add_parsable_certificates(found.certs);
    if usable == 0 {
        return Err(LinkError::NoSystemAuthority);
    }
    Ok(store)
}

async fn certificates(
    field: &'static str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, LinkError> {
    let text = read(field, file).await?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        // The parser's own error may show a line of the file.
        Ok(_) | Err(_) => Err(pem(field, file, "certificate")),
    }
}

async fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, LinkError> {
    let text = zeroize::Zeroizing::new(read("key_file", file).await?);
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| pem("key_file", file, "private key"))
}

async fn read(field: &'static str, file: &Path) -> Result<Vec<u8>, LinkError> {
    let text = tokio::fs::read(file).await;
    text.map_err(|error| LinkError::File {
        field,
        file: file.to_owned(),
        error,
    })
}

fn pem(field: &'static str, file: &Path, what: &'static str) -> LinkError {
    LinkError::Pem {
        field,
        file: file.to_owned(),
        what,
    }
}

/// What a failed handshake means for whoever reads the log.
fn failed(error: &io::Error, tls: &ControlPlaneTls) -> LinkError {
    use tokio_rustls::rustls::Error;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(Error::InvalidCertificate(fault)) => LinkError::Certificate(distrust(fault, tls)),
        Some(Error::AlertReceived(alert)) => match refusal(&format!("{alert:?}")) {
            Some(refusal) => LinkError::Refused(refusal),
            None => LinkError::Tls(error.to_string()),
        },
        Some(Error::InvalidMessage(_)) => {
            LinkError::Tls("the control plane does not speak it on this port".to_owned())
        }
        Some(_) | None => LinkError::Tls(error.to_string()),
    }
}

fn distrust(fault: &CertificateError, tls: &ControlPlaneTls) -> String {
    match fault {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => match &tls.ca_file {
            Some(file) => format!(
                "is signed by none of the authorities in control_plane_tls.ca_file {}",
                file.display()
            ),
            None => "is signed by no authority that this system trusts; name its authority in \
                     control_plane_tls.ca_file"
                .to_owned(),
        },
        CertificateError::Expired => "has expired".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            let ago_s = time.as_secs().saturating_sub(not_after.as_secs());
            format!("has expired {ago_s} s ago")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet by this machine's clock".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "is not for {}, only for {}; one of these may be control_plane_tls.server_name",
            expected.to_str(),
            presented.join(", ")
        ),
        other => format!("cannot be trusted: {other}"),
    }
}

/// What an alert about this node's certificate means; none for others. Takes rustls' name for it.
pub(super) fn refusal(alert: &str) -> Option<String> {
    let why = [
        (AlertDescription::CertificateExpired, "it has expired"),
        (
            AlertDescription::UnknownCA,
            "it is signed by no authority that it trusts",
        ),
        (AlertDescription::CertificateRevoked, "it is revoked"),
        (
            AlertDescription::CertificateRequired,
            "it wants one: set cert_file and key_file",
        ),
        (
            AlertDescription::UnsupportedCertificate,
            "it is not one for clients",
        ),
        (
            AlertDescription::DecryptError,
            "its signature does not fit its authority or key",
        ),
        (AlertDescription::BadCertificate, "it is malformed"),
        (
            AlertDescription::CertificateUnknown,
            "it does not say what is wrong",
        ),
        (AlertDescription::AccessDenied, "access denied"),
    ];
    let (_, why) = why
        .iter()
        .find(|(description, _)| format!("{description:?}") == alert)?;
    Some(format!(
        "the control plane refused this node's certificate (control_plane_tls.cert_file): {why}"
    ))
}
