//! Transcripts of nodes' streams.

use std::time::{Duration, Instant};

use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use filter_agent::ads::{Kind, Mode, Refused, ResourceName};
use prost::Message as _;
use proto::admin::v1::{
    DeleteVirtualKeyRequest, ListNodesRequest, UpdateTeamRequest, UpdateVirtualKeyRequest,
};
use proto::config::v1::{Credential, Provider, VirtualKey};
use tonic::Code;

use crate::harness::{
    ADMIN_TOKEN, Database, NODE_TOKEN, PROVIDER_SECRET, Replica, bearer, replica, soon,
};
use crate::node::{Node, checkpoint};

async fn delete_key(replica: &Replica, key_id: &str) -> u64 {
    let request = DeleteVirtualKeyRequest {
        name: format!("virtualKeys/{key_id}"),
    };
    let deleted = replica.virtual_keys().delete_virtual_key(request).await;
    deleted.unwrap().into_inner().config_version
}

#[tokio::test]
async fn a_new_node_gets_everything_and_then_only_what_changes() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;

    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    let push = node.reach(version).await;
    assert_eq!(push.name.mode, Mode::Full);
    assert_eq!(push.changed()[0], "VirtualKey/app");
    for name in [
        "VirtualKey/app",
        "Team/blue",
        "Provider/acme",
        "Credential/acme-main",
        "Model/large",
        "RuleSet/default",
    ] {
        assert!(
            node.holds.contains_key(name),
            "{name}: {:?}",
            node.holds.keys()
        );
    }
    let credential = Credential::decode(node.holds["Credential/acme-main"].as_slice()).unwrap();
    assert_eq!(credential.secret, PROVIDER_SECRET);
    let provider = Provider::decode(node.holds["Provider/acme"].as_slice()).unwrap();
    assert_eq!(provider.cluster_name, "turnpike-provider-acme");
    assert_eq!(provider.path_prefix, "/v1");
    assert!(!provider.cluster.is_empty());

    let (version, _) = replica.create_key("second", "blue").await;
    let push = node.reach(version).await;
    assert!(matches!(push.name.mode, Mode::Delta { .. }));
    assert_eq!(push.changed(), ["VirtualKey/second"]);
    assert!(push.removed().is_empty());
}

#[tokio::test]
async fn an_empty_deployment_is_a_push_too() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    let push = node.push().await;
    assert_eq!(push.name.mode, Mode::Full);
    node.accept(&push).await;
}

#[tokio::test]
async fn a_node_that_comes_back_to_any_replica_gets_the_difference() {
    let database = Database::create().await;
    let first = replica(&database, true).await;
    first.seed().await;
    let (version, _) = first.create_key("second", "blue").await;
    let mut node = Node::connect(&first.channel, "gw-1", None).await;
    let at = checkpoint(&node.reach(version).await);
    drop(node);

    // Nothing has changed: an empty delta tells the node that it is in sync.
    let mut node = Node::connect(&first.channel, "gw-1", Some(&at)).await;
    let push = node.push().await;
    assert_eq!(push.name.mode, Mode::Delta { from: version });
    assert_eq!((push.changed(), push.removed()), (vec![], vec![]));
    drop(node);

    delete_key(&first, "app").await;
    let (newest, _) = first.create_key("third", "blue").await;
    let other = replica(&database, true).await;
    let mut node = Node::connect(&other.channel, "gw-1", Some(&at)).await;
    let push = node.push().await;
    assert_eq!(push.name.mode, Mode::Delta { from: version });
    assert_eq!(push.version(), newest);
    assert_eq!(push.changed(), ["VirtualKey/third"]);
    assert_eq!(push.removed(), ["VirtualKey/app"]);
}

#[tokio::test]
async fn a_checkpoint_of_another_lineage_means_everything() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let foreign = [
        format!("{version}/not-ours"),
        format!("{}/{}", version + 100, nonce(&replica).await),
    ];
    for at in foreign {
        let mut node = Node::connect(&replica.channel, "gw-1", Some(&at)).await;
        let push = node.push().await;
        assert_eq!(push.name.mode, Mode::Full, "{at}");
        assert_eq!(push.version(), version);
        assert!(push.changed().contains(&"VirtualKey/app".to_owned()));
    }
}

async fn nonce(replica: &Replica) -> String {
    let mut node = Node::connect(&replica.channel, "probe", None).await;
    node.push().await.name.checkpoint.nonce
}

#[tokio::test]
async fn a_refused_resource_is_shown_and_the_rest_applies() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    let push = node.push().await;
    let refused = Refused {
        resource: ResourceName::new(Kind::Model, "large"),
        reason: "no such dialect".into(),
    };
    node.answer(&push, &[refused]).await;

    let waited = crate::wait::wait(&replica, version, 5).await;
    assert_eq!((waited.connected, waited.acked), (1, 1));
    assert_eq!(waited.rejected, ["Model/large: no such dialect"]);
    let nodes = replica.config().list_nodes(ListNodesRequest {}).await;
    let nodes = nodes.unwrap().into_inner();
    assert_eq!(nodes.nodes[0].rejected, ["Model/large: no such dialect"]);
    assert_eq!(nodes.nodes[0].acked_version, version);
    assert_eq!(nodes.nodes[0].envoy_version, "1.40.0");

    // It is not sent again before it changes.
    let (version, _) = replica.create_key("second", "blue").await;
    let push = node.push().await;
    assert_eq!(push.changed(), ["VirtualKey/second"]);
    node.accept(&push).await;
    let waited = crate::wait::wait(&replica, version, 5).await;
    assert!(waited.rejected.is_empty());
}

#[tokio::test]
async fn a_refused_checkpoint_leaves_the_node_where_it_was() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    node.reach(version).await;

    let (refused_version, _) = replica.create_key("second", "blue").await;
    let push = node.push().await;
    let refused = Refused {
        resource: ResourceName::new(Kind::Checkpoint, "default"),
        reason: "nothing compiles".into(),
    };
    node.answer(&push, &[refused]).await;
    let waited = crate::wait::wait(&replica, refused_version, 1).await;
    assert_eq!((waited.connected, waited.acked), (1, 0));
    assert_eq!(waited.pending, ["gw-1"]);
    assert_eq!(waited.rejected, ["Checkpoint/default: nothing compiles"]);

    let (next, _) = replica.create_key("third", "blue").await;
    let push = node.push().await;
    assert_eq!(push.name.mode, Mode::Delta { from: version });
    assert_eq!(push.changed(), ["VirtualKey/second", "VirtualKey/third"]);
    node.accept(&push).await;
    let waited = crate::wait::wait(&replica, next, 5).await;
    assert_eq!(waited.acked, 1);
}

#[tokio::test]
async fn a_revocation_is_pushed_within_a_second_past_a_stuck_node() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    // Takes its first push and never says another word.
    let mut stuck = Node::connect(&replica.channel, "gw-stuck", None).await;
    stuck.push().await;
    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    node.reach(version).await;

    let began = Instant::now();
    let version = delete_key(&replica, "app").await;
    let push = node.push().await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(push.version(), version);
    assert_eq!(push.removed(), ["VirtualKey/app"]);

    let (_, _) = replica.create_key("second", "blue").await;
    node.accept(&push).await;
    node.push().await;
}

#[tokio::test]
async fn a_disabled_key_and_a_changed_team_are_pushed_as_changes() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    node.reach(version).await;
    let request = UpdateVirtualKeyRequest {
        virtual_key: Some(proto::admin::v1::VirtualKey {
            name: "virtualKeys/app".into(),
            disabled: true,
            ..Default::default()
        }),
        update_mask: None,
    };
    let updated = replica.virtual_keys().update_virtual_key(request).await;
    let version = updated.unwrap().into_inner().config_version;
    let push = node.reach(version).await;
    assert_eq!(push.changed(), ["VirtualKey/app"]);
    let key = VirtualKey::decode(node.holds["VirtualKey/app"].as_slice()).unwrap();
    assert!(key.disabled && key.team == "blue" && key.secrets.len() == 1);

    let request = UpdateTeamRequest {
        team: Some(proto::admin::v1::Team {
            name: "teams/blue".into(),
            models: vec!["large".into()],
            ..Default::default()
        }),
        update_mask: None,
    };
    let updated = replica.teams().update_team(request).await.unwrap();
    let push = node.reach(updated.into_inner().config_version).await;
    assert_eq!(push.changed(), ["Team/blue"]);
}

#[tokio::test]
async fn only_the_node_token_opens_a_stream() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    for token in ["wrong-token-0123456789", ADMIN_TOKEN] {
        let refused = Node::try_connect(&replica.channel, "gw-1", None, token).await;
        let code = refused.map(drop).unwrap_err().code();
        assert_eq!(code, Code::Unauthenticated, "{token}");
    }
}

#[tokio::test]
async fn what_is_not_of_the_protocol_ends_the_stream_with_the_reason() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut node = Node::connect(&replica.channel, "", None).await;
    let status = node.end().await.unwrap();
    assert_eq!(status.code(), Code::InvalidArgument);
    let mut node = Node::connect(&replica.channel, "gw-1", Some("seven")).await;
    let status = node.end().await.unwrap();
    assert_eq!(status.code(), Code::InvalidArgument);

    let mut client = AggregatedDiscoveryServiceClient::with_interceptor(
        replica.channel.clone(),
        bearer(NODE_TOKEN),
    );
    let status = client
        .stream_aggregated_resources(tokio_stream::iter([DiscoveryRequest::default()]))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test]
async fn a_stopping_replica_ends_its_streams() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    let push = node.push().await;
    node.accept(&push).await;
    drop(replica);
    let status = soon(node.end()).await.unwrap();
    assert_eq!(status.code(), Code::Unavailable);
}

#[tokio::test]
async fn pushes_their_answers_and_calls_are_counted_without_a_label_from_outside() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    let push = node.push().await;
    let refused = Refused {
        resource: ResourceName::new(Kind::Model, "large"),
        reason: "no".into(),
    };
    node.answer(&push, &[refused]).await;
    crate::wait::wait(&replica, version, 10).await;
    assert_eq!(replica.metric("connected_nodes"), 1.0);
    assert_eq!(
        replica.metric("config_version").to_string(),
        version.to_string()
    );
    assert_eq!(replica.metric("ads_pushes_total"), 1.0);
    assert_eq!(replica.metric("ads_answers_total{outcome=\"ack\"}"), 1.0);
    assert_eq!(replica.metric("ads_answers_total{outcome=\"nack\"}"), 0.0);
    assert_eq!(replica.metric("ads_refused_resources_total"), 1.0);

    let missing = DeleteVirtualKeyRequest {
        name: "virtualKeys/nobody".into(),
    };
    let mut keys = replica.virtual_keys();
    keys.delete_virtual_key(missing).await.unwrap_err();
    let method = "turnpike.admin.v1.VirtualKeys/DeleteVirtualKey";
    let calls = format!("rpcs_total{{method=\"{method}\",code=\"not_found\"}}");
    assert_eq!(replica.metric(&calls), 1.0);
    let seconds = format!("rpc_duration_seconds_count{{method=\"{method}\"}}");
    assert_eq!(replica.metric(&seconds), 1.0);
}
