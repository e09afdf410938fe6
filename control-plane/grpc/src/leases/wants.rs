//! Answers the wants of every stream together.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use control_plane_core::limit::{Answer, DenyKind, Refusal};
use control_plane_core::nodes::BootId;
use control_plane_store::{Error, HolderWants, Store};
use proto::metering::v1::{Deny, LeaseDown};
use tokio::sync::mpsc;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use super::{Place, in_time, wire};
use crate::metrics::{LeaseOutcome, Metrics};
use crate::status;

// A transaction takes what came within this time of its first want, unless a request waits for one
// of them: then it takes what is there.
const GATHER_TIME: Duration = Duration::from_millis(20);
const GATHER_WANTS: usize = 2000;
// Wants that may wait over all streams. Each is a few hundred bytes.
const WAITING_WANTS: u32 = 50_000;
const QUEUE: usize = 1024;

/// Hands wants to the task that has them answered.
#[derive(Clone, Debug)]
pub(super) struct WantCollector {
    queue: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

/// What one message wants.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) holder: HolderWants,
    /// Answers to those that are not for the store.
    pub(super) denied: Vec<Deny>,
}

struct Waiting {
    asked: Asked,
    place: Place,
    /// Given back when they are answered.
    room: OwnedSemaphorePermit,
}

/// Wants that go into one transaction. The store wants each process once, so its messages are put
/// together.
#[derive(Default)]
struct Batch {
    holders: Vec<HolderWants>,
    of_boot: BTreeMap<BootId, usize>,
    parts: Vec<Part>,
    wants: usize,
    is_urgent: bool,
}

/// Which of a batch's wants are a message's, and where its answer goes.
struct Part {
    holder: usize,
    wants: usize,
    denied: Vec<Deny>,
    place: Place,
    room: OwnedSemaphorePermit,
}

/// What became of the wants of one process.
enum Outcome {
    Answered(VecDeque<Answer>),
    Refused(Refusal),
    /// No verdict.
    Unavailable,
    Failed(Status),
}

impl WantCollector {
    /// Starts the task; it ends with the last clone. `recall_soon` is told when a request waits for
    /// what others hold.
    pub(super) fn start(store: Store, recall_soon: Arc<Notify>, metrics: Metrics) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(run(store, waiting, recall_soon, metrics));
        Self {
            queue,
            room: Arc::new(Semaphore::new(WAITING_WANTS as usize)),
        }
    }

    /// Waits for room, then queues a message's wants; they are answered at its place.
    pub(super) async fn submit(&self, asked: Asked, place: Place) -> Result<(), Status> {
        let stopping = || Status::unavailable("the control plane is stopping");
        let wants = u32::try_from(asked.holder.wants.len()).unwrap_or(WAITING_WANTS);
        let room = self.room.clone().acquire_many_owned(wants).await;
        let waiting = Waiting {
            asked,
            place,
            room: room.map_err(|_| stopping())?,
        };
        self.queue.send(waiting).await.map_err(|_| stopping())
    }
}

async fn run(
    store: Store,
    mut queue: mpsc::Receiver<Waiting>,
    recall_soon: Arc<Notify>,
    metrics: Metrics,
) {
    let mut put_off = VecDeque::new();
    loop {
        let first = match put_off.pop_front() {
            Some(first) => first,
            None => match queue.recv().await {
                Some(first) => first,
                None => return,
            },
        };
        let batch = gather(first, &mut put_off, &mut queue).await;
        let outcomes = ask(&store, &batch.holders).await;
        if outcomes.iter().any(is_contended) {
            recall_soon.notify_one();
        }
        for (holder, outcome) in batch.holders.iter().zip(&outcomes) {
            count(&metrics, holder, outcome);
        }
        batch.answer(outcomes);
    }
}

async fn gather(
    first: Waiting,
    put_off: &mut VecDeque<Waiting>,
    queue: &mut mpsc::Receiver<Waiting>,
) -> Batch {
    let mut batch = Batch::default();
    let earlier = std::iter::once(first).chain(std::mem::take(put_off));
    for waiting in earlier {
        batch.take(waiting, put_off);
    }
    let until = Instant::now() + GATHER_TIME;
    while batch.wants < GATHER_WANTS {
        let next = if batch.is_urgent {
            queue.try_recv().ok()
        } else {
            timeout_at(until, queue.recv()).await.ok().flatten()
        };
        let Some(waiting) = next else {
            break;
        };
        batch.take(waiting, put_off);
    }
    batch
}

/// Asks the store; one process whose wants it fails at does not hold up the others.
async fn ask(store: &Store, holders: &[HolderWants]) -> Vec<Outcome> {
    match ask_at_once(store, holders).await {
        ControlFlow::Break(outcomes) => outcomes,
        ControlFlow::Continue(error) if holders.len() < 2 => {
            vec![Outcome::Failed(status::from_store(error))]
        }
        ControlFlow::Continue(_) => {
            let mut outcomes = Vec::with_capacity(holders.len());
            for holder in holders {
                let alone = ask_at_once(store, std::slice::from_ref(holder)).await;
                match alone {
                    ControlFlow::Break(outcome) => outcomes.extend(outcome),
                    ControlFlow::Continue(error) => {
                        outcomes.push(Outcome::Failed(status::from_store(error)));
                    }
                }
            }
            outcomes
        }
    }
}

async fn ask_at_once(store: &Store, holders: &[HolderWants]) -> ControlFlow<Vec<Outcome>, Error> {
    match in_time(store.want(holders)).await {
        Ok(answers) => {
            let outcomes = answers.into_iter().map(|answer| match answer {
                Ok(answers) => Outcome::Answered(answers.into()),
                Err(refusal) => Outcome::Refused(refusal),
            });
            ControlFlow::Break(outcomes.collect())
        }
        Err(Error::Unavailable(reason)) => {
            tracing::debug!(%reason, "wants are not answered since postgres is away");
            ControlFlow::Break(holders.iter().map(|_| Outcome::Unavailable).collect())
        }
        Err(error) => ControlFlow::Continue(error),
    }
}

fn count(metrics: &Metrics, holder: &HolderWants, outcome: &Outcome) {
    let outcome = match outcome {
        Outcome::Answered(answers) => {
            for answer in answers {
                metrics.want_answered(answer);
            }
            return;
        }
        Outcome::Refused(_) => LeaseOutcome::Fenced,
        Outcome::Unavailable => LeaseOutcome::Unavailable,
        Outcome::Failed(_) => LeaseOutcome::Failed,
    };
    metrics.wants_answered(outcome, holder.wants.len());
}

fn is_contended(outcome: &Outcome) -> bool {
    let Outcome::Answered(answers) = outcome else {
        return false;
    };
    let mut denials = answers.iter().filter_map(|answer| answer.deny.as_ref());
    denials.any(|deny| deny.kind == DenyKind::Reserved)
}

impl Batch {
    /// Takes a message's wants in, or puts them off: those of another epoch of a process that is
    /// here already.
    fn take(&mut self, waiting: Waiting, put_off: &mut VecDeque<Waiting>) {
        let asked = &waiting.asked.holder;
        let known = self.of_boot.get(&asked.boot_id).copied();
        let epoch = known
            .and_then(|at| self.holders.get(at))
            .map(|one| one.epoch);
        if epoch.is_some_and(|epoch| epoch != asked.epoch) {
            put_off.push_back(waiting);
            return;
        }
        let Waiting { asked, place, room } = waiting;
        let Asked { holder, denied } = asked;
        let wants = holder.wants.len();
        self.wants += wants;
        self.is_urgent |= holder.wants.iter().any(|want| want.urgent);
        let at = known.unwrap_or(self.holders.len());
        match self.holders.get_mut(at) {
            Some(there) => there.wants.extend(holder.wants),
            None => {
                self.of_boot.insert(holder.boot_id, at);
                self.holders.push(holder);
            }
        }
        self.parts.push(Part {
            holder: at,
            wants,
            denied,
            place,
            room,
        });
    }

    fn answer(self, mut outcomes: Vec<Outcome>) {
        let mut said: Vec<usize> = vec![0; self.holders.len()];
        for part in self.parts {
            let answer = match (self.holders.get(part.holder), outcomes.get_mut(part.holder)) {
                (Some(holder), Some(outcome)) => {
                    let from = said.get(part.holder).copied().unwrap_or(0);
                    if let Some(said) = said.get_mut(part.holder) {
                        *said = from + part.wants;
                    }
                    part_of(outcome, holder, from, part.wants, part.denied)
                }
                _ => Err(Status::internal("a want was not answered")),
            };
            part.place.send(answer);
            drop(part.room);
        }
    }
}

/// The answer to a message, whose wants are `wants` of its process's, from `from` on.
fn part_of(
    outcome: &mut Outcome,
    holder: &HolderWants,
    from: usize,
    wants: usize,
    denied: Vec<Deny>,
) -> Result<LeaseDown, Status> {
    match outcome {
        Outcome::Answered(answers) => {
            let own = answers.drain(..wants.min(answers.len()));
            Ok(wire::grants(holder.epoch, own, denied))
        }
        Outcome::Refused(refusal) => wire::refusal(*refusal),
        Outcome::Unavailable => {
            let own = holder.wants.iter().skip(from).take(wants);
            Ok(wire::unavailable(own.map(|want| want.bucket.clone())))
        }
        Outcome::Failed(status) => Err(status.clone()),
    }
}

#[cfg(test)]
mod tests;
