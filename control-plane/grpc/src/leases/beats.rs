//! Stores the beats of every stream together, once a second; and, with or without beats, that beats
//! can be stored.

use std::collections::BTreeMap;
use std::time::Duration;

use control_plane_core::limit::Refusal;
use control_plane_core::nodes::BootId;
use control_plane_store::Store;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tonic::Status;

use super::roster::Roster;
use super::{Place, in_time, wire};
use crate::shutdown::Shutdown;

// Well below the time between the beats of a node.
const EVERY: Duration = Duration::from_secs(1);
const QUEUE: usize = 4096;

/// Hands beats to the task that stores them.
#[derive(Clone, Debug)]
pub(super) struct BeatCollector(mpsc::Sender<Waiting>);

struct Waiting {
    boot_id: BootId,
    epoch: u64,
    place: Place,
}

impl BeatCollector {
    /// Starts the task; it ends at shutdown.
    pub(super) fn start(store: Store, roster: Roster, shutdown: Shutdown) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(run(store, roster, waiting, shutdown));
        Self(queue)
    }

    /// Queues a beat; it is answered at its place.
    pub(super) async fn submit(
        &self,
        boot_id: BootId,
        epoch: u64,
        place: Place,
    ) -> Result<(), Status> {
        let waiting = Waiting {
            boot_id,
            epoch,
            place,
        };
        let queued = self.0.send(waiting).await;
        queued.map_err(|_| Status::unavailable("the control plane is stopping"))
    }
}

async fn run(
    store: Store,
    roster: Roster,
    mut queue: mpsc::Receiver<Waiting>,
    mut shutdown: Shutdown,
) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.requested() => return,
        }
        let mut beats = Vec::new();
        while let Ok(waiting) = queue.try_recv() {
            beats.push(waiting);
        }
        store_once(&store, &roster, beats).await;
    }
}

async fn store_once(store: &Store, roster: &Roster, waiting: Vec<Waiting>) {
    let beats: Vec<(BootId, u64)> = waiting.iter().map(|one| (one.boot_id, one.epoch)).collect();
    let stored = match in_time(store.beat(&beats)).await {
        Ok(stored) => stored,
        Err(error) => {
            tracing::debug!(%error, "beats could not be stored");
            for one in waiting {
                one.place.send(Ok(wire::unavailable(std::iter::empty())));
            }
            return;
        }
    };
    let refused: BTreeMap<BootId, Refusal> = stored.refused.into_iter().collect();
    for one in waiting {
        one.place.send(match refused.get(&one.boot_id) {
            Some(refusal) => wire::refusal(*refusal),
            None => Ok(wire::heard(one.epoch)),
        });
    }
    if stored.older_database {
        tracing::warn!("the database is older than it was: every process has to say Hello again");
        let status = Status::unavailable("the database is older than it was; say Hello again");
        roster.end_all(&status);
    }
}
