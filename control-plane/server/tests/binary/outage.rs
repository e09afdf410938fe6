//! Postgres goes away while the control plane serves.

use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use prost::Message as _;
use proto::admin::v1::teams_client::TeamsClient;
use proto::admin::v1::usage_client::UsageClient;
use proto::admin::v1::{CreateTeamRequest, ListUsageRecordsRequest};
use proto::metering::v1::metering_client::MeteringClient;
use proto::metering::v1::{
    Batch, OpenShard, UsageDown, UsageRecord, UsageUp, usage_down, usage_up,
};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

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

/// A usage stream with one shard opened, and the sequence that is wanted next.
async fn open_shard(channel: Channel) -> Result<(UsageStream, u64), Status> {
    let mut metering = MeteringClient::with_interceptor(channel, bearer(NODE_TOKEN));
    let (up, requests) = mpsc::channel(10);
    let open = usage_up::Message::Open(OpenShard {
        boot_id: BOOT.to_vec(),
        node: "gw-1".into(),
        shard: 0,
        oldest_kept_seq: 1,
    });
    let down = metering.usage(ReceiverStream::new(requests)).await?;
    let mut stream = UsageStream {
        up,
        down: down.into_inner(),
    };
    match stream.exchange(open).await? {
        usage_down::Message::Resume(resume) => Ok((stream, resume.next_seq)),
        usage_down::Message::Ack(ack) => panic!("{ack:?}"),
    }
}

const BOOT: [u8; 16] = [7; 16];

struct UsageStream {
    up: mpsc::Sender<UsageUp>,
    down: Streaming<UsageDown>,
}

impl UsageStream {
    async fn exchange(&mut self, up: usage_up::Message) -> Result<usage_down::Message, Status> {
        let up = UsageUp { message: Some(up) };
        self.up.send(up).await.unwrap();
        Ok(self.down.message().await?.unwrap().message.unwrap())
    }

    /// Delivers the one record of this test.
    async fn deliver(&mut self) -> Result<usage_down::Message, Status> {
        let record = UsageRecord {
            exchange_id: vec![1; 16],
            admitted_at_us: 1_800_000_000_000_000,
            ..UsageRecord::default()
        };
        self.exchange(usage_up::Message::Batch(Batch {
            boot_id: BOOT.to_vec(),
            shard: 0,
            first_seq: 1,
            records: vec![record.encode_to_vec()],
        }))
        .await
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

    let (mut usage, next_seq) = open_shard(channel.clone()).await.unwrap();
    assert_eq!(next_seq, 1);

    postgres.stop();
    let refused = usage.deliver().await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    let refused = teams.create_team(create("red")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    let refused = open_shard(channel.clone()).await.map(drop).unwrap_err();
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
    // Nothing was acked, so nothing was kept: the node delivers it again, and it counts once.
    let (mut usage, next_seq) = open_shard(channel.clone()).await.unwrap();
    assert_eq!(next_seq, 1);
    for _ in 0..2 {
        let usage_down::Message::Ack(ack) = usage.deliver().await.unwrap() else {
            panic!("no ack");
        };
        assert_eq!(ack.through_seq, 1);
    }
    let mut reports = UsageClient::with_interceptor(channel, bearer(ADMIN_TOKEN));
    let listed = reports.list_usage_records(ListUsageRecordsRequest::default());
    assert_eq!(listed.await.unwrap().into_inner().records.len(), 1);
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
    assert!(log.contains("connecting to postgres"), "{log}");
}
