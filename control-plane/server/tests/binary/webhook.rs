//! Events of limits on their way to a webhook.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::admin::v1::limits_client::LimitsClient;
use proto::admin::v1::{
    AdjustBucketRequest, CreateLimitRequest, DeliveryState, Limit, LimitEvent,
    ListLimitEventsRequest,
};
use proto::config::v1 as config;
use proto::config::v1::{LimitSubject, LimitUnit, LimitWindow};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use crate::postgres::Postgres;
use crate::process::{ADMIN_TOKEN, Bearer, bearer, command_line, file};

/// One request of the control plane.
struct Received {
    request_line: String,
    headers: BTreeMap<String, String>,
    body: serde_json::Value,
}

/// Takes the next request and answers it.
async fn receive(listener: &TcpListener, status: &str) -> Received {
    let received = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            match line.trim_end() {
                "" => break,
                text => lines.push(text.to_owned()),
            }
        }
        let request_line = lines.remove(0);
        let headers: BTreeMap<String, String> = lines
            .iter()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut body = vec![0; headers["content-length"].parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        Received {
            request_line,
            headers,
            body: serde_json::from_slice(&body).unwrap(),
        }
    };
    tokio::time::timeout(Duration::from_secs(30), received)
        .await
        .expect("an event is told")
}

type Limits = LimitsClient<InterceptedService<Channel, Bearer>>;

/// A limit of 1000 tokens that tells of 800 and of all of them.
async fn create_watched(limits: &mut Limits) {
    let values = config::Limit {
        subject: LimitSubject::Team.into(),
        unit: LimitUnit::Tokens.into(),
        amount: 1000,
        window: LimitWindow::Lifetime.into(),
        thresholds: vec![80, 100],
        ..config::Limit::default()
    };
    let create = CreateLimitRequest {
        limit_id: "all".into(),
        limit: Some(Limit {
            values: Some(values),
            display_name: "All there is".into(),
            ..Limit::default()
        }),
    };
    limits.create_limit(create).await.unwrap();
}

/// Waits until both events are said to be delivered, one of them at the second try.
async fn delivered(limits: &mut Limits) {
    for _ in 0..600 {
        let listed = limits.list_limit_events(ListLimitEventsRequest::default());
        let events = listed.await.unwrap().into_inner().events;
        let is_told = |event: &LimitEvent| event.state() == DeliveryState::Delivered;
        if events.iter().filter(|event| is_told(event)).count() == 2 {
            assert_eq!((events[1].tries, events[0].tries), (2, 1));
            let failure = &events[1].failure;
            assert!(
                failure.contains("500") && !failure.contains("/hook"),
                "{failure}"
            );
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not delivered after 30 s");
}

#[tokio::test]
async fn a_threshold_that_is_passed_is_told_until_it_is_taken_and_then_no_more() {
    let postgres = Postgres::new(true).await;
    let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?a=b", receiver.local_addr().unwrap());
    let line = command_line(&postgres.url()).await;
    let secret = file(&line.directory, "webhook", "test-webhook-secret-1\n");
    let mut process = line
        .with(format!("--event-webhook={url}"))
        .with(format!("--event-webhook-secret-file={secret}"))
        .start();
    process.ready().await;
    let channel = process.channel().await;
    let mut limits = LimitsClient::with_interceptor(channel, bearer(ADMIN_TOKEN));
    create_watched(&mut limits).await;
    let adjust = |delta| AdjustBucketRequest {
        limit: "limits/all".into(),
        subject: "blue".into(),
        delta,
        reason: "a test".into(),
    };
    limits.adjust_bucket(adjust(799)).await.unwrap();
    limits.adjust_bucket(adjust(1)).await.unwrap();
    let first = receive(&receiver, "500 Internal Server Error").await;
    assert_eq!(first.request_line, "POST /hook?a=b HTTP/1.1");
    assert_eq!(first.body["type"], "limit.threshold_passed");
    assert_eq!(first.body["limit"], "limits/all");
    assert_eq!(first.body["displayName"], "All there is");
    assert_eq!(first.body["subject"], "blue");
    assert_eq!(first.body["thresholdPercent"], 80);
    assert_eq!(
        (&first.body["settled"], &first.body["amount"]),
        (&800.into(), &1000.into())
    );
    assert_eq!(first.body["resetTime"], serde_json::Value::Null);
    assert_eq!(first.body["id"], first.headers["webhook-id"].as_str());
    assert!(first.headers["webhook-signature"].starts_with("v1,"));
    // It was not taken.
    let again = receive(&receiver, "204 No Content").await;
    assert_eq!(again.body, first.body);

    limits.adjust_bucket(adjust(500)).await.unwrap();
    let second = receive(&receiver, "200 OK").await;
    assert_eq!(second.body["thresholdPercent"], 100);
    assert_eq!(second.body["settled"], 1300);
    assert_ne!(second.body["id"], first.body["id"]);
    delivered(&mut limits).await;
    let metrics = process.get("/metrics").await.unwrap();
    for line in [
        "webhook_deliveries_total{outcome=\"delivered\"} 2",
        "webhook_deliveries_total{outcome=\"failed\"} 1",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    process.terminate().await;
    let (_, log) = process.end().await;
    assert!(log.contains("could not be delivered"), "{log}");
    assert!(!log.contains("/hook"), "{log}");
}
