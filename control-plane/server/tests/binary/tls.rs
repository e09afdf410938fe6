//! TLS: who gets in by a certificate, and what becomes of replaced files.

use std::time::Duration;

use proto::admin::v1::ListTeamsRequest;
use proto::admin::v1::teams_client::TeamsClient;
use proto::metering::v1::metering_client::MeteringClient;
use proto::metering::v1::{OpenShard, UsageUp, usage_down, usage_up};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use tempfile::TempDir;
use tokio_stream::StreamExt as _;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status};

use crate::postgres::Postgres;
use crate::process::{ADMIN_TOKEN, Process, bearer, command_line, file};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// PEM of a certificate and of its key.
fn issue(authority: &Authority, name: &str, purpose: ExtendedKeyUsagePurpose) -> (String, String) {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.extended_key_usages = vec![purpose];
    let key = KeyPair::generate().unwrap();
    let cert = params.signed_by(&key, authority).unwrap();
    (cert.pem(), key.serialize_pem())
}

fn write_pair(directory: &TempDir, (cert, key): &(String, String)) -> [String; 2] {
    let cert = file(directory, "server.pem", cert);
    let key = file(directory, "server-key.pem", key);
    [
        format!("--tls-cert-file={cert}"),
        format!("--tls-key-file={key}"),
    ]
}

async fn connect(
    process: &Process,
    authority: &Authority,
    own: Option<&(String, String)>,
) -> Result<Channel, tonic::transport::Error> {
    let mut tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.pem()))
        .domain_name("localhost");
    if let Some((cert, key)) = own {
        tls = tls.identity(Identity::from_pem(cert, key));
    }
    Endpoint::from_shared(format!("https://127.0.0.1:{}", process.line.grpc_port))?
        .tls_config(tls)?
        .connect()
        .await
}

/// Opens a shard of the ledger, as a node does.
async fn open_shard(channel: Channel, node: &str) -> Result<(), Status> {
    let open = UsageUp {
        message: Some(usage_up::Message::Open(OpenShard {
            boot_id: vec![7; 16],
            shard: 0,
            node: node.to_owned(),
            ..OpenShard::default()
        })),
    };
    let messages = tokio_stream::iter([open]).chain(tokio_stream::pending());
    let answers = MeteringClient::new(channel).usage(messages).await?;
    let answer = answers.into_inner().message().await?.expect("an answer");
    assert!(matches!(
        answer.message,
        Some(usage_down::Message::Resume(_))
    ));
    Ok(())
}

#[tokio::test]
async fn a_certificate_opens_to_nodes_what_is_theirs_and_not_the_admin_api() {
    let postgres = Postgres::new(true).await;
    let (servers, nodes) = (authority("servers"), authority("nodes"));
    let line = command_line(&postgres.url()).await;
    let server = issue(&servers, "localhost", ExtendedKeyUsagePurpose::ServerAuth);
    let [cert, key] = write_pair(&line.directory, &server);
    let client_ca = file(&line.directory, "client-ca.pem", &nodes.pem());
    let mut process = line
        .without("--node-token-file")
        .with(cert)
        .with(key)
        .with(format!("--tls-client-ca={client_ca}"))
        .start();
    process.ready().await;

    let own = issue(&nodes, "gw-1", ExtendedKeyUsagePurpose::ClientAuth);
    let node = connect(&process, &servers, Some(&own)).await.unwrap();
    open_shard(node.clone(), "gw-1").await.unwrap();
    let other = open_shard(node.clone(), "gw-2").await.unwrap_err();
    assert_eq!(other.code(), Code::PermissionDenied);
    assert!(other.message().contains("`gw-2`"), "{other}");
    let mut teams = TeamsClient::new(node);
    let refused = teams.list_teams(ListTeamsRequest::default()).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);

    let stranger = connect(&process, &servers, None).await.unwrap();
    let refused = open_shard(stranger.clone(), "gw-1").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert!(refused.message().contains("certificate"), "{refused}");
    // The admin has a token and no certificate.
    let mut teams = TeamsClient::with_interceptor(stranger, bearer(ADMIN_TOKEN));
    teams.list_teams(ListTeamsRequest::default()).await.unwrap();
}

#[tokio::test]
async fn new_files_are_served_without_a_restart_and_wrong_ones_are_not() {
    let postgres = Postgres::new(true).await;
    let (first, second) = (authority("first"), authority("second"));
    let line = command_line(&postgres.url()).await;
    let server = issue(&first, "localhost", ExtendedKeyUsagePurpose::ServerAuth);
    let [cert, key] = write_pair(&line.directory, &server);
    let mut process = line.with(cert).with(key).start();
    process.ready().await;
    let kept = connect(&process, &first, None).await.unwrap();

    let renewed = issue(&second, "localhost", ExtendedKeyUsagePurpose::ServerAuth);
    let halfway = (renewed.0.clone(), server.1.clone());
    for wrong in [halfway, (String::new(), "sk-test-no-key".to_owned())] {
        write_pair(&process.line.directory, &wrong);
        // The server looks at its files at most once a second.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        connect(&process, &first, None).await.unwrap();
    }
    write_pair(&process.line.directory, &renewed);
    let served = tokio::time::timeout(Duration::from_secs(30), async {
        while connect(&process, &second, None).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    served.await.expect("the new certificate is served");
    assert!(connect(&process, &first, None).await.is_err());

    let mut teams = TeamsClient::with_interceptor(kept, bearer(ADMIN_TOKEN));
    teams.list_teams(ListTeamsRequest::default()).await.unwrap();
    process.terminate().await;
    let (code, log) = process.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("the old ones are kept"), "{log}");
    assert!(
        !log.contains("sk-test") && !log.contains("PRIVATE"),
        "{log}"
    );
}
