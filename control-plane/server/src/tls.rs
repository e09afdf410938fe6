//! TLS of the gRPC services, from files that may be replaced while they are served.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

// Strangers can open connections, so not each of them makes us read files.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What secures the gRPC services. Nothing watches the files: the next connection finds what is
/// new in them.
pub(crate) struct Tls {
    files: Files,
    seen: Option<Pem>,
    looked: Instant,
    config: Arc<ServerConfig>,
}

/// Where certificates and keys lie, in PEM.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    /// Authorities of the nodes' certificates; without it, nodes are not asked for any.
    pub(crate) client_ca: Option<PathBuf>,
}

#[derive(PartialEq, Eq)]
struct Pem {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// When one cannot be read or used; it names the option, and shows nothing of the file.
    pub(crate) fn load(files: Files) -> anyhow::Result<Self> {
        let pem = files.read()?;
        let config = pem.config()?;
        Ok(Self {
            files,
            seen: Some(pem),
            looked: Instant::now(),
            config: Arc::new(config),
        })
    }

    /// The newest form of the files that could be used, at most a second old.
    pub(crate) fn current(&mut self) -> Arc<ServerConfig> {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            self.look();
        }
        Arc::clone(&self.config)
    }

    fn look(&mut self) {
        let pem = match self.files.read() {
            Ok(pem) => pem,
            Err(error) => {
                let first = self.seen.take().is_some();
                return kept(&error, first);
            }
        };
        if self.seen.as_ref() == Some(&pem) {
            return;
        }
        match pem.config() {
            Ok(config) => {
                self.config = Arc::new(config);
                tracing::info!("the certificates of the gRPC services are read anew");
            }
            // A certificate and its key are two files, so this may last for a moment.
            Err(error) => kept(&error, true),
        }
        self.seen = Some(pem);
    }
}

fn kept(error: &anyhow::Error, told: bool) {
    if told {
        let error = format!("{error:#}");
        tracing::warn!(
            error,
            "new certificates cannot be used, the old ones are kept"
        );
    }
}

impl Files {
    fn read(&self) -> anyhow::Result<Pem> {
        let client_ca = self.client_ca.as_deref();
        Ok(Pem {
            cert: read(&self.cert, "--tls-cert-file")?,
            key: read(&self.key, "--tls-key-file")?,
            client_ca: client_ca
                .map(|path| read(path, "--tls-client-ca-file"))
                .transpose()?,
        })
    }
}

fn read(path: &Path, option: &str) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("{option} {}", path.display()))
}

impl Pem {
    fn config(&self) -> anyhow::Result<ServerConfig> {
        let chain = certificates(&self.cert, "--tls-cert-file")?;
        // The parser's error may show a line of the file.
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| anyhow!("--tls-key-file holds no private key in PEM"))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(client_ca) => {
                let mut authorities = RootCertStore::empty();
                let (usable, _) = authorities
                    .add_parsable_certificates(certificates(client_ca, "--tls-client-ca-file")?);
                ensure!(usable > 0, "--tls-client-ca-file holds no authority");
                let authorities = Arc::new(authorities);
                // The admin API is on the same port, and opened by a token.
                let verifier = WebPkiClientVerifier::builder_with_provider(authorities, provider)
                    .allow_unauthenticated()
                    .build()
                    .context("--tls-client-ca-file cannot be used")?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .context("--tls-cert-file and --tls-key-file cannot be used")?;
        config.alpn_protocols.push(b"h2".to_vec());
        Ok(config)
    }
}

fn certificates(pem: &[u8], option: &str) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|_| anyhow!("{option} is no PEM"))?;
    ensure!(!found.is_empty(), "{option} holds no certificate in PEM");
    Ok(found)
}
