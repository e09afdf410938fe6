//! Postgres goes away while the control plane serves.

use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use proto::admin::v1::CreateTeamRequest;
use proto::admin::v1::teams_client::TeamsClient;
use proto::metering::v1::metering_client::MeteringClient;
use proto::metering::v1::{OpenShard, UsageUp, usage_down, usage_up};
use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic::transport::Channel;

use crate::postgres::Postgres;
use crate::process::{ADMIN_TOKEN, NODE_TOKEN, bearer, command_line};

fn create(team_id: &str) -> CreateTeamRequest {
    CreateTeamRequest {
        team_id: team_id.into(),
        team: None,
    }
}

/// Names of what a node that connects now is sent first.
async fn first_push(channel: Channel) -> Vec<String> {
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
    let mut names = Vec::new();
    loop {
        let response = responses.message().await.unwrap().unwrap();
        if response.type_url.ends_with(".Checkpoint") {
            return names;
        }
        names.extend(response.resources.into_iter().map(|resource| resource.name));
    }
}

async fn open_shard(channel: Channel) -> Result<u64, tonic::Status> {
    let mut metering = MeteringClient::with_interceptor(channel, bearer(NODE_TOKEN));
    let open = UsageUp {
        message: Some(usage_up::Message::Open(OpenShard {
            boot_id: vec![7; 16],
            node: "gw-1".into(),
            shard: 0,
            oldest_kept_seq: 1,
        })),
    };
    let requests = tokio_stream::iter([open]).chain(tokio_stream::pending());
    let mut answers = metering.usage(requests).await?.into_inner();
    match answers.message().await?.unwrap().message.unwrap() {
        usage_down::Message::Resume(resume) => Ok(resume.next_seq),
        usage_down::Message::Ack(ack) => panic!("{ack:?}"),
    }
}

#[tokio::test]
async fn it_stays_ready_and_serves_nodes_while_postgres_is_away() {
    let postgres = Postgres::new(true).await;
    let mut process = command_line(&postgres.url()).await.start();
    process.ready().await;
    let channel = process.channel().await;
    let mut teams = TeamsClient::with_interceptor(channel.clone(), bearer(ADMIN_TOKEN));
    teams.create_team(create("blue")).await.unwrap();
    // The change has come back from the database once a node is sent it.
    while !first_push(channel.clone())
        .await
        .contains(&"blue".to_owned())
    {}

    postgres.stop();
    let refused = teams.create_team(create("red")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    let refused = open_shard(channel.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    for _ in 0..20 {
        assert_eq!(process.readyz().await, Some(200));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(
        first_push(channel.clone())
            .await
            .contains(&"blue".to_owned())
    );

    postgres.start();
    let created = tokio::time::timeout(Duration::from_secs(20), async {
        while teams.create_team(create("green")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        while !first_push(channel.clone())
            .await
            .contains(&"green".to_owned())
        {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    created.await.expect("it recovers by itself");
    assert_eq!(open_shard(channel).await.unwrap(), 1);
    assert_eq!(process.readyz().await, Some(200));
}

#[tokio::test]
async fn started_without_postgres_it_lives_unready_until_postgres_is_there() {
    let postgres = Postgres::new(false).await;
    let mut process = command_line(&postgres.url()).await.start();
    let lives = tokio::time::timeout(Duration::from_secs(10), async {
        while process.status("/healthz").await != Some(200) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    lives.await.expect("it lives");
    assert_eq!(process.readyz().await, Some(503));
    postgres.start();
    process.ready().await;
    process.terminate().await;
    let (code, log) = process.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("waiting for postgres"), "{log}");
}
