//! Credit while Postgres goes away and comes back.

use std::time::Duration;

use proto::admin::v1::limits_client::LimitsClient;
use proto::admin::v1::{CreateLimitRequest, Limit};
use proto::config::v1 as config;
use proto::config::v1::{Enforcement, LimitSubject, LimitUnit, LimitWindow};
use proto::metering::v1::lease_down::Message as Down;
use proto::metering::v1::lease_up::Message as Up;
use proto::metering::v1::metering_client::MeteringClient;
use proto::metering::v1::{Beat, BucketKey, Hello, LeaseDown, LeaseUp, Want, Wants};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::postgres::Postgres;
use crate::process::{ADMIN_TOKEN, NODE_TOKEN, bearer, command_line};

struct Stream {
    up: mpsc::Sender<LeaseUp>,
    down: Streaming<LeaseDown>,
}

impl Stream {
    async fn open(channel: Channel) -> Self {
        let mut client = MeteringClient::with_interceptor(channel, bearer(NODE_TOKEN));
        let (up, outgoing) = mpsc::channel(10);
        let hello = Hello {
            boot_id: vec![1; 16],
            node: "gw-1".into(),
            ..Hello::default()
        };
        let message = Some(Up::Hello(hello));
        up.send(LeaseUp { message }).await.unwrap();
        let down = client.lease(ReceiverStream::new(outgoing)).await.unwrap();
        let mut stream = Self {
            up,
            down: down.into_inner(),
        };
        assert!(matches!(stream.next().await, Down::Welcome(_)));
        stream
    }

    async fn next(&mut self) -> Down {
        let message = tokio::time::timeout(Duration::from_secs(10), self.down.message());
        let message = message.await.expect("an answer comes").unwrap();
        message.expect("the stream goes on").message.unwrap()
    }

    async fn say(&mut self, message: Up) -> Down {
        let message = Some(message);
        self.up.send(LeaseUp { message }).await.unwrap();
        self.next().await
    }

    async fn want(&mut self, granted_total: u64) -> Down {
        let want = Want {
            bucket: Some(BucketKey {
                limit: "all".into(),
                subject: String::new(),
                window_start_s: -1,
            }),
            granted_total,
            min_useful: 1,
            urgent: true,
            ..Want::default()
        };
        self.say(Up::Wants(Wants {
            wants: vec![want],
            epoch: 1,
        }))
        .await
    }

    async fn beat(&mut self) -> Down {
        self.say(Up::Beat(Beat {
            epoch: 1,
            open_exchanges: 0,
        }))
        .await
    }
}

fn granted(answer: &Down) -> Option<u64> {
    match answer {
        Down::Grants(grants) => Some(grants.grants.first()?.granted_total),
        _ => None,
    }
}

#[tokio::test]
async fn while_postgres_is_away_there_is_no_verdict_and_the_stream_goes_on() {
    let postgres = Postgres::new(true).await;
    let mut process = command_line(&postgres.url()).await.start();
    process.ready().await;
    let channel = process.channel().await;
    let values = config::Limit {
        subject: LimitSubject::Everything.into(),
        unit: LimitUnit::Tokens.into(),
        amount: 1000,
        window: LimitWindow::Lifetime.into(),
        enforcement: Enforcement::Strict.into(),
        ..config::Limit::default()
    };
    let create = CreateLimitRequest {
        limit_id: "all".into(),
        limit: Some(Limit {
            values: Some(values),
            ..Limit::default()
        }),
    };
    let mut limits = LimitsClient::with_interceptor(channel.clone(), bearer(ADMIN_TOKEN));
    limits.create_limit(create).await.unwrap();
    let mut stream = Stream::open(channel).await;
    assert_eq!(granted(&stream.want(1).await), Some(1));
    postgres.stop();
    let answer = stream.want(2).await;
    let Down::Unavailable(unavailable) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(unavailable.buckets[0].limit, "all");
    let answer = stream.beat().await;
    assert!(matches!(answer, Down::Unavailable(_)), "{answer:?}");
    postgres.start();
    let recovered = tokio::time::timeout(Duration::from_secs(20), async {
        while granted(&stream.want(2).await) != Some(2) {}
        while !matches!(stream.beat().await, Down::Grants(_)) {}
    });
    recovered.await.expect("it recovers by itself");
}
