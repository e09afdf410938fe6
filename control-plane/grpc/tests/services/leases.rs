//! Credit on its way to nodes: streams of processes, at one replica or several.

mod budget;
mod outage;

use std::time::Duration;

use prost::Message as _;
use proto::admin::v1::{Bucket, CreateLimitRequest, Limit, ListBucketsRequest};
use proto::config::v1 as config;
use proto::config::v1::{Enforcement, LimitSubject, LimitUnit, LimitWindow};
use proto::metering::v1::lease_down::Message as Down;
use proto::metering::v1::lease_up::Message as Up;
use proto::metering::v1::metering_client::MeteringClient;
use proto::metering::v1::{
    Batch, Beat, BucketKey, Charge, Close, Deny, DenyKind, End, Grant, Grants, Hello, Holding,
    LeaseDown, LeaseUp, OpenShard, ShardEnd, UsageRecord, UsageUp, Want, Wants, Welcome, usage_up,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::harness::{Database, NODE_TOKEN, Replica, bearer, replica, soon};

/// One process of a node, on its stream.
struct Process {
    boot: [u8; 16],
    epoch: u64,
    welcome: Welcome,
    up: mpsc::Sender<LeaseUp>,
    down: Streaming<LeaseDown>,
}

fn hello(boot: u8, epoch: u64, holdings: Vec<Holding>) -> Hello {
    Hello {
        boot_id: vec![boot; 16],
        node: format!("gw-{boot}"),
        epoch,
        holdings,
        ..Hello::default()
    }
}

/// A stream with its first message sent.
async fn stream(
    replica: &Replica,
    token: &str,
    first: Up,
) -> Result<(mpsc::Sender<LeaseUp>, Streaming<LeaseDown>), Status> {
    let mut client = MeteringClient::with_interceptor(replica.channel.clone(), bearer(token));
    let (up, outgoing) = mpsc::channel(1000);
    let message = Some(first);
    up.send(LeaseUp { message }).await.unwrap();
    let down = client.lease(ReceiverStream::new(outgoing)).await?;
    Ok((up, down.into_inner()))
}

async fn next(down: &mut Streaming<LeaseDown>) -> Result<Down, Status> {
    let message = soon(down.message()).await?;
    Ok(message.expect("the stream goes on").message.unwrap())
}

/// How a stream ends that is refused.
async fn end(mut down: Streaming<LeaseDown>) -> Status {
    loop {
        match next(&mut down).await {
            Ok(_) => {}
            Err(status) => return status,
        }
    }
}

impl Process {
    async fn connect(replica: &Replica, boot: u8) -> Self {
        Self::reconnect(replica, hello(boot, 0, Vec::new())).await
    }

    async fn reconnect(replica: &Replica, hello: Hello) -> Self {
        let boot = hello.boot_id.as_slice().try_into().unwrap();
        let (up, mut down) = stream(replica, NODE_TOKEN, Up::Hello(hello)).await.unwrap();
        let Down::Welcome(welcome) = next(&mut down).await.unwrap() else {
            panic!("no welcome");
        };
        Self {
            boot,
            epoch: welcome.epoch,
            welcome,
            up,
            down,
        }
    }

    async fn send(&self, message: Up) {
        let message = Some(message);
        self.up.send(LeaseUp { message }).await.unwrap();
    }

    async fn next(&mut self) -> Down {
        next(&mut self.down).await.unwrap()
    }

    async fn want(&mut self, want: Want) -> (Option<Grant>, Option<Deny>) {
        self.send(Up::Wants(Wants {
            wants: vec![want],
            epoch: self.epoch,
        }))
        .await;
        loop {
            match self.next().await {
                Down::Grants(mut grants) => return (grants.grants.pop(), grants.denials.pop()),
                Down::Recall(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn beat(&mut self) -> Down {
        self.send(Up::Beat(Beat {
            epoch: self.epoch,
            open_exchanges: 0,
        }))
        .await;
        self.next().await
    }

    /// Delivers the first record of its first shard.
    async fn deliver(&self, replica: &Replica, charges: Vec<Charge>) {
        let mut client =
            MeteringClient::with_interceptor(replica.channel.clone(), bearer(NODE_TOKEN));
        let (up, outgoing) = mpsc::channel(10);
        let boot_id = self.boot.to_vec();
        for message in [
            usage_up::Message::Open(OpenShard {
                boot_id: boot_id.clone(),
                node: "gw".into(),
                oldest_kept_seq: 1,
                ..OpenShard::default()
            }),
            usage_up::Message::Batch(Batch {
                boot_id,
                shard: 0,
                first_seq: 1,
                records: vec![record(charges).encode_to_vec()],
            }),
        ] {
            let message = Some(message);
            up.send(UsageUp { message }).await.unwrap();
        }
        let mut answers = client
            .usage(ReceiverStream::new(outgoing))
            .await
            .unwrap()
            .into_inner();
        for _ in 0..2 {
            soon(answers.message()).await.unwrap().unwrap();
        }
    }
}

fn record(charges: Vec<Charge>) -> UsageRecord {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    UsageRecord {
        exchange_id: vec![1; 16],
        admitted_at_us: i64::try_from(since.unwrap().as_micros()).unwrap(),
        end: End::Complete.into(),
        charges,
        ..UsageRecord::default()
    }
}

fn bucket(limit: &str) -> BucketKey {
    BucketKey {
        limit: limit.into(),
        subject: String::new(),
        window_start_s: -1,
    }
}

/// A waiting request's: `granted_total` of it wished, of which `min_useful` is lacking.
fn want(limit: &str, granted_total: u64, min_useful: u64) -> Want {
    Want {
        bucket: Some(bucket(limit)),
        granted_total,
        min_useful,
        urgent: true,
        ..Want::default()
    }
}

async fn create_limit(replica: &Replica, id: &str, unit: LimitUnit, amount: u64) {
    let window = match unit {
        LimitUnit::InFlight => LimitWindow::None,
        _ => LimitWindow::Lifetime,
    };
    let values = config::Limit {
        subject: LimitSubject::Everything.into(),
        unit: unit.into(),
        amount,
        window: window.into(),
        enforcement: Enforcement::Strict.into(),
        ..config::Limit::default()
    };
    let request = CreateLimitRequest {
        limit_id: id.into(),
        limit: Some(Limit {
            values: Some(values),
            ..Limit::default()
        }),
    };
    replica.limits().create_limit(request).await.unwrap();
}

/// The one bucket that there is.
async fn the_bucket(replica: &Replica) -> Bucket {
    let mut limits = replica.limits();
    let listed = limits.list_buckets(ListBucketsRequest::default()).await;
    let mut buckets = listed.unwrap().into_inner().buckets;
    assert_eq!(buckets.len(), 1);
    buckets.remove(0)
}

async fn until_free(replica: &Replica, amount: i64) {
    let freed = async {
        while the_bucket(replica).await.remaining != amount {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon(freed).await;
}

#[tokio::test]
async fn a_process_is_welcomed_and_what_it_asks_for_is_granted() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    create_limit(&replica, "all", LimitUnit::Tokens, 1000).await;
    let mut process = Process::connect(&replica, 1).await;
    let welcome = process.welcome.clone();
    assert_eq!(
        (welcome.epoch, welcome.ttl_ms, welcome.beat_ms),
        (1, 15_000, 5_000)
    );
    assert!(!welcome.lineage.is_empty() && welcome.server_unix_ms > 0);
    let (grant, deny) = process.want(want("all", 10, 10)).await;
    let grant = grant.unwrap();
    assert_eq!(
        (grant.granted_total, grant.left, grant.amount),
        (10, 990, 1000)
    );
    assert_eq!(grant.bucket.unwrap().window_start_s, 0);
    assert_eq!(deny, None);
    let (grant, deny) = process.want(want("nobody", 10, 10)).await;
    assert_eq!(grant, None);
    assert_eq!(deny.unwrap().kind(), DenyKind::NoLimit);
    let Down::Grants(grants) = process.beat().await else {
        panic!("a beat is answered by a Grants");
    };
    let nothing = Grants {
        epoch: 1,
        ..Grants::default()
    };
    assert_eq!(grants, nothing);
}

#[tokio::test]
async fn what_was_granted_is_granted_once_however_often_and_wherever_it_is_asked_for() {
    let database = Database::create().await;
    let here = replica(&database, true).await;
    let there = replica(&database, true).await;
    create_limit(&here, "all", LimitUnit::Tokens, 1000).await;
    let mut process = Process::connect(&here, 1).await;
    process.want(want("all", 10, 10)).await;
    // The answer is lost, and so is the connection.
    let again = Process::reconnect(&there, hello(1, process.epoch, Vec::new()));
    let mut again = again.await;
    let Down::Grants(grants) = again.next().await else {
        panic!("what it does not know of is told");
    };
    assert_eq!(grants.epoch, 1);
    assert_eq!(grants.grants[0].granted_total, 10);
    for _ in 0..3 {
        let (grant, deny) = again.want(want("all", 10, 10)).await;
        assert_eq!((grant.unwrap().granted_total, deny), (10, None));
        let (grant, _) = process.want(want("all", 10, 10)).await;
        assert_eq!(grant.unwrap().granted_total, 10);
    }
    assert_eq!(the_bucket(&here).await.held, 10);
}

#[tokio::test]
async fn idle_credit_is_recalled_from_whoever_has_it_for_a_request_that_waits() {
    let database = Database::create().await;
    let here = replica(&database, true).await;
    let there = replica(&database, true).await;
    create_limit(&here, "slots", LimitUnit::InFlight, 4).await;
    let mut idle = Process::connect(&here, 1).await;
    let mut waiting = Process::connect(&there, 2).await;
    let (grant, _) = idle.want(want("slots", 4, 4)).await;
    assert_eq!(grant.unwrap().granted_total, 4);
    let (_, deny) = waiting.want(want("slots", 1, 1)).await;
    let deny = deny.unwrap();
    assert_eq!((deny.kind(), deny.left), (DenyKind::Reserved, 0));
    let recalled = idle.next().await;
    let Down::Recall(recall) = recalled else {
        panic!("{recalled:?}");
    };
    let recalled = &recall.buckets[0];
    assert_eq!(recalled.bucket.as_ref().unwrap().limit, "slots");
    assert_eq!(recalled.keep, 0);
    idle.want(Want {
        returned_total: 2,
        ..want("slots", 4, 0)
    })
    .await;
    let (grant, deny) = waiting.want(want("slots", 1, 1)).await;
    assert_eq!((grant.unwrap().granted_total, deny), (1, None));
    let bucket = the_bucket(&here).await;
    assert_eq!((bucket.held, bucket.remaining), (3, 1));
}

#[tokio::test]
async fn a_close_frees_what_is_left_once_the_last_record_is_in_the_ledger() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    create_limit(&replica, "all", LimitUnit::Tokens, 1000).await;
    let mut process = Process::connect(&replica, 1).await;
    process.want(want("all", 100, 100)).await;
    let close = Up::Close(Close {
        epoch: 1,
        holdings: Vec::new(),
        shards: vec![ShardEnd {
            shard: 0,
            last_seq: 1,
        }],
    });
    process.send(close).await;
    // The node ends its side, and sees that the Close was taken.
    let Process {
        boot,
        epoch,
        welcome,
        up,
        mut down,
    } = process;
    drop(up);
    assert!(soon(down.message()).await.unwrap().is_none());
    assert_eq!(the_bucket(&replica).await.remaining, 900);
    let process = Process {
        boot,
        epoch,
        welcome,
        up: mpsc::channel(1).0,
        down,
    };
    let charge = Charge {
        limit: "all".into(),
        epoch: 1,
        reserved: 100,
        settled: 30,
        ..Charge::default()
    };
    process.deliver(&replica, vec![charge]).await;
    until_free(&replica, 970).await;
    let bucket = the_bucket(&replica).await;
    assert_eq!((bucket.settled, bucket.held, bucket.suspended), (30, 0, 0));
}

#[tokio::test]
async fn what_no_process_may_say_ends_its_stream_and_no_other() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    create_limit(&replica, "all", LimitUnit::Tokens, 1000).await;
    let mut other = Process::connect(&replica, 9).await;
    let first = Up::Hello(hello(1, 0, Vec::new()));
    let refused = stream(&replica, "wrong-token-0123456789", first.clone()).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
    let beat = Up::Beat(Beat::default());
    let (_up, down) = stream(&replica, NODE_TOKEN, beat).await.unwrap();
    let refused = end(down).await;
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().starts_with("hello: "), "{refused}");

    let process = Process::connect(&replica, 1).await;
    process.send(first).await;
    assert_eq!(end(process.down).await.code(), Code::InvalidArgument);
    let process = Process::connect(&replica, 1).await;
    let nameless = Wants {
        wants: vec![Want::default()],
        epoch: 1,
    };
    process.send(Up::Wants(nameless)).await;
    let refused = end(process.down).await;
    assert_eq!(refused.message(), "wants[0].bucket: is required");
    let process = Process::connect(&replica, 1).await;
    let early = Wants {
        wants: vec![want("all", 1, 1)],
        epoch: 7,
    };
    process.send(Up::Wants(early)).await;
    assert_eq!(end(process.down).await.code(), Code::FailedPrecondition);
    let process = Process::connect(&replica, 1).await;
    let another = Process::connect(&replica, 1).await;
    assert_eq!(end(process.down).await.code(), Code::Aborted);
    drop(another);

    let (grant, _) = other.want(want("all", 10, 10)).await;
    assert_eq!(grant.unwrap().granted_total, 10);
}

#[tokio::test]
async fn a_subject_that_cannot_be_kept_is_refused_alone() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    create_limit(&replica, "all", LimitUnit::Tokens, 1000).await;
    let mut process = Process::connect(&replica, 1).await;
    let mut odd = want("all", 1, 1);
    odd.bucket.as_mut().unwrap().subject = "blue/\0".into();
    process
        .send(Up::Wants(Wants {
            wants: vec![odd, want("all", 10, 10)],
            epoch: 1,
        }))
        .await;
    let Down::Grants(grants) = process.next().await else {
        panic!("no grants");
    };
    assert_eq!(grants.grants[0].granted_total, 10);
    assert_eq!(grants.denials.len(), 1);
    assert_eq!(grants.denials[0].kind(), DenyKind::Spent);
}

#[tokio::test]
async fn answers_to_wants_and_recalls_are_counted() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    create_limit(&replica, "all", LimitUnit::Tokens, 100).await;
    let mut one = Process::connect(&replica, 1).await;
    let mut other = Process::connect(&replica, 2).await;
    one.want(want("all", 100, 100)).await;
    other.want(want("all", 50, 50)).await;
    other.want(want("nobody", 1, 1)).await;
    assert!(matches!(one.next().await, Down::Recall(_)));
    let answers =
        |outcome| replica.metric(&format!("lease_answers_total{{outcome=\"{outcome}\"}}"));
    assert_eq!((answers("granted"), answers("reserved")), (1.0, 1.0));
    assert_eq!((answers("no_limit"), answers("spent")), (1.0, 0.0));
    soon(async {
        while replica.metric("lease_recalls_total") < 1.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
