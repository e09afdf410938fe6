//! One node's stream, from its opening to its end.

use std::sync::Arc;
use std::time::Duration;

use control_plane_core::published::{Delta, Published};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};
use filter_agent::ads::Mode;
use proto::config::v1::Checkpoint;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::Ads;
use super::push::Push;
use super::transcript::{Answer, Answers, Opener, Opening, Violation};
use crate::fleet::{Process, Seat};
use crate::node_certificate::Names;

// A node that takes longer than this to say who it is, or to take and compile a push, is cut; it
// comes back and is served from where it stands.
const OPENING_TIME: Duration = Duration::from_secs(10);
const PUSH_TIME: Duration = Duration::from_secs(60);

/// Why a stream ends.
enum End {
    /// The node went away: nobody is there to be told.
    NodeLeft,
    Told(Status),
}

impl From<Violation> for End {
    fn from(violation: Violation) -> Self {
        Self::Told(Status::invalid_argument(violation.to_string()))
    }
}

/// A node's stream.
pub(super) struct NodeStream {
    service: Ads,
    names: Names,
    requests: Streaming<DeltaDiscoveryRequest>,
    responses: mpsc::Sender<Result<DeltaDiscoveryResponse, Status>>,
    nonce: u64,
}

impl NodeStream {
    pub(super) fn new(
        service: Ads,
        names: Names,
        requests: Streaming<DeltaDiscoveryRequest>,
        responses: mpsc::Sender<Result<DeltaDiscoveryResponse, Status>>,
    ) -> Self {
        Self {
            service,
            names,
            requests,
            responses,
            nonce: 0,
        }
    }

    /// Serves the node until it leaves, breaks the protocol, or the process is to stop.
    pub(super) async fn serve(mut self, process: Process) {
        let mut shutdown = self.service.shutdown.clone();
        let responses = self.responses.clone();
        let end = tokio::select! {
            end = self.follow(process) => end,
            () = shutdown.requested() => {
                End::Told(Status::unavailable("the control plane is stopping"))
            }
        };
        if let End::Told(status) = end {
            // The outbox may be full: the node is then not waited for.
            if responses.try_send(Err(status)).is_err() {
                tracing::debug!("a node's stream ended without a word");
            }
        }
    }

    async fn follow(&mut self, process: Process) -> End {
        let opening = match timeout(OPENING_TIME, self.open()).await {
            Ok(Ok(opening)) => opening,
            Ok(Err(end)) => return end,
            Err(_) => return End::Told(Status::deadline_exceeded("the opening took too long")),
        };
        if let Err(status) = self.names.check(&opening.name) {
            tracing::warn!(node = %opening.name, reason = status.message(), "a node is refused");
            return End::Told(status);
        }
        let mut feed = self.service.feed.watch();
        let held = opening
            .checkpoint
            .filter(|held| is_known(&feed.borrow(), held));
        let version = held.as_ref().map_or(0, |held| held.version);
        let seat = self
            .service
            .fleet
            .connect(process, &opening.name, &opening.version, version);
        tracing::info!(node = %opening.name, version, "node connected");
        let end = self.push_changes(&seat, &mut feed, held).await;
        let reason = match &end {
            End::NodeLeft => "it left",
            End::Told(status) => status.message(),
        };
        tracing::info!(node = %opening.name, reason, "node disconnected");
        end
    }

    async fn open(&mut self) -> Result<Opening, End> {
        let mut opener = Opener::default();
        loop {
            if let Some(opening) = opener.hear(self.hear().await?)? {
                return Ok(opening);
            }
        }
    }

    async fn push_changes(
        &mut self,
        seat: &Seat,
        feed: &mut watch::Receiver<Arc<Published>>,
        mut held: Option<Checkpoint>,
    ) -> End {
        let mut sent = None;
        loop {
            let published = match self.next_version(feed, sent.as_ref()).await {
                Ok(published) => published,
                Err(end) => return end,
            };
            let (mode, delta) = changes_since(&published, held.as_ref());
            let checkpoint = Checkpoint {
                version: delta.version,
                nonce: published.nonce().to_owned(),
            };
            let push = Push::new(mode, checkpoint.clone(), delta.changes);
            sent = Some(checkpoint.clone());
            self.service.metrics.push_begun();
            let answer = match timeout(PUSH_TIME, self.push(push)).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(end)) => return end,
                Err(_) => {
                    return End::Told(Status::deadline_exceeded("the push was not answered"));
                }
            };
            let refused = answer.rejected.len();
            self.service.metrics.push_answered(answer.accepted, refused);
            for refused in &answer.rejected {
                tracing::warn!(version = checkpoint.version, %refused, "a node refused a resource");
            }
            if answer.accepted {
                held = Some(checkpoint);
            }
            let version = held.as_ref().map_or(0, |held| held.version);
            seat.ack(version, answer.rejected);
        }
    }

    /// Waits for a config that has not been sent; meanwhile the node has nothing to answer.
    async fn next_version(
        &mut self,
        feed: &mut watch::Receiver<Arc<Published>>,
        sent: Option<&Checkpoint>,
    ) -> Result<Arc<Published>, End> {
        loop {
            tokio::select! {
                changed = feed.changed() => {
                    if changed.is_err() {
                        return Err(End::Told(Status::unavailable("the config is not followed")));
                    }
                    let published = feed.borrow_and_update().clone();
                    let is_sent = sent.is_some_and(|sent| {
                        sent.version == published.version() && sent.nonce == published.nonce()
                    });
                    if !is_sent {
                        return Ok(published);
                    }
                }
                request = self.requests.message() => heard(request).map(drop)?,
            }
        }
    }

    async fn push(&mut self, mut push: Push) -> Result<Answer, End> {
        loop {
            self.nonce += 1;
            let Some(response) = push.next(self.nonce) else {
                break;
            };
            self.responses
                .send(Ok(response))
                .await
                .map_err(|_| End::NodeLeft)?;
        }
        // The last nonce that was taken belongs to no response.
        self.nonce -= 1;
        let mut answers = Answers::new(self.nonce);
        loop {
            if let Some(answer) = answers.hear(&self.hear().await?)? {
                return Ok(answer);
            }
        }
    }

    async fn hear(&mut self) -> Result<DeltaDiscoveryRequest, End> {
        heard(self.requests.message().await)
    }
}

fn heard(
    request: Result<Option<DeltaDiscoveryRequest>, Status>,
) -> Result<DeltaDiscoveryRequest, End> {
    request.ok().flatten().ok_or(End::NodeLeft)
}

fn is_known(published: &Published, held: &Checkpoint) -> bool {
    held.nonce == published.nonce() && published.delta_since(held.version).is_some()
}

// In another lineage no version that the node holds means anything.
fn changes_since(published: &Published, held: Option<&Checkpoint>) -> (Mode, Delta) {
    let known = held
        .filter(|held| held.nonce == published.nonce())
        .and_then(|held| Some((held.version, published.delta_since(held.version)?)));
    match known {
        Some((from, delta)) => (Mode::Delta { from }, delta),
        None => (Mode::Full, published.full()),
    }
}
