//! `Config.Wait` and `Config.ListNodes`.

use std::time::Duration;

use control_plane_core::nodes::BootId;
use proto::admin::v1::{ListNodesRequest, WaitRequest, WaitResponse};
use tonic::Code;

use crate::harness::{Database, Replica, replica, replica_named, soon, store_named};
use crate::node::Node;

pub(crate) async fn wait(replica: &Replica, config_version: u64, timeout_s: i64) -> WaitResponse {
    let request = WaitRequest {
        config_version,
        timeout: Some(prost_types::Duration {
            seconds: timeout_s,
            nanos: 0,
        }),
    };
    replica.config().wait(request).await.unwrap().into_inner()
}

fn elapsed(response: &WaitResponse) -> Duration {
    response.elapsed.unwrap().try_into().unwrap()
}

#[tokio::test]
async fn a_change_reaches_every_node_of_every_replica_within_a_second() {
    let database = Database::create().await;
    let first = replica(&database, true).await;
    let second = replica(&database, true).await;
    let version = first.seed().await;
    Node::connect(&first.channel, "gw-1", None).await.run();
    Node::connect(&second.channel, "gw-2", None).await.run();
    // A node of another replica is known once that has stored it.
    soon(async { while wait(&first, version, 10).await.connected < 2 {} }).await;
    soon(async { while wait(&second, version, 10).await.connected < 2 {} }).await;

    let (version, _) = first.create_key("second", "blue").await;
    for replica in [&first, &second] {
        let waited = wait(replica, version, 10).await;
        assert_eq!((waited.connected, waited.acked), (2, 2), "{waited:?}");
        assert_eq!(waited.config_version, version);
        assert!(waited.pending.is_empty());
        assert!(elapsed(&waited) < Duration::from_secs(1), "{waited:?}");
    }
}

#[tokio::test]
async fn a_node_that_does_not_answer_is_named() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let mut stuck = Node::connect(&replica.channel, "gw-stuck", None).await;
    stuck.push().await;
    let waited = wait(&replica, version, 1).await;
    assert_eq!((waited.connected, waited.acked), (1, 0));
    assert_eq!(waited.pending, ["gw-stuck"]);
    assert!(elapsed(&waited) >= Duration::from_millis(900));
}

#[tokio::test]
async fn a_node_that_left_is_told_apart() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    node.reach(version).await;
    drop(node);
    let waited = soon(async {
        loop {
            let waited = wait(&replica, version, 1).await;
            if waited.connected == 0 {
                return waited;
            }
        }
    })
    .await;
    assert_eq!((waited.acked, waited.disconnected), (0, 1));

    // The same node again: it is not away.
    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    node.reach(version).await;
    let waited = wait(&replica, version, 5).await;
    assert_eq!(
        (waited.connected, waited.acked, waited.disconnected),
        (1, 1, 0)
    );
    let nodes = replica.config().list_nodes(ListNodesRequest {}).await;
    let nodes = nodes.unwrap().into_inner();
    assert_eq!(nodes.config_version, version);
    let [node] = nodes.nodes.as_slice() else {
        panic!("{nodes:?}");
    };
    assert!(node.connected && node.name == "gw-1");
}

#[tokio::test]
async fn a_replica_that_starts_again_does_not_count_the_nodes_it_had_when_it_was_killed() {
    let database = Database::create().await;
    let other = replica(&database, true).await;
    let version = other.seed().await;
    Node::connect(&other.channel, "gw-1", None).await.run();
    // What a process leaves that is killed, and its node with it.
    let now_us = time::OffsetDateTime::now_utc().unix_timestamp() * 1_000_000;
    let left = control_plane_core::nodes::Node {
        boot_id: BootId([9; 16]),
        name: "gw-2".into(),
        envoy_version: "1.40.0".into(),
        connected: true,
        acked_version: 0,
        connected_at_us: now_us,
        last_seen_us: now_us,
        rejected: vec![],
    };
    let killed = store_named("host-1 :9090", &database).await;
    killed.save_nodes(&[left]).await.unwrap();
    let waited = wait(&other, version, 1).await;
    assert_eq!(
        (waited.connected, waited.pending.as_slice()),
        (2, &["gw-2".to_owned()][..])
    );

    let again = replica_named("host-1 :9090", &database, true).await;
    for replica in [&again, &other] {
        let waited = soon(async {
            loop {
                let waited = wait(replica, version, 1).await;
                if waited.acked == 1 {
                    return waited;
                }
            }
        })
        .await;
        assert_eq!((waited.connected, waited.disconnected), (1, 1));
        assert!(waited.pending.is_empty());
    }
}

#[tokio::test]
async fn zero_is_the_newest_version_and_a_minute_the_longest_wait() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    assert_eq!(wait(&replica, 0, 5).await.config_version, version);

    for (seconds, nanos) in [(61, 0), (-1, 0), (60, 1)] {
        let request = WaitRequest {
            config_version: 0,
            timeout: Some(prost_types::Duration { seconds, nanos }),
        };
        let status = replica.config().wait(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().starts_with("timeout: "));
    }
}

#[tokio::test]
async fn a_version_that_is_not_published_yet_is_waited_for_in_vain() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    Node::connect(&replica.channel, "gw-1", None).await.run();
    wait(&replica, version, 5).await;
    let waited = wait(&replica, version + 10, 1).await;
    assert_eq!((waited.connected, waited.acked), (1, 0));
    assert_eq!(waited.pending, ["gw-1"]);
}
