//! Credit on its way to nodes: the Lease half of `turnpike.metering.v1.Metering`.
//!
//! Each process of a node has one stream. What its messages mean is decided by
//! `control_plane_core::limit` inside the store; here they are gathered, so that Postgres sees a
//! few transactions a second from each replica and not one from each node, and the answers are
//! brought back. A replica keeps nothing that another one lacks: any message may be repeated at any
//! of them.
//!
//! While Postgres is away no verdict is given: wants and beats are answered with Unavailable.
//!
//! Read next: `stream` for one process, `wants` and `beats` for what is gathered, `recalls` for
//! what nobody asked for, `upkeep` for what happens when nobody speaks.

mod beats;
mod closes;
mod recalls;
mod roster;
mod stream;
mod upkeep;
mod wants;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use control_plane_core::limit::Welcome;
use control_plane_store::{Error, Store};
use proto::metering::v1::{LeaseDown, LeaseUp};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use self::beats::BeatCollector;
use self::closes::Closes;
use self::roster::Roster;
use self::wants::WantCollector;
use crate::feed::Feed;
use crate::metrics::Metrics;
use crate::node_certificate::Names;
use crate::shutdown::Shutdown;
use crate::status;

// Messages of one stream that may wait for their answers.
const ANSWERS_AHEAD: usize = 64;
// Hellos in Postgres at a time: after an outage every node says it at once, with all it holds.
const GREETINGS: usize = 4;
// A node asks again sooner than a statement that waits for a lock gives up.
const STORE_TIME: Duration = Duration::from_secs(3);

type Answer = Result<LeaseDown, Status>;
type Outbox = mpsc::Sender<Answer>;
/// An answer's place in its stream's outbox, held from the moment that the message is taken.
type Place = mpsc::OwnedPermit<Answer>;

/// The Lease streams of this replica, and the tasks that serve them.
#[derive(Clone, Debug)]
pub(crate) struct Leases {
    store: Store,
    feed: Feed,
    roster: Roster,
    wants: WantCollector,
    beats: BeatCollector,
    closes: Closes,
    greetings: Arc<Semaphore>,
    shutdown: Shutdown,
}

impl Leases {
    /// Starts the tasks; they end at shutdown.
    pub(crate) fn start(store: Store, feed: Feed, metrics: &Metrics, shutdown: Shutdown) -> Self {
        let roster = Roster::default();
        let closes = Closes::default();
        let recall_soon = Arc::new(Notify::new());
        tokio::spawn(recalls::run(
            store.clone(),
            roster.clone(),
            recall_soon.clone(),
            metrics.clone(),
            shutdown.clone(),
        ));
        tokio::spawn(closes.clone().run(store.clone(), shutdown.clone()));
        upkeep::start(&store, &shutdown);
        Self {
            wants: WantCollector::start(store.clone(), recall_soon, metrics.clone()),
            beats: BeatCollector::start(store.clone(), roster.clone(), shutdown.clone()),
            greetings: Arc::new(Semaphore::new(GREETINGS)),
            store,
            feed,
            roster,
            closes,
            shutdown,
        }
    }

    /// Serves a process on its stream.
    pub(crate) fn serve(
        &self,
        names: Names,
        messages: Streaming<LeaseUp>,
    ) -> ReceiverStream<Answer> {
        let (outbox, answers) = mpsc::channel(ANSWERS_AHEAD);
        tokio::spawn(stream::serve(self.clone(), names, messages, outbox));
        ReceiverStream::new(answers)
    }

    /// Tells the store of a process.
    async fn greet(&self, hello: &wire::Greeting) -> Result<Welcome, Status> {
        let _turn = self.greetings.acquire().await;
        let greeted = self.store.hello(
            hello.boot_id,
            &hello.node,
            hello.epoch,
            hello.draining,
            &hello.holdings,
        );
        greeted.await.map_err(status::from_store)
    }
}

/// Waits for the store within bounds: no answer is an outage.
async fn in_time<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(STORE_TIME, work)
        .await
        .unwrap_or_else(|_| Err(Error::Unavailable("no answer within 3 s".to_owned())))
}
