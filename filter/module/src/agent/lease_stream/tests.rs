//! The stream against a control plane of one bucket, in this process.

use std::{collections::BTreeMap, pin::Pin, sync::Mutex};

use filter_agent::spool::BootId;
use filter_core::credit::{Accounts, Kind, LimitTerms, Mode, Need, reserve};
use proto::metering::v1::{
    Close, Grant, Grants, UsageDown, UsageUp, Want, Welcome, lease_down,
    metering_server::{Metering, MeteringServer},
};
use tokio::{net::TcpListener, time::timeout};
use tokio_stream::{Stream, StreamExt as _, wrappers::TcpListenerStream};
use tonic::{Response, Status, transport::Server};

use super::*;

/// Long enough for anything that is not waited for by a timer.
const SOON: Duration = Duration::from_secs(5);

/// Grants whatever is asked for, and remembers what it heard.
#[derive(Clone, Default)]
pub(in super::super) struct ControlPlane {
    heard: Arc<Mutex<Vec<lease_up::Message>>>,
    /// The next message ends its stream, and there is no other.
    is_over: Arc<AtomicBool>,
}

type Down<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Metering for ControlPlane {
    type UsageStream = Down<UsageDown>;
    type LeaseStream = Down<LeaseDown>;

    async fn usage(
        &self,
        _: Request<Streaming<UsageUp>>,
    ) -> Result<Response<Self::UsageStream>, Status> {
        Err(Status::unimplemented("usage"))
    }

    async fn lease(
        &self,
        request: Request<Streaming<LeaseUp>>,
    ) -> Result<Response<Self::LeaseStream>, Status> {
        if self.is_over.load(Ordering::Relaxed) {
            return Err(Status::unavailable("over"));
        }
        let this = self.clone();
        let is_over = Arc::clone(&self.is_over);
        let ups = request.into_inner();
        let ups = ups.take_while(move |_| !is_over.load(Ordering::Relaxed));
        let downs = ups.filter_map(move |up| {
            let message = up.ok()?.message?;
            let answer = this.answer(&message);
            this.heard.lock().expect("no panic").push(message);
            let message = Some(answer?);
            Some(Ok(LeaseDown { message }))
        });
        Ok(Response::new(Box::pin(downs)))
    }
}

impl ControlPlane {
    fn answer(&self, message: &lease_up::Message) -> Option<lease_down::Message> {
        match message {
            lease_up::Message::Hello(_) => Some(lease_down::Message::Welcome(Welcome {
                epoch: 1,
                ttl_ms: 15_000,
                beat_ms: 5_000,
                ..Welcome::default()
            })),
            lease_up::Message::Wants(wants) => {
                let grant = |want: &Want| Grant {
                    bucket: want.bucket.clone(),
                    granted_total: want.granted_total,
                    returned_total: want.returned_total,
                    left: 1_000,
                    amount: 1_000,
                    ..Grant::default()
                };
                Some(lease_down::Message::Grants(Grants {
                    grants: wants.wants.iter().map(grant).collect(),
                    epoch: wants.epoch,
                    ..Grants::default()
                }))
            }
            lease_up::Message::Beat(_) | lease_up::Message::Close(_) => None,
        }
    }

    pub(in super::super) fn closes(&self) -> Vec<Close> {
        let heard = self.heard.lock().expect("no panic");
        let closes = heard.iter().filter_map(|message| match message {
            lease_up::Message::Close(close) => Some(close.clone()),
            _ => None,
        });
        closes.collect()
    }

    /// What is granted and not returned, by the last that was heard of each bucket.
    fn outstanding(&self) -> u64 {
        let heard = self.heard.lock().expect("no panic");
        let mut buckets = BTreeMap::new();
        for message in heard.iter() {
            if let lease_up::Message::Wants(wants) = message {
                for want in &wants.wants {
                    let bucket = want.bucket.clone().expect("a bucket");
                    buckets.insert(
                        (bucket.limit, bucket.subject),
                        want.granted_total - want.returned_total,
                    );
                }
            }
        }
        buckets.values().sum()
    }
}

/// A node: its accounts, and what its stream needs.
pub(in super::super) struct Node {
    accounts: Arc<Accounts>,
    bell: Arc<Bell>,
    counts: LeaseCounts,
    pub(in super::super) settings: Settings,
    _folder: tempfile::TempDir,
}

impl Node {
    pub(in super::super) fn new(address: std::net::SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let token = folder.path().join("token");
        std::fs::write(&token, "node-token").expect("written");
        let settings = serde_json::json!({
            "control_plane": format!("http://{address}"),
            "node_token_file": token,
            "state_dir": folder.path(),
            "node": "a",
        });
        let accounts = Arc::new(Accounts::new());
        let bell = Arc::<Bell>::default();
        accounts.set_bell(Arc::clone(&bell) as Arc<dyn Wake>);
        Self {
            accounts,
            bell,
            counts: LeaseCounts::new(),
            settings: Settings::parse(settings.to_string().as_bytes()).expect("settings"),
            _folder: folder,
        }
    }

    fn stream(&self) -> LeaseStream<'_> {
        LeaseStream::new(
            &self.settings,
            channel::channel(&self.settings).expect("a channel"),
            Session::new(BootId([7; 16]), "a", Arc::clone(&self.accounts)),
            Arc::clone(&self.bell),
            &self.counts,
        )
    }

    fn need(&self, amount: u64) -> Need {
        let terms = LimitTerms {
            id: "budget".into(),
            kind: Kind::Credit,
            amount: 1_000,
            on_unavailable_allowance: None,
        };
        Need {
            account: self.accounts.account(&terms, ""),
            amount,
            mode: Mode::Must,
        }
    }

    /// Waits for credit as a worker does, then reserves.
    async fn reserve(&self, amount: u64) -> filter_core::credit::Reservation {
        let needs = [self.need(amount)];
        let woken = Arc::new(Woken::default());
        let place = needs[0]
            .account
            .wait(amount, Arc::clone(&woken) as Arc<dyn Wake>)
            .expect("room");
        loop {
            match reserve(&needs, clock::mono_us()) {
                Ok(reservation) => return reservation,
                Err(_) => {
                    woken.0.notified().await;
                    place.again(amount);
                }
            }
        }
    }
}

#[derive(Default)]
struct Woken(Notify);

impl Wake for Woken {
    fn wake(&self) {
        self.0.notify_one();
    }
}

pub(in super::super) async fn control_plane() -> (ControlPlane, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let control_plane = ControlPlane::default();
    let service = MeteringServer::new(control_plane.clone());
    let serve = Server::builder()
        .add_service(service)
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(serve);
    (control_plane, address)
}

#[tokio::test]
async fn a_request_that_lacks_credit_is_answered_at_once_and_counted_as_urgent() {
    let (control_plane, address) = control_plane().await;
    let node = Node::new(address);
    let mut stream = node.stream();
    tokio::select! {
        () = stream.run() => panic!("it runs for ever"),
        reserved = timeout(SOON, node.reserve(100)) => drop(reserved.expect("credit comes")),
    }
    assert_eq!(node.counts.take_wants().urgent, 1);
    assert!(node.counts.is_connected());
    assert!(control_plane.outstanding() >= 100);
}

#[tokio::test]
async fn far_from_the_edge_nothing_is_asked_urgently() {
    let (_control_plane, address) = control_plane().await;
    let node = Node::new(address);
    let mut stream = node.stream();
    let spend = async {
        drop(node.reserve(10).await);
        node.counts.take_wants();
        for _ in 0..1_000 {
            drop(reserve(&[node.need(10)], clock::mono_us()).expect("local credit"));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = stream.run() => panic!("it runs for ever"),
        spent = timeout(SOON, spend) => spent.expect("in time"),
    }
    assert_eq!(node.counts.take_wants().urgent, 0);
}

#[tokio::test]
async fn draining_gives_back_what_no_request_holds() {
    let (control_plane, address) = control_plane().await;
    let node = Node::new(address);
    let mut stream = node.stream();
    let drained = async {
        let held = node.reserve(100).await;
        assert!(control_plane.outstanding() > 200, "some is kept for others");
        node.bell.drain();
        // As much again is kept, to extend what is open.
        while control_plane.outstanding() > 200 {
            sleep(Duration::from_millis(5)).await;
        }
        held
    };
    tokio::select! {
        () = stream.run() => panic!("it runs for ever"),
        held = timeout(SOON, drained) => drop(held.expect("given back")),
    }
}

#[tokio::test]
async fn the_end_closes_the_epoch_at_the_shards_ends_and_waits_until_it_is_heard() {
    let (control_plane, address) = control_plane().await;
    let node = Node::new(address);
    let mut stream = node.stream();
    tokio::select! {
        () = stream.run() => panic!("it runs for ever"),
        reserved = timeout(SOON, node.reserve(100)) => drop(reserved.expect("credit comes")),
    }
    let ends = [spool::ShardEnd {
        shard: 3,
        last_seq: 9,
        unmarked: None,
    }];
    timeout(SOON, stream.close(&ends)).await.expect("in time");
    let closes = control_plane.closes();
    let [close] = closes.as_slice() else {
        panic!("one Close: {closes:?}");
    };
    assert_eq!(close.epoch, 1);
    assert_eq!(
        close.shards,
        [ShardEnd {
            shard: 3,
            last_seq: 9
        }]
    );
    for holding in &close.holdings {
        assert_eq!(
            holding.granted_total, holding.returned_total,
            "nothing used"
        );
        assert_eq!(holding.reserved, 0);
    }
}

#[tokio::test]
async fn a_process_that_never_held_anything_ends_without_a_control_plane() {
    let node = Node::new(([127, 0, 0, 1], 9).into());
    let mut stream = node.stream();
    timeout(SOON, stream.close(&[])).await.expect("at once");
}

#[tokio::test]
async fn what_comes_back_wakes_who_waits_though_the_control_plane_is_gone() {
    let (control_plane, address) = control_plane().await;
    let node = Node::new(address);
    let mut stream = node.stream();
    let woken_by_another = async {
        let all = node.reserve(1_000).await;
        control_plane.is_over.store(true, Ordering::Relaxed);
        let waiting = node.reserve(8_000);
        let freed = async {
            while node.counts.is_connected() {
                sleep(Duration::from_millis(5)).await;
            }
            drop(all);
        };
        drop(tokio::join!(waiting, freed));
    };
    tokio::select! {
        () = stream.run() => panic!("it runs for ever"),
        woken = timeout(SOON, woken_by_another) => woken.expect("woken"),
    }
}
