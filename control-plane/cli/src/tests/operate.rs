//! Usage, nodes, waiting and the audit log.

use prost::Message;
use prost_types::Timestamp;
use proto::admin::v1 as pb;
use proto::metering::v1 as metering;

use super::fake::Fake;
use super::turnpike;

#[tokio::test]
async fn usage_is_asked_for_by_dimension_filter_and_span() {
    let fake = Fake::start().await;
    fake.state().usage_rows = vec![pb::UsageRow {
        team: "acme".into(),
        requests: 3,
        cost_nusd: 2_500_000_000,
        ..Default::default()
    }];
    let query = [
        "usage",
        "query",
        "--by",
        "team,key",
        "--by",
        "day",
        "--since",
        "2026-12-01",
        "--until",
        "2026-12-02T06:00:00Z",
        "--team",
        "acme",
        "--key",
        "k",
        "--model",
        "a/b",
    ];
    let run = turnpike(&fake, &query).await.ok();
    let request = fake.state().usage_query.clone().unwrap();
    assert_eq!(request.group_by, [1, 2, 6]);
    assert_eq!(request.start_time.unwrap().seconds, 1_796_083_200);
    assert_eq!(request.end_time.unwrap().seconds, 1_796_083_200 + 108_000);
    assert_eq!(request.team, "teams/acme");
    assert_eq!(request.virtual_key, "virtualKeys/k");
    assert_eq!(request.model, "models/a/b");
    assert!(
        run.out.starts_with("TEAM  KEY  DAY  REQUESTS"),
        "{}",
        run.out
    );
    assert!(
        run.out.trim_end().ends_with("2.50        0.00"),
        "{}",
        run.out
    );
}

#[tokio::test]
async fn a_reprice_says_what_it_asks_for_and_what_came_of_it() {
    let fake = Fake::start().await;
    fake.state().reprice_answer = pb::RepriceUsageResponse {
        price_version: 4,
        attempts: 9,
        skipped_attempts: 2,
        from_nusd: 3_000_000_000,
        to_nusd: 3_000_000,
        entries: 1,
        targets: vec![pb::RepricedTarget {
            provider: "openai".into(),
            upstream_model: "gpt".into(),
            priced_attempts: 0,
            correction_nusd: -2_997_000_000,
        }],
        repeated_request: false,
    };
    let reprice = [
        "usage",
        "reprice",
        "--since",
        "2026-12-01",
        "--until",
        "2026-12-02",
        "--provider",
        "openai",
        "--model",
        "a/b",
        "--reason",
        "per 1k",
        "--request-id",
        "r-1",
    ];
    let run = turnpike(&fake, &reprice).await.ok();
    let request = fake.state().reprice_request.clone().unwrap();
    assert_eq!(request.start_time.unwrap().seconds, 1_796_083_200);
    assert_eq!(request.end_time.unwrap().seconds, 1_796_083_200 + 86_400);
    assert_eq!(request.provider, "providers/openai");
    assert_eq!(request.model, "models/a/b");
    assert_eq!(
        (request.reason.as_str(), request.request_id.as_str()),
        ("per 1k", "r-1")
    );
    assert!(!request.dry_run);
    assert!(run.out.trim_end().ends_with("-2.997"), "{}", run.out);
    let expected = "9 attempts, 2 left as they are; 3.00 USD is 0.003 USD by price book 4; \
                    1 corrections entered";
    assert!(run.notes.contains(expected), "{}", run.notes);
    let mut dry = reprice.to_vec();
    dry.extend(["--dry-run", "-o", "json"]);
    let json = turnpike(&fake, &dry).await.ok().json();
    assert!(fake.state().reprice_request.clone().unwrap().dry_run);
    assert_eq!(json["targets"][0]["correctionNusd"], -2_997_000_000_i64);
}

#[tokio::test]
async fn usage_without_flags_sums_the_last_day() {
    let fake = Fake::start().await;
    let run = turnpike(&fake, &["usage", "query", "-o", "json"])
        .await
        .ok();
    assert_eq!(run.out, "[]\n");
    let request = fake.state().usage_query.clone().unwrap();
    let start_s = request.start_time.unwrap().seconds;
    let now_s = time::OffsetDateTime::now_utc().unix_timestamp();
    assert!((now_s - 86_400 - start_s).abs() < 60, "{start_s}");
    assert_eq!((request.end_time, request.group_by.len()), (None, 0));
}

#[tokio::test]
async fn records_are_paged_up_to_the_limit() {
    let fake = Fake::start().await;
    let record = |request_id: &str| pb::StoredUsageRecord {
        record: metering::UsageRecord {
            request_id: request_id.into(),
            ..Default::default()
        }
        .encode_to_vec(),
        ..Default::default()
    };
    fake.state().records = ["r1", "r2", "r3", "r4"].map(record).to_vec();
    let list = [
        "usage",
        "records",
        "--key",
        "k",
        "--since",
        "2026-12-01",
        "--limit",
        "3",
        "-o",
        "json",
    ];
    let run = turnpike(&fake, &list).await.ok();
    let json = run.json();
    assert_eq!(json.as_array().unwrap().len(), 3);
    assert_eq!(json[2]["requestId"], "r3");
    assert_eq!(
        run.notes,
        "note: there is no virtual key `k` now\nthe newest 3 are shown; all: --limit 0\n"
    );
    let request = fake.state().records_query.clone().unwrap();
    assert_eq!(request.virtual_key, "virtualKeys/k");
    assert_eq!(request.start_time.unwrap().seconds, 1_796_083_200);

    let typo = ["usage", "query", "--team", "nosuch"];
    let run = turnpike(&fake, &typo).await.ok();
    assert_eq!(run.notes, "note: there is no team `nosuch` now\n");

    let run = turnpike(&fake, &["usage", "records", "--limit", "0"])
        .await
        .ok();
    assert_eq!(run.out.lines().count(), 5);
    assert_eq!(run.notes, "");
    turnpike(&fake, &["usage", "records", "--request-id", "r1"])
        .await
        .ok();
    assert_eq!(fake.state().records_query.clone().unwrap().request_id, "r1");
}

#[tokio::test]
async fn nodes_are_in_sync_behind_or_disconnected() {
    let fake = Fake::start().await;
    let node = |name: &str, connected, acked_version| pb::Node {
        name: name.into(),
        boot_id: vec![0xab],
        connected,
        acked_version,
        envoy_version: "1.40.0".into(),
        last_seen_time: Some(Timestamp {
            seconds: 1,
            nanos: 0,
        }),
        ..Default::default()
    };
    fake.state().nodes = pb::ListNodesResponse {
        nodes: vec![node("a", true, 9), node("b", true, 8), node("c", false, 9)],
        config_version: 9,
        unpublished: vec!["rule set: no catch-all".into()],
    };
    let run = turnpike(&fake, &["nodes", "list"]).await.ok();
    let lines: Vec<&str> = run.out.lines().skip(1).collect();
    let starts = ["a     in sync  ", "b     behind  ", "c     disconnected  "];
    assert_eq!(lines.len(), starts.len());
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    assert_eq!(
        run.notes,
        "newest config: 9\nnot published: rule set: no catch-all\n"
    );
    let json = turnpike(&fake, &["nodes", "list", "-o", "json"])
        .await
        .ok()
        .json();
    assert_eq!(json["configVersion"], 9);
    assert_eq!(json["nodes"][0]["bootId"], "ab");
    assert_eq!(json["nodes"][1]["ackedVersion"], 8);
}

#[tokio::test]
async fn wait_names_the_nodes_that_are_late() {
    let fake = Fake::start().await;
    fake.state().wait_answer = pb::WaitResponse {
        connected: 2,
        acked: 1,
        elapsed: Some(prost_types::Duration {
            seconds: 60,
            nanos: 0,
        }),
        pending: vec!["edge-2".into()],
        ..Default::default()
    };
    let run = turnpike(&fake, &["wait", "12", "--timeout", "60"]).await;
    assert_eq!(run.out, "config 12: 1 of 2 nodes in 60.0 s\n");
    assert_eq!(
        run.error(),
        "config 12 is not in force on every node: pending: edge-2"
    );
    let run = turnpike(&fake, &["wait", "-o", "json"]).await;
    assert_eq!(run.json()["pending"][0], "edge-2");
    assert_eq!(run.json()["elapsedMs"], 60_000);
    assert_eq!(fake.state().wait_request.unwrap().config_version, 0);

    // The secret is out before the wait fails.
    let run = turnpike(&fake, &["keys", "create", "k", "--team", "t", "--wait=1"]).await;
    assert_eq!(run.out, "tp_k_test\n");
    assert!(run.error().contains("edge-2"), "{}", run.error());
}

#[tokio::test]
async fn the_audit_log_is_listed_newest_first_with_states() {
    let fake = Fake::start().await;
    let entry = |resource: &str, state: &str| pb::AuditEntry {
        time: Some(Timestamp {
            seconds: 1_796_083_200,
            nanos: 0,
        }),
        actor: "admin-token".into(),
        method: "CreateTeam".into(),
        resource: resource.into(),
        config_version: 7,
        state: state.into(),
    };
    fake.state().audit = vec![
        entry("teams/c", r#"{"disabled":true}"#),
        entry("teams/b", ""),
        entry("teams/a", ""),
    ];
    let run = turnpike(&fake, &["audit", "list"]).await.ok();
    assert_eq!(
        run.out.lines().nth(1),
        Some("2026-12-01 00:00:00Z  admin-token  CreateTeam  teams/c        7")
    );
    assert_eq!(run.out.lines().count(), 4);
    let run = turnpike(&fake, &["audit", "list", "--limit", "2", "-o", "json"])
        .await
        .ok();
    assert_eq!(run.json()[0]["state"]["disabled"], true);
    assert_eq!(run.json()[1]["state"], serde_json::Value::Null);
    assert_eq!(run.json().as_array().unwrap().len(), 2);
    assert_eq!(run.notes, "the newest 2 are shown; all: --limit 0\n");
}
