//! Usage on its way into the ledger.

use prost::Message as _;
use proto::admin::v1::{
    ListUsageRecordsRequest, QueryUsageRequest, QueryUsageResponse, UsageDimension, UsageRow,
};
use proto::metering::v1::metering_client::MeteringClient;
use proto::metering::v1::{
    Ack, Attempt, Batch, Caller, ClassCost, Decision, End, Gap, GapReason, OpenShard, Resume,
    TokenClass, Usage, UsageDown, UsageRecord, UsageSource, UsageUp, Verdict, usage_down, usage_up,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::harness::{ADMIN_TOKEN, Database, NODE_TOKEN, Replica, bearer, replica, soon};

const BOOT: [u8; 16] = [7; 16];

struct Stream {
    up: mpsc::Sender<UsageUp>,
    down: Streaming<UsageDown>,
}

impl Stream {
    async fn open(replica: &Replica, token: &str) -> Result<Self, Status> {
        let mut client = MeteringClient::with_interceptor(replica.channel.clone(), bearer(token));
        let (up, outgoing) = mpsc::channel(1000);
        let down = client.usage(ReceiverStream::new(outgoing)).await?;
        Ok(Self {
            up,
            down: down.into_inner(),
        })
    }

    async fn send(&self, message: usage_up::Message) {
        let message = UsageUp {
            message: Some(message),
        };
        self.up.send(message).await.unwrap();
    }

    async fn batch(&self, shard: u32, first_seq: u64, records: Vec<UsageRecord>) {
        self.send(usage_up::Message::Batch(Batch {
            boot_id: BOOT.to_vec(),
            shard,
            first_seq,
            records: records.iter().map(UsageRecord::encode_to_vec).collect(),
        }))
        .await;
    }

    async fn answer(&mut self) -> Result<usage_down::Message, Status> {
        let answer = soon(self.down.message()).await?;
        Ok(answer.expect("the stream goes on").message.unwrap())
    }

    async fn open_shard(&mut self, shard: u32) -> u64 {
        self.send(usage_up::Message::Open(OpenShard {
            boot_id: BOOT.to_vec(),
            node: "gw-1".into(),
            shard,
            oldest_kept_seq: 1,
        }))
        .await;
        match self.answer().await.unwrap() {
            usage_down::Message::Resume(resume) => resume.next_seq,
            usage_down::Message::Ack(ack) => panic!("{ack:?}"),
        }
    }
}

fn ack(shard: u32, through_seq: u64) -> usage_down::Message {
    usage_down::Message::Ack(Ack {
        boot_id: BOOT.to_vec(),
        shard,
        through_seq,
    })
}

fn resume(shard: u32, next_seq: u64) -> usage_down::Message {
    usage_down::Message::Resume(Resume {
        boot_id: BOOT.to_vec(),
        shard,
        next_seq,
    })
}

fn record(number: u64) -> UsageRecord {
    let now_us = i64::try_from(
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_micros(),
    )
    .unwrap();
    UsageRecord {
        exchange_id: number.to_be_bytes().repeat(2),
        request_id: format!("request-{number}"),
        admitted_at_us: now_us,
        duration_us: 1000,
        end: End::Complete.into(),
        caller: Some(Caller {
            key: "app".into(),
            team: "blue".into(),
            end_user: String::new(),
        }),
        decision: Some(Decision {
            client_api: "openai.chat_completions".into(),
            model_asked: "large".into(),
            model: "large".into(),
            ..Decision::default()
        }),
        attempts: vec![Attempt {
            number: 1,
            provider: "acme".into(),
            upstream_model: "upstream-1".into(),
            model: "large".into(),
            status: 200,
            verdict: Verdict::Billed.into(),
            usage: Some(Usage {
                input: number,
                output: 1,
                source: UsageSource::Reported.into(),
                ..Usage::default()
            }),
            costs: vec![
                ClassCost {
                    token_class: TokenClass::Input.into(),
                    tokens: number,
                    cost_nusd: Some(number * 10),
                },
                ClassCost {
                    token_class: TokenClass::Output.into(),
                    tokens: 1,
                    cost_nusd: Some(5),
                },
            ],
            ..Attempt::default()
        }],
        price_version: 1,
        status: 200,
        ..UsageRecord::default()
    }
}

fn records(numbers: std::ops::RangeInclusive<u64>) -> Vec<UsageRecord> {
    numbers.map(record).collect()
}

async fn sums(replica: &Replica) -> UsageRow {
    let request = QueryUsageRequest {
        group_by: vec![UsageDimension::Team.into(), UsageDimension::Provider.into()],
        ..QueryUsageRequest::default()
    };
    let answer = replica.usage().query_usage(request).await.unwrap();
    let QueryUsageResponse { mut rows } = answer.into_inner();
    assert!(rows.len() <= 1, "{rows:?}");
    rows.pop().unwrap_or_default()
}

#[tokio::test]
async fn every_record_counts_once_however_often_it_comes() {
    let database = Database::create().await;
    let first = replica(&database, true).await;
    let mut stream = Stream::open(&first, NODE_TOKEN).await.unwrap();
    assert_eq!(stream.open_shard(0).await, 1);
    stream.batch(0, 1, records(1..=3)).await;
    assert_eq!(stream.answer().await.unwrap(), ack(0, 3));
    // The same again, then one that overlaps what is there.
    stream.batch(0, 1, records(1..=3)).await;
    stream.batch(0, 2, records(2..=5)).await;
    assert_eq!(stream.answer().await.unwrap(), ack(0, 3));
    assert_eq!(stream.answer().await.unwrap(), ack(0, 5));
    drop(stream);

    let other = replica(&database, true).await;
    let mut stream = Stream::open(&other, NODE_TOKEN).await.unwrap();
    assert_eq!(stream.open_shard(0).await, 6);
    stream.batch(0, 4, records(4..=6)).await;
    assert_eq!(stream.answer().await.unwrap(), ack(0, 6));

    let row = sums(&other).await;
    assert_eq!(
        (row.team.as_str(), row.provider.as_str()),
        ("teams/blue", "providers/acme")
    );
    assert_eq!((row.requests, row.attempts), (6, 6));
    assert_eq!((row.input_tokens, row.output_tokens), (21, 6));
    assert_eq!(row.cost_nusd, 21 * 10 + 6 * 5);

    let request = ListUsageRecordsRequest {
        request_id: "request-5".into(),
        ..ListUsageRecordsRequest::default()
    };
    let listed = other.usage().list_usage_records(request).await.unwrap();
    let [stored] = listed.into_inner().records.try_into().unwrap();
    assert_eq!(
        (stored.seq, stored.shard, stored.node.as_str()),
        (5, 0, "gw-1")
    );
    assert_eq!(stored.boot_id, BOOT);
    let decoded = UsageRecord::decode(stored.record.as_slice()).unwrap();
    assert_eq!(decoded.request_id, "request-5");
}

#[tokio::test]
async fn a_hole_is_not_taken_and_a_gap_passes_it() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut stream = Stream::open(&replica, NODE_TOKEN).await.unwrap();
    assert_eq!(stream.open_shard(3).await, 1);
    stream.batch(3, 4, records(4..=4)).await;
    assert_eq!(stream.answer().await.unwrap(), resume(3, 1));
    stream
        .send(usage_up::Message::Gap(Gap {
            boot_id: BOOT.to_vec(),
            shard: 3,
            from_seq: 1,
            to_seq: 3,
            reason: GapReason::Torn.into(),
        }))
        .await;
    assert_eq!(stream.answer().await.unwrap(), ack(3, 3));
    stream.batch(3, 4, records(4..=4)).await;
    assert_eq!(stream.answer().await.unwrap(), ack(3, 4));
    assert_eq!(sums(&replica).await.requests, 1);
}

#[tokio::test]
async fn many_streams_at_once_are_answered_each_in_its_order() {
    let database = Database::create().await;
    let replica = std::sync::Arc::new(replica(&database, true).await);
    let mut nodes = tokio::task::JoinSet::new();
    for shard in 0..8 {
        let replica = replica.clone();
        nodes.spawn(async move {
            let mut stream = Stream::open(&replica, NODE_TOKEN).await.unwrap();
            assert_eq!(stream.open_shard(shard).await, 1);
            // More than may wait for their answers at a time.
            for seq in 1..=200 {
                stream.batch(shard, seq, vec![record(1)]).await;
            }
            for seq in 1..=200 {
                assert_eq!(stream.answer().await.unwrap(), ack(shard, seq));
            }
        });
    }
    nodes.join_all().await;
    let row = sums(&replica).await;
    assert_eq!((row.requests, row.input_tokens), (1600, 1600));
}

#[tokio::test]
async fn a_stream_that_breaks_the_protocol_ends_and_acks_nothing() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut stream = Stream::open(&replica, NODE_TOKEN).await.unwrap();
    stream.open_shard(0).await;
    stream.batch(0, 0, records(1..=1)).await;
    let status = stream.answer().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("batch.first_seq: "));
    assert_eq!(sums(&replica).await.requests, 0);
}

#[tokio::test]
async fn one_record_that_cannot_be_read_holds_up_no_other_node() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut good = Stream::open(&replica, NODE_TOKEN).await.unwrap();
    let mut bad = Stream::open(&replica, NODE_TOKEN).await.unwrap();
    good.open_shard(0).await;
    bad.open_shard(1).await;
    bad.send(usage_up::Message::Batch(Batch {
        boot_id: BOOT.to_vec(),
        shard: 1,
        first_seq: 1,
        records: vec![vec![0xff; 20]],
    }))
    .await;
    good.batch(0, 1, records(1..=1)).await;
    assert_eq!(good.answer().await.unwrap(), ack(0, 1));
    assert_eq!(sums(&replica).await.requests, 1);
}

#[tokio::test]
async fn only_the_node_token_opens_a_usage_stream() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    for token in ["wrong-token-0123456789", ADMIN_TOKEN] {
        let refused = Stream::open(&replica, token).await.map(drop).unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
}

#[tokio::test]
async fn what_arrives_is_counted_and_duplicates_and_early_batches_too() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut stream = Stream::open(&replica, NODE_TOKEN).await.unwrap();
    assert_eq!(stream.open_shard(0).await, 1);
    for (first_seq, numbers, answer) in [
        (1, 1..=3, ack(0, 3)),
        // The last of them is new.
        (2, 2..=4, ack(0, 4)),
        (1, 1..=2, ack(0, 4)),
        (9, 9..=9, resume(0, 5)),
    ] {
        stream.batch(0, first_seq, records(numbers)).await;
        assert_eq!(stream.answer().await.unwrap(), answer);
    }
    let records =
        |outcome| replica.metric(&format!("usage_records_total{{outcome=\"{outcome}\"}}"));
    assert_eq!((records("stored"), records("duplicate")), (4.0, 4.0));
    let batches =
        |outcome| replica.metric(&format!("usage_batches_total{{outcome=\"{outcome}\"}}"));
    assert_eq!((batches("stored"), batches("duplicate")), (2.0, 1.0));
    assert_eq!(batches("early"), 1.0);
    assert!(replica.metric("postgres_connections{state=\"idle\"}") >= 1.0);
    assert_eq!(replica.metric("postgres_connections_limit"), 6.0);
}
