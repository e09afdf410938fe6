//! Commits the deliveries of every stream together.

use std::sync::Arc;
use std::time::Duration;

use control_plane_core::ledger::{Content, Delivery};
use control_plane_store::{Error, Store};
use proto::metering::v1::UsageDown;
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use super::wire;
use crate::status;

// A transaction takes what came within this time of its first delivery, up to so many records.
const GATHER_TIME: Duration = Duration::from_millis(20);
const GATHER_RECORDS: usize = 2000;
// What may wait for its commit over all streams, in KiB.
const WAITING_KIB: u32 = 64 * 1024;
const QUEUE: usize = 1024;

/// Hands deliveries to the task that commits them.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    queue: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

struct Waiting {
    delivery: Delivery,
    /// The answer's place in its stream's outbox.
    place: OwnedPermit<Result<UsageDown, Status>>,
    /// Given back when the delivery is done with.
    _room: OwnedSemaphorePermit,
}

impl Collector {
    /// Starts the task; it ends with the last clone.
    pub(crate) fn start(store: Store) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(run(store, waiting));
        Self {
            queue,
            room: Arc::new(Semaphore::new(WAITING_KIB as usize)),
        }
    }

    /// Waits for room, then queues a delivery; it is answered at its place after the commit, or
    /// with the status that ends its stream.
    pub(super) async fn submit(
        &self,
        delivery: Delivery,
        place: OwnedPermit<Result<UsageDown, Status>>,
    ) -> Result<(), Status> {
        let stopping = || Status::unavailable("the control plane is stopping");
        let room = self
            .room
            .clone()
            .acquire_many_owned(size_kib(&delivery))
            .await
            .map_err(|_| stopping())?;
        self.queue
            .send(Waiting {
                delivery,
                place,
                _room: room,
            })
            .await
            .map_err(|_| stopping())
    }
}

fn size_kib(delivery: &Delivery) -> u32 {
    let bytes: usize = match &delivery.content {
        Content::Records { records, .. } => records.iter().map(|record| record.len() + 64).sum(),
        Content::Gap { .. } => 0,
    };
    // Never more than there is, or the largest would wait for ever.
    u32::try_from(bytes / 1024 + 1).map_or(WAITING_KIB, |kib| kib.min(WAITING_KIB))
}

async fn run(store: Store, mut queue: mpsc::Receiver<Waiting>) {
    while let Some(first) = queue.recv().await {
        let gathered = gather(first, &mut queue).await;
        let (deliveries, places): (Vec<_>, Vec<_>) = gathered
            .into_iter()
            .map(|waiting| (waiting.delivery, (waiting.place, waiting._room)))
            .unzip();
        match store.apply_usage(deliveries.clone()).await {
            Ok(answers) => {
                for ((place, _room), answer) in places.into_iter().zip(answers) {
                    place.send(Ok(wire::answer(answer)));
                }
            }
            Err(error @ Error::Unavailable(_)) => {
                let status = status::from_store(error);
                for (place, _room) in places {
                    place.send(Err(status.clone()));
                }
            }
            // One delivery that cannot be stored must not hold up the others.
            Err(_) => {
                for ((place, _room), delivery) in places.into_iter().zip(deliveries) {
                    place.send(alone(&store, delivery).await);
                }
            }
        }
    }
}

async fn alone(store: &Store, delivery: Delivery) -> Result<UsageDown, Status> {
    let answers = store
        .apply_usage(vec![delivery])
        .await
        .map_err(status::from_store)?;
    answers
        .into_iter()
        .next()
        .map(wire::answer)
        .ok_or_else(|| Status::internal("a delivery was not answered"))
}

async fn gather(first: Waiting, queue: &mut mpsc::Receiver<Waiting>) -> Vec<Waiting> {
    let mut records = count(&first.delivery);
    let mut gathered = vec![first];
    let until = tokio::time::Instant::now() + GATHER_TIME;
    while records < GATHER_RECORDS {
        match tokio::time::timeout_at(until, queue.recv()).await {
            Ok(Some(waiting)) => {
                records += count(&waiting.delivery);
                gathered.push(waiting);
            }
            Ok(None) | Err(_) => break,
        }
    }
    gathered
}

fn count(delivery: &Delivery) -> usize {
    match &delivery.content {
        Content::Records { records, .. } => records.len(),
        Content::Gap { .. } => 1,
    }
}
