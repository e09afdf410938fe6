//! Starting, refusing to start, and stopping.

use std::time::{Duration, Instant};

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use proto::admin::v1::teams_client::TeamsClient;
use proto::admin::v1::{CreateTeamRequest, ListTeamsRequest};
use tokio_stream::StreamExt as _;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::postgres::Postgres;
use crate::process::{ADMIN_TOKEN, NODE_TOKEN, bearer, command_line, file};

#[tokio::test]
async fn it_serves_and_stops_when_told_although_a_node_is_connected() {
    let postgres = Postgres::new(true).await;
    let mut process = command_line(&postgres.url()).await.start();
    process.ready().await;
    assert_eq!(process.status("/healthz").await, Some(200));
    let channel = process.channel().await;

    let health = HealthClient::new(channel.clone())
        .check(HealthCheckRequest::default())
        .await
        .unwrap();
    assert_eq!(health.into_inner().status(), ServingStatus::Serving);

    let mut teams = TeamsClient::with_interceptor(channel.clone(), bearer(ADMIN_TOKEN));
    let request = CreateTeamRequest {
        team_id: "blue".into(),
        team: None,
    };
    teams.create_team(request).await.unwrap();

    let mut nodes = AggregatedDiscoveryServiceClient::with_interceptor(channel, bearer(NODE_TOKEN));
    let opening = DeltaDiscoveryRequest {
        node: Some(Node {
            id: "gw-1".into(),
            ..Node::default()
        }),
        type_url: "type.googleapis.com/turnpike.config.v1.Checkpoint".into(),
        ..DeltaDiscoveryRequest::default()
    };
    let requests = tokio_stream::iter([opening]).chain(tokio_stream::pending());
    let responses = nodes.delta_aggregated_resources(requests).await.unwrap();
    let mut responses = responses.into_inner();
    responses.message().await.unwrap().expect("a push");

    let began = Instant::now();
    process.terminate().await;
    let (code, log) = process.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(began.elapsed() < Duration::from_secs(5), "{log}");
    for token in [ADMIN_TOKEN, NODE_TOKEN, "a1a1"] {
        assert!(!log.contains(token), "{log}");
    }
}

#[tokio::test]
async fn the_api_describes_itself() {
    let postgres = Postgres::new(true).await;
    let mut process = command_line(&postgres.url()).await.start();
    process.ready().await;
    let mut reflection = ServerReflectionClient::new(process.channel().await);
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = reflection.server_reflection_info(tokio_stream::iter([request]));
    let answer = answers.await.unwrap().into_inner().message().await.unwrap();
    let Some(MessageResponse::ListServicesResponse(services)) = answer.unwrap().message_response
    else {
        panic!("no list of services");
    };
    let names: Vec<&str> = services
        .service
        .iter()
        .map(|service| service.name.as_str())
        .collect();
    for name in ["turnpike.admin.v1.Teams", "turnpike.metering.v1.Metering"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[tokio::test]
async fn metrics_are_served_beside_health_and_show_no_name_of_a_caller() {
    let postgres = Postgres::new(true).await;
    let mut process = command_line(&postgres.url()).await.start();
    process.ready().await;
    let channel = process.channel().await;
    let mut teams = TeamsClient::with_interceptor(channel.clone(), bearer(ADMIN_TOKEN));
    teams.list_teams(ListTeamsRequest::default()).await.unwrap();
    let mut intruder = TeamsClient::with_interceptor(channel, bearer("wrong-admin-token"));
    let refused = intruder.list_teams(ListTeamsRequest::default()).await;
    refused.unwrap_err();
    let metrics = process.get("/metrics").await.unwrap();
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    assert!(
        metrics.contains("application/openmetrics-text; version=1.0.0"),
        "{metrics}"
    );
    let method = "method=\"turnpike.admin.v1.Teams/ListTeams\"";
    for line in [
        format!("turnpike_control_plane_rpcs_total{{{method},code=\"ok\"}} 1"),
        format!("turnpike_control_plane_rpcs_total{{{method},code=\"unauthenticated\"}} 1"),
        format!("turnpike_control_plane_rpc_duration_seconds_count{{{method}}} 2"),
        "turnpike_control_plane_connected_nodes 0".to_owned(),
        "turnpike_control_plane_config_version 1".to_owned(),
        "# EOF".to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    for token in [ADMIN_TOKEN, NODE_TOKEN, "wrong-admin-token", "a1a1"] {
        assert!(!metrics.contains(token), "{metrics}");
    }
}

#[tokio::test]
async fn replicas_that_start_at_once_on_an_empty_database_all_serve() {
    let postgres = Postgres::new(true).await;
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(command_line(&postgres.url()).await.start());
    }
    for replica in &mut replicas {
        replica.ready().await;
        let mut teams = TeamsClient::with_interceptor(replica.channel().await, bearer(ADMIN_TOKEN));
        teams.list_teams(ListTeamsRequest::default()).await.unwrap();
    }
}

#[tokio::test]
async fn an_open_address_needs_a_certificate() {
    let line = command_line("postgres://127.0.0.1:1/x").await;
    let line = line
        .without("--grpc-listen")
        .with("--grpc-listen=0.0.0.0:0".into());
    let (code, log) = line.start().end().await;
    assert_eq!(code, Some(1));
    assert!(
        log.contains("not a loopback address") && log.contains("--tls-cert-file"),
        "{log}"
    );
}

#[tokio::test]
async fn a_certificate_that_is_none_is_said_before_anything_is_tried() {
    let line = command_line("postgres://127.0.0.1:1/x").await;
    let cert = file(&line.directory, "cert", "not PEM");
    let key = file(&line.directory, "key", "sk-test-not-a-key");
    let line = line
        .with(format!("--tls-cert-file={cert}"))
        .with(format!("--tls-key-file={key}"));
    let (code, log) = line.start().end().await;
    assert_eq!(code, Some(1));
    assert!(log.contains("--tls-cert-file"), "{log}");
    assert!(
        !log.contains("sk-test") && !log.contains("postgres"),
        "{log}"
    );
}

#[tokio::test]
async fn a_master_key_is_required_unless_it_is_left_out_on_purpose() {
    let line = command_line("postgres://127.0.0.1:1/x").await;
    let (code, log) = line.without("--master-key-file").start().end().await;
    assert_eq!(code, Some(2));
    assert!(log.contains("--master-key-file"), "{log}");
}

#[tokio::test]
async fn a_secret_file_that_is_wrong_is_named_and_not_shown() {
    let line = command_line("postgres://127.0.0.1:1/x").await;
    file(&line.directory, "master", "sk-test-not-a-master-key");
    let (code, log) = line.start().end().await;
    assert_eq!(code, Some(1));
    assert!(
        log.contains("--master-key-file") && !log.contains("sk-test"),
        "{log}"
    );

    let line = command_line("postgres://127.0.0.1:1/x").await;
    file(&line.directory, "admin", "sk-test");
    let (code, log) = line.start().end().await;
    assert_eq!(code, Some(1));
    assert!(
        log.contains("--admin-token-file") && !log.contains("sk-test"),
        "{log}"
    );
}

#[tokio::test]
async fn a_database_that_cannot_be_is_told_at_once_and_one_that_is_away_after_the_wait() {
    let line = command_line("sqlite:///tmp/x").await;
    let (code, log) = line.start().end().await;
    assert_eq!(code, Some(1));
    assert!(log.contains("--database-url"), "{log}");

    let line = command_line("postgres://user:sk-test-password@127.0.0.1:1/x").await;
    let began = Instant::now();
    let (code, log) = line.with("--database-wait=1".into()).start().end().await;
    assert_eq!(code, Some(1));
    assert!(
        log.contains("--database-url") && !log.contains("sk-test"),
        "{log}"
    );
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn a_schema_that_is_missing_is_said_when_migrating_is_off() {
    let postgres = Postgres::new(true).await;
    let line = command_line(&postgres.url()).await;
    let (code, log) = line.with("--no-migrate".into()).start().end().await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("loading the config"), "{log}");
}
