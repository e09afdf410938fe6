//! Replicas learn of new versions; nodes are remembered.

use std::time::Duration;

use control_plane_core::nodes::{BootId, Node};
use control_plane_core::published::Kind;
use control_plane_store::Store;
use tokio::time::timeout;

use crate::database::{TestDatabase, actor, options, team};

const LONG: Duration = Duration::from_secs(60);
const DEADLINE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_version_is_heard_by_another_replica_long_before_its_poll() {
    let database = TestDatabase::new().await;
    let mut watched = database.replica().await.watch_config(LONG);
    timeout(DEADLINE, watched.wait_for(|version| *version == 1))
        .await
        .unwrap()
        .unwrap();
    // The first poll has told version 1; let LISTEN begin too.
    let listening = "select count(*) from pg_stat_activity where query ilike 'listen%' and datname = current_database()";
    timeout(DEADLINE, async {
        while database.number(listening).await == 0 {}
    })
    .await
    .unwrap();
    let version = database
        .store
        .create_team(&actor(), team("a"))
        .await
        .unwrap()
        .config_version;
    let heard = timeout(DEADLINE, watched.wait_for(|heard| *heard == version)).await;
    assert_eq!(
        *heard.expect("by NOTIFY, not by the poll").unwrap(),
        version
    );
    database.drop().await;
}

#[tokio::test]
async fn the_poll_finds_what_was_not_heard_and_publishes_rows_edited_by_hand() {
    let database = TestDatabase::new().await;
    let mut watched = database.store.watch_config(Duration::from_millis(50));
    timeout(DEADLINE, watched.wait_for(|version| *version == 1))
        .await
        .unwrap()
        .unwrap();
    database
        .execute("insert into team (team_id) values ('by-hand')")
        .await;
    timeout(DEADLINE, watched.wait_for(|version| *version == 2))
        .await
        .unwrap()
        .unwrap();
    let published = database.store.load_published().await.unwrap();
    assert!(published.body(Kind::Team, "by-hand").is_some());
    // A version that nobody was notified of.
    database
        .execute("update config_state set version = 7")
        .await;
    timeout(DEADLINE, watched.wait_for(|version| *version == 7))
        .await
        .unwrap()
        .unwrap();
    database.drop().await;
}

#[tokio::test]
async fn a_lost_listen_connection_is_made_again() {
    let database = TestDatabase::new().await;
    let mut watched = database.replica().await.watch_config(LONG);
    timeout(DEADLINE, watched.wait_for(|version| *version == 1))
        .await
        .unwrap()
        .unwrap();
    let listening = "select count(*) from pg_stat_activity where query ilike 'listen%' and datname = current_database()";
    timeout(DEADLINE, async {
        while database.number(listening).await == 0 {}
    })
    .await
    .unwrap();
    let kill = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                where query ilike 'listen%' and datname = current_database()";
    assert!(database.number(kill).await > 0);
    let version = database
        .store
        .create_team(&actor(), team("a"))
        .await
        .unwrap()
        .config_version;
    timeout(DEADLINE, watched.wait_for(|heard| *heard == version))
        .await
        .unwrap()
        .unwrap();
    database.drop().await;
}

#[tokio::test]
async fn the_latest_report_of_a_node_is_kept() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let node = |last_seen_us, acked_version| Node {
        boot_id: BootId([1; 16]),
        name: "envoy-1".into(),
        envoy_version: "1.40.0".into(),
        connected: true,
        acked_version,
        connected_at_us: 1_800_000_000_000_000,
        last_seen_us,
        rejected: vec!["model/m: no\0targets".into()],
    };
    store
        .save_nodes(&[node(1_800_000_000_000_002, 5)])
        .await
        .unwrap();
    store
        .save_nodes(&[node(1_800_000_000_000_001, 4)])
        .await
        .unwrap();
    let nodes = store.list_nodes().await.unwrap();
    assert_eq!(
        (nodes.len(), nodes[0].acked_version, nodes[0].last_seen_us),
        (1, 5, 1_800_000_000_000_002)
    );
    assert_eq!(nodes[0].rejected, ["model/m: no\u{fffd}targets"]);
    store
        .forget_nodes_before(1_800_000_000_000_003)
        .await
        .unwrap();
    assert!(store.list_nodes().await.unwrap().is_empty());
    database.drop().await;
}

#[tokio::test]
async fn a_replica_that_starts_again_has_no_nodes_of_its_last_life() {
    let database = TestDatabase::new().await;
    let replica = async |name: &str| {
        let mut options = options(database.url());
        options.replica = name.to_owned();
        Store::connect(options).await.unwrap()
    };
    let node = |byte, name: &str| Node {
        boot_id: BootId([byte; 16]),
        name: name.into(),
        envoy_version: "1.40.0".into(),
        connected: true,
        acked_version: 1,
        connected_at_us: 1_800_000_000_000_000,
        last_seen_us: 1_800_000_000_000_000 + i64::from(byte),
        rejected: vec![],
    };
    let (one, other) = (replica("host-1 :9090").await, replica("host-2 :9090").await);
    one.save_nodes(&[node(1, "a"), node(2, "b")]).await.unwrap();
    other.save_nodes(&[node(3, "c")]).await.unwrap();
    // b went over to the other replica.
    other.save_nodes(&[node(2, "b")]).await.unwrap();
    database.store.save_nodes(&[node(4, "d")]).await.unwrap();

    let connected = async || -> Vec<String> {
        let nodes = one.list_nodes().await.unwrap().into_iter();
        nodes
            .filter(|node| node.connected)
            .map(|node| node.name)
            .collect()
    };
    let again = replica("host-1 :9090").await;
    again.disconnect_own_nodes().await.unwrap();
    assert_eq!(connected().await, ["b", "c", "d"]);
    // Without a name nothing is known to be over.
    database.store.disconnect_own_nodes().await.unwrap();
    assert_eq!(connected().await, ["b", "c", "d"]);
    database.drop().await;
}

/// Handlers run on a multi-threaded runtime: every future of the store must be able to move.
#[test]
fn futures_can_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    fn each(store: &Store) {
        let by = actor();
        is_send(&store.create_team(&by, team("a")));
        is_send(&store.update_team(&by, team("a")));
        is_send(&store.delete_team(&by, "a"));
        is_send(&store.publish_pending());
        is_send(&store.load_published());
        is_send(&store.apply_usage(vec![]));
        is_send(&store.migrate());
        is_send(&store.save_nodes(&[]));
    }
    let _: fn(&Store) = each;
}
