use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc};

use proto::metering::v1::metering_client::MeteringClient;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
        server::WebPkiClientVerifier,
    },
};

use super::*;

type Authority = CertifiedIssuer<'static, KeyPair>;

/// PEM of a certificate and of its key.
struct Issued {
    cert: String,
    key: String,
}

fn authority() -> Authority {
    named_authority("test authority")
}

fn named_authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("an authority")
}

fn issue(authority: &Authority, name: &str, change: impl Fn(&mut CertificateParams)) -> Issued {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    change(&mut params);
    let key = KeyPair::generate().expect("a key");
    let cert = params.signed_by(&key, authority).expect("a certificate");
    Issued {
        cert: cert.pem(),
        key: key.serialize_pem(),
    }
}

fn expired(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(2002, 1, 1);
}

/// A server that asks for client certificates of `clients`, if given, and after the handshake
/// reads until the client leaves. Answers with its address.
async fn server(issued: &Issued, clients: Option<&Authority>) -> SocketAddr {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).expect("an authority");
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        }
    };
    let cert = CertificateDer::from_pem_slice(issued.cert.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).expect("PEM");
    let mut config = builder.with_single_cert(vec![cert], key).expect("a pair");
    config.alpn_protocols.push(b"h2".to_vec());
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let accept = acceptor.accept(stream).into_fallible();
            tokio::spawn(async move {
                let mut sink = [0; 1024];
                match accept.await {
                    // HTTP/2 enough to say that it is over: GOAWAY without an error.
                    Ok(mut stream) => {
                        let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                        drop(stream.write_all(&goaway).await);
                        while matches!(stream.read(&mut sink).await, Ok(1..)) {}
                    }
                    Err((_, mut stream)) => {
                        drop(stream.shutdown().await);
                        while matches!(stream.read(&mut sink).await, Ok(1..)) {}
                    }
                }
            });
        }
    });
    address
}

/// A node with files of its own.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("made"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).expect("written");
        path
    }

    fn settings(&self, address: &str, tls: &serde_json::Value) -> Settings {
        let token = self.write("token", "test-node-token-1");
        let json = serde_json::json!({
            "control_plane": address, "control_plane_tls": tls, "node_token_file": token,
            "node": "gw-1", "state_dir": self.0.path(),
        });
        Settings::parse(json.to_string().as_bytes()).expect("settings")
    }
}

/// What the log would say of a call.
async fn said(channel: Channel) -> String {
    let messages = tokio_stream::pending::<proto::metering::v1::UsageUp>();
    match MeteringClient::new(channel).usage(messages).await {
        Ok(_) => "answered".to_owned(),
        Err(status) => AgentError::from(status).to_string(),
    }
}

async fn said_to(address: SocketAddr, ca: &str, own: Option<&Issued>) -> String {
    let files = Files::new();
    let mut tls = serde_json::json!({"ca_file": files.write("ca.pem", ca)});
    if let Some(own) = own {
        tls["cert_file"] = serde_json::json!(files.write("cert.pem", &own.cert));
        tls["key_file"] = serde_json::json!(files.write("key.pem", &own.key));
    }
    let settings = files.settings(&format!("https://localhost:{}", address.port()), &tls);
    let said = said(channel(&settings).expect("a channel")).await;
    for secret in ["PRIVATE", "test-node-token"] {
        assert!(!said.contains(secret), "{said}");
    }
    said
}

/// What is said by a node that has come through.
const THROUGH: &str = "not a result of the connection's TLS";

fn is_through(said: &str) -> bool {
    // The server of these tests hangs up at once.
    !said.contains("certificate") && !said.contains("TLS")
}

#[tokio::test]
async fn a_control_plane_that_cannot_be_trusted_is_named_with_the_reason() {
    let ours = authority();
    let good = server(&issue(&ours, "localhost", |_| {}), None).await;
    let said = said_to(good, &ours.pem(), None).await;
    assert!(is_through(&said), "{THROUGH}: {said}");

    let said = said_to(good, &authority().pem(), None).await;
    assert!(
        said.contains("signed by none of the authorities in"),
        "{said}"
    );
    assert!(said.contains("ca.pem"), "{said}");

    let old = server(&issue(&ours, "localhost", expired), None).await;
    let said = said_to(old, &ours.pem(), None).await;
    assert!(
        said.contains("control plane's certificate has expired"),
        "{said}"
    );

    let other = server(&issue(&ours, "turnpike.example", |_| {}), None).await;
    let said = said_to(other, &ours.pem(), None).await;
    assert!(said.contains("is not for localhost, only for"), "{said}");
    assert!(said.contains("turnpike.example"), "{said}");
    assert!(said.contains("control_plane_tls.server_name"), "{said}");
}

#[tokio::test]
async fn a_node_whose_certificate_is_refused_says_why() {
    let (ours, nodes) = (authority(), authority());
    let address = server(&issue(&ours, "localhost", |_| {}), Some(&nodes)).await;
    let ca = ours.pem();
    let own = issue(&nodes, "gw-1", |_| {});
    let said = said_to(address, &ca, Some(&own)).await;
    assert!(is_through(&said), "{THROUGH}: {said}");

    for (own, why) in [
        (None, "it wants one: set cert_file and key_file"),
        (
            Some(issue(&named_authority("another"), "gw-1", |_| {})),
            "it is signed by no authority that it trusts",
        ),
        // An authority that was made anew under the same name.
        (
            Some(issue(&authority(), "gw-1", |_| {})),
            "its signature does not fit its authority or key",
        ),
        (Some(issue(&nodes, "gw-1", expired)), "it has expired"),
        (
            Some(issue(&nodes, "gw-1", |params| {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            })),
            "it is not one for clients",
        ),
    ] {
        let said = said_to(address, &ca, own.as_ref()).await;
        assert!(said.contains("refused this node's certificate"), "{said}");
        assert!(said.contains(why), "{why}: {said}");
    }
}

#[tokio::test]
async fn files_are_read_anew_for_each_connection() {
    let ours = authority();
    let address = server(&issue(&ours, "localhost", |_| {}), None).await;
    let files = Files::new();
    let tls = serde_json::json!({"ca_file": files.0.path().join("ca.pem")});
    let settings = files.settings(&format!("https://{address}"), &tls);
    let channel = channel(&settings).expect("a channel");
    let ask = || said(channel.clone());
    let missing = ask().await;
    assert!(missing.contains("control_plane_tls.ca_file"), "{missing}");
    assert!(missing.contains("No such file"), "{missing}");
    files.write("ca.pem", "test-not-a-certificate");
    let text = ask().await;
    assert!(text.contains("holds no certificate in PEM"), "{text}");
    files.write("ca.pem", &authority().pem());
    assert!(ask().await.contains("signed by none"));
    files.write("ca.pem", &ours.pem());
    let name = ask().await;
    assert!(name.contains("is not for 127.0.0.1"), "{name}");
}

#[tokio::test]
async fn a_key_that_does_not_fit_and_a_port_without_tls_are_told_apart() {
    let ours = authority();
    let address = server(&issue(&ours, "localhost", |_| {}), None).await;
    let own = Issued {
        cert: issue(&ours, "gw-1", |_| {}).cert,
        key: issue(&ours, "gw-1", |_| {}).key,
    };
    let said = said_to(address, &ours.pem(), Some(&own)).await;
    assert!(
        said.contains("cert_file and key_file cannot be used"),
        "{said}"
    );
    let own = Issued {
        cert: own.cert,
        key: "-----BEGIN PRIVATE KEY-----\nsk-test-not-base64!\n".to_owned(),
    };
    let said = said_to(address, &ours.pem(), Some(&own)).await;
    assert!(said.contains("holds no private key in PEM"), "{said}");
    assert!(!said.contains("sk-test"), "{said}");

    let plain = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let plain_address = plain.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
        }
    });
    let said = said_to(plain_address, &ours.pem(), None).await;
    assert!(said.contains("does not speak it on this port"), "{said}");

    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let closed_address = closed.local_addr().expect("an address");
    drop(closed);
    let said = said_to(closed_address, &ours.pem(), None).await;
    assert!(said.contains("Connection refused"), "{said}");
}
