//! One node's subscription, over any number of streams.

use std::collections::BTreeMap;

use prost::Message as _;
use proto::config::v1::Checkpoint;

use super::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, Kind, Mode, Node, PushName, Refused,
    ResourceName, Resources, SINGLETON, Snapshot, Urgent,
    answer::answer,
    candidate::{Candidate, Cause, Refusals},
    checkpoint_to_string,
    push::Push,
    version::UnreadableVersion,
};

/// The node's side of the protocol in the documentation of [`super`]: decides what to send, what
/// to compile, and what the node runs on.
#[derive(Debug)]
pub struct Session {
    node: Node,
    current: Resources,
    /// `current` holds all that was published at its checkpoint.
    whole: bool,
    refused: Refusals,
    stream: Stream,
    candidate: Option<Candidate>,
}

/// What is forgotten with the stream.
#[derive(Debug, Default)]
struct Stream {
    last_nonce: u64,
    nonces: BTreeMap<Kind, String>,
    push: Option<Push>,
    /// What a delta may start from: named when the stream was opened, or accepted on it.
    base: Option<Checkpoint>,
    in_sync: bool,
}

/// What follows from an input.
#[derive(Debug, PartialEq)]
#[must_use]
pub struct Outcome {
    /// To be sent, in this order.
    pub requests: Vec<DeltaDiscoveryRequest>,
    /// To be done then.
    pub step: Step,
}

/// What the caller is to do next.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Hand over the next response.
    Wait,
    /// Compile [`Session::candidate`], then call [`Session::accept`] or [`Session::reject`].
    Compile,
    /// What was compiled last is in force: swap it in, store [`Session::snapshot`].
    Applied(Applied),
}

/// What has been applied.
#[derive(Debug, PartialEq)]
pub enum Applied {
    /// A push has come to its end.
    Checkpoint {
        /// What the node runs on from now on.
        checkpoint: Checkpoint,
        /// False if it is the one that was in force already, and nothing was compiled.
        changed: bool,
        /// Everything that is not in use as it was sent.
        refused: Vec<Refused>,
    },
    /// Changes that did not wait; the checkpoint is the same as before.
    Urgent(Vec<Urgent>),
}

/// The other side, or the caller, broke the protocol: end the stream and open another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("a response came while its predecessor was being compiled")]
    Compiling,
    #[error("response of type `{0}`, which was not subscribed")]
    UnknownType(String),
    #[error("response nonce `{0}` is not a number")]
    Nonce(String),
    #[error("response names no push")]
    Push(#[from] UnreadableVersion),
    #[error("response of push `{came}` inside push `{begun}`")]
    MixedPush { begun: PushName, came: PushName },
    #[error("push `{0}` starts from something this node does not have")]
    Base(PushName),
    #[error("push `{0}` does not end with its own checkpoint")]
    Checkpoint(PushName),
}

// === impl Session ===

impl Session {
    /// A session of a node that starts from what it has stored, if anything.
    #[must_use]
    pub fn new(node: Node, stored: Option<Snapshot>) -> Self {
        let Snapshot { resources, whole } = stored.unwrap_or_default();
        Self {
            node,
            current: resources,
            whole,
            refused: Refusals::new(),
            stream: Stream::default(),
            candidate: None,
        }
    }

    /// A stream is open: the requests to send first. Whatever the last stream left unfinished is
    /// dropped; the current config stays.
    pub fn connected(&mut self) -> Vec<DeltaDiscoveryRequest> {
        self.disconnected();
        self.stream.base = self.checkpoint().cloned().filter(|_| self.whole);
        let mut node = Some(self.node.clone());
        let request = |kind: Kind| DeltaDiscoveryRequest {
            node: node.take(),
            type_url: kind.type_url().to_owned(),
            resource_names_subscribe: vec!["*".to_owned()],
            initial_resource_versions: self.held_versions(kind),
            ..DeltaDiscoveryRequest::default()
        };
        Kind::ALL.into_iter().map(request).collect()
    }

    /// The stream has ended.
    pub fn disconnected(&mut self) {
        self.stream = Stream::default();
        self.candidate = None;
    }

    /// Takes a response in.
    ///
    /// # Errors
    /// If it breaks the protocol. The session is not usable until [`Self::connected`].
    pub fn on_response(&mut self, response: DeltaDiscoveryResponse) -> Result<Outcome, Violation> {
        if self.candidate.is_some() {
            return Err(Violation::Compiling);
        }
        let nonce: u64 = response
            .nonce
            .parse()
            .map_err(|_| Violation::Nonce(response.nonce.clone()))?;
        if nonce <= self.stream.last_nonce {
            return Ok(Outcome::wait());
        }
        self.stream.last_nonce = nonce;
        let kind = Kind::from_type_url(&response.type_url)
            .ok_or_else(|| Violation::UnknownType(response.type_url.clone()))?;
        self.stream.nonces.insert(kind, response.nonce.clone());

        let push = self.take_push(response.system_version_info.parse()?)?;
        if kind == Kind::Checkpoint {
            return self.end_push(push, &response);
        }
        Ok(self.stage(push, kind, response))
    }

    /// The config that waits to be compiled, after [`Step::Compile`].
    #[must_use]
    pub fn candidate(&self) -> Option<&Resources> {
        self.candidate.as_ref().map(|candidate| &candidate.set)
    }

    /// The candidate compiled: it is the current config from now on. Without a candidate, as after
    /// a reconnect, nothing happens.
    pub fn accept(&mut self) -> Outcome {
        let Some(candidate) = self.candidate.take() else {
            return Outcome::wait();
        };
        self.current = candidate.set;
        match candidate.cause {
            Cause::Push(push) => {
                self.refused = candidate.refused;
                self.finish(push, true)
            }
            Cause::Urgent(changes) => Outcome {
                requests: Vec::new(),
                step: Step::Applied(Applied::Urgent(changes)),
            },
        }
    }

    /// These resources of the candidate did not compile. The next candidate has their last good
    /// forms, or leaves them out; if that cannot help, the push is refused as a whole.
    pub fn reject(&mut self, rejected: &[Refused]) -> Outcome {
        let Some(mut candidate) = self.candidate.take() else {
            return Outcome::wait();
        };
        let stepped = candidate.step_back(&self.current, rejected);
        match &candidate.cause {
            Cause::Urgent(changes) if changes.is_empty() || !stepped => Outcome::wait(),
            Cause::Push(_) if !stepped => Outcome::send(self.checkpoint_answer(rejected)),
            Cause::Push(_) | Cause::Urgent(_) => {
                self.candidate = Some(candidate);
                Outcome {
                    requests: Vec::new(),
                    step: Step::Compile,
                }
            }
        }
    }

    /// The config in force.
    #[must_use]
    pub fn current(&self) -> &Resources {
        &self.current
    }

    /// The checkpoint in force; `None` before the first.
    #[must_use]
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.current.checkpoint.as_ref()
    }

    /// True from the first push that this stream brought to its end.
    #[must_use]
    pub fn in_sync(&self) -> bool {
        self.stream.in_sync
    }

    /// Everything that is not in use as it was sent.
    #[must_use]
    pub fn refused(&self) -> Vec<Refused> {
        let refused = |(resource, refusal): (&ResourceName, &super::candidate::Refusal)| Refused {
            resource: resource.clone(),
            reason: refusal.reason.clone(),
        };
        self.refused.iter().map(refused).collect()
    }

    /// What to store, so that the next process starts from it.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            resources: self.current.clone(),
            whole: self.whole,
        }
    }

    fn held_versions(&self, kind: Kind) -> BTreeMap<String, String> {
        self.stream
            .base
            .iter()
            .filter(|_| kind == Kind::Checkpoint)
            .map(|base| (SINGLETON.to_owned(), checkpoint_to_string(base)))
            .collect()
    }

    /// The push that a response belongs to: the one that has begun, or a new one.
    fn take_push(&mut self, came: PushName) -> Result<Push, Violation> {
        if let Some(push) = self.stream.push.take() {
            if push.name != came {
                return Err(Violation::MixedPush {
                    begun: push.name,
                    came,
                });
            }
            return Ok(push);
        }
        if let Mode::Delta { from } = came.mode {
            let known =
                |base: &Checkpoint| base.nonce == came.checkpoint.nonce && from <= base.version;
            if !self.stream.base.as_ref().is_some_and(known) {
                return Err(Violation::Base(came));
            }
        }
        let stale = self.checkpoint().is_some_and(|held| {
            held.nonce == came.checkpoint.nonce && came.checkpoint.version < held.version
        });
        Ok(Push::new(came, stale))
    }

    fn stage(&mut self, mut push: Push, kind: Kind, response: DeltaDiscoveryResponse) -> Outcome {
        push.kinds.insert(kind);
        let mut changes = Vec::new();
        if !push.stale {
            let names = push.stage(kind, response);
            changes = names
                .iter()
                .filter_map(|name| Urgent::of(&self.current, name, push.staged.get(name)?))
                .collect();
        }
        self.stream.push = Some(push);
        if changes.is_empty() {
            return Outcome::wait();
        }
        self.candidate = Some(Candidate::of_urgent(&self.current, changes));
        Outcome {
            requests: Vec::new(),
            step: Step::Compile,
        }
    }

    fn end_push(
        &mut self,
        push: Push,
        response: &DeltaDiscoveryResponse,
    ) -> Result<Outcome, Violation> {
        if carried_checkpoint(response).as_ref() != Some(&push.name.checkpoint) {
            return Err(Violation::Checkpoint(push.name));
        }
        if push.stale {
            return Ok(Outcome::send(self.stale_answer(&push.name.checkpoint)));
        }
        let nothing_new = push.staged.is_empty() && push.name.mode != Mode::Full;
        if nothing_new && self.checkpoint() == Some(&push.name.checkpoint) {
            return Ok(self.finish(push, false));
        }
        self.candidate = Some(Candidate::of_push(&self.current, &self.refused, push));
        Ok(Outcome {
            requests: Vec::new(),
            step: Step::Compile,
        })
    }

    fn finish(&mut self, push: Push, changed: bool) -> Outcome {
        let checkpoint = push.name.checkpoint;
        let refused = self.refused();
        let mut requests = Vec::new();
        for kind in Kind::ALL {
            let of_kind: Vec<Refused> = refused
                .iter()
                .filter(|refused| refused.resource.kind == kind)
                .cloned()
                .collect();
            if push.kinds.contains(&kind) || !of_kind.is_empty() {
                requests.push(answer(kind, self.nonce_of(kind), &of_kind));
            }
        }
        requests.push(self.checkpoint_answer(&[]));
        self.whole = refused.is_empty();
        self.stream.base = Some(checkpoint.clone());
        self.stream.in_sync = true;
        let applied = Applied::Checkpoint {
            checkpoint,
            changed,
            refused,
        };
        Outcome {
            requests,
            step: Step::Applied(applied),
        }
    }

    fn stale_answer(&self, came: &Checkpoint) -> DeltaDiscoveryRequest {
        let held = self
            .checkpoint()
            .map(|held| held.version)
            .unwrap_or_default();
        self.checkpoint_answer(&[Refused {
            resource: ResourceName::new(Kind::Checkpoint, SINGLETON),
            reason: format!(
                "version {} is behind {held}, which this node runs on",
                came.version
            ),
        }])
    }

    fn checkpoint_answer(&self, refused: &[Refused]) -> DeltaDiscoveryRequest {
        answer(Kind::Checkpoint, self.nonce_of(Kind::Checkpoint), refused)
    }

    fn nonce_of(&self, kind: Kind) -> String {
        self.stream.nonces.get(&kind).cloned().unwrap_or_default()
    }
}

fn carried_checkpoint(response: &DeltaDiscoveryResponse) -> Option<Checkpoint> {
    let [resource] = response.resources.as_slice() else {
        return None;
    };
    let any = resource.resource.as_ref()?;
    if resource.name != SINGLETON || any.type_url != Kind::Checkpoint.type_url() {
        return None;
    }
    Checkpoint::decode(any.value.as_slice()).ok()
}

// === impl Outcome ===

impl Outcome {
    fn wait() -> Self {
        Self {
            requests: Vec::new(),
            step: Step::Wait,
        }
    }

    fn send(request: DeltaDiscoveryRequest) -> Self {
        Self {
            requests: vec![request],
            step: Step::Wait,
        }
    }
}

#[cfg(test)]
mod tests;
