//! The config stream: delta ADS, compiled and published as checkpoints come.

use std::time::Duration;

use filter_agent::{
    Backoff,
    ads::{
        Applied, DeltaDiscoveryRequest, DeltaDiscoveryResponse, Kind, METHOD_PATH, Outcome,
        Refused, ResourceName, Session, Step,
    },
};
use filter_core::config::{Compiled, Fault, compile};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Streaming, client::Grpc, codegen::http::uri::PathAndQuery};

use super::{Agent, AgentError, channel, clusters::ClusterFile};
use crate::{clock, entropy, log, published};

/// Largest message taken in: a push is cut into responses of a few MiB by the control plane.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;
/// Requests that may wait to be sent.
const OUTBOX: usize = 64;
/// How long a config waits for Envoy to take up its new clusters.
const CLUSTERS_DEADLINE: Duration = Duration::from_secs(2);
/// How long a starting Envoy takes to see a renamed file, with room to spare.
const UNANNOUNCED_LAG: Duration = Duration::from_millis(50);
/// Workers learn of a cluster up to some milliseconds after the main thread announced it.
const WORKERS_LAG: Duration = Duration::from_millis(10);

/// The config side of the agent.
pub(super) struct ConfigStream<'a> {
    pub(super) agent: &'a Agent,
    pub(super) session: Session,
    pub(super) clusters: ClusterFile,
}

impl ConfigStream<'_> {
    /// Keeps a stream open for ever.
    pub(super) async fn run(mut self) {
        let mut attempt = 0;
        loop {
            let ended = self.serve().await;
            attempt = if self.session.in_sync() {
                0
            } else {
                attempt + 1
            };
            self.session.disconnected();
            published::note_disconnected(self.agent.max_stale_us.get());
            let wait_ms = Backoff::PATIENT.wait_ms(attempt, u64::from_ne_bytes(entropy::system()));
            log::warn(&format!(
                "config stream ended, again in {wait_ms} ms: {ended}"
            ));
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    }

    /// One stream, to its end.
    async fn serve(&mut self) -> AgentError {
        let (outbox, requests) = mpsc::channel(OUTBOX);
        let mut responses = match self.open(requests).await {
            Ok(responses) => responses,
            Err(error) => return error,
        };
        for request in self.session.connected() {
            if outbox.send(request).await.is_err() {
                return AgentError::Closed;
            }
        }
        let mut tidying = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                message = responses.message() => match message {
                    Ok(Some(response)) => {
                        if let Err(error) = self.take(response, &outbox).await {
                            return error;
                        }
                    }
                    Ok(None) => return AgentError::Closed,
                    Err(status) => return status.into(),
                },
                _ = tidying.tick() => self.tidy(),
            }
        }
    }

    fn tidy(&mut self) {
        published::sweep();
        if let Err(error) = self.clusters.expire(clock::mono_us()) {
            log::error(&format!("clusters file: {error}"));
        }
    }

    async fn open(
        &self,
        requests: mpsc::Receiver<DeltaDiscoveryRequest>,
    ) -> Result<Streaming<DeltaDiscoveryResponse>, AgentError> {
        let mut request = Request::new(ReceiverStream::new(requests));
        channel::authorize(&self.agent.settings, &mut request).await?;
        if let Ok(boot) = self.agent.boot.to_string().parse() {
            request.metadata_mut().insert("x-turnpike-boot-id", boot);
        }
        let mut grpc =
            Grpc::new(self.agent.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        grpc.ready()
            .await
            .map_err(|error| AgentError::Unreachable(channel::cause(&error)))?;
        let codec = tonic_prost::ProstCodec::default();
        let path = PathAndQuery::from_static(METHOD_PATH);
        Ok(grpc.streaming(request, path, codec).await?.into_inner())
    }

    /// Takes one response in and follows it to its end: send, compile, publish, answer.
    async fn take(
        &mut self,
        response: DeltaDiscoveryResponse,
        outbox: &mpsc::Sender<DeltaDiscoveryRequest>,
    ) -> Result<(), AgentError> {
        let mut outcome = self.session.on_response(response)?;
        let mut compiled = None;
        loop {
            let Outcome { requests, step } = outcome;
            match step {
                Step::Compile => (compiled, outcome) = self.compile(),
                Step::Applied(applied) => {
                    self.apply(&applied, compiled.take()).await;
                    return send(outbox, requests).await;
                }
                Step::Wait => return send(outbox, requests).await,
            }
        }
    }

    fn compile(&mut self) -> (Option<Compiled>, Outcome) {
        let Some(candidate) = self.session.candidate() else {
            return (None, self.session.accept());
        };
        let (compiled, faults) = compile(candidate);
        if faults.is_empty() {
            return (Some(compiled), self.session.accept());
        }
        let refused: Vec<Refused> = faults.iter().map(refused).collect();
        for refused in &refused {
            log::warn(&format!(
                "config refused: {}: {}",
                refused.resource, refused.reason
            ));
        }
        (None, self.session.reject(&refused))
    }

    /// New clusters first, then the config that names them, then the disk.
    async fn apply(&mut self, applied: &Applied, compiled: Option<Compiled>) {
        if let Some(compiled) = compiled {
            self.agent
                .max_stale_us
                .set(u64::from(compiled.settings().max_stale_s) * 1_000_000);
            let new = self
                .clusters
                .update(self.session.current(), clock::mono_us());
            match new {
                Ok(new) if new.is_empty() => {}
                Ok(new) => self.wait_for_clusters(&new).await,
                Err(error) => log::error(&format!("clusters file: {error}")),
            }
            published::publish(compiled);
            if let Err(error) = self.agent.snapshot_file.store(self.session.snapshot()) {
                log::error(&error.to_string());
            }
        }
        if let Applied::Checkpoint { checkpoint, .. } = applied {
            published::note_in_sync();
            log::debug(&format!("config {} applied", checkpoint.version));
            self.agent.announce_ready();
        }
    }

    async fn wait_for_clusters(&self, new: &std::collections::BTreeSet<String>) {
        let mut known = self.agent.known_clusters.clone();
        if !known.borrow().announced {
            // What Envoy reads before it is initialized it never announces.
            tokio::time::sleep(UNANNOUNCED_LAG).await;
            return;
        }
        let arrived = known.wait_for(|known| new.is_subset(&known.names));
        if tokio::time::timeout(CLUSTERS_DEADLINE, arrived)
            .await
            .is_err()
        {
            log::warn("Envoy has not taken up every new cluster yet; their targets are skipped");
            return;
        }
        tokio::time::sleep(WORKERS_LAG).await;
    }
}

async fn send(
    outbox: &mpsc::Sender<DeltaDiscoveryRequest>,
    requests: Vec<DeltaDiscoveryRequest>,
) -> Result<(), AgentError> {
    for request in requests {
        outbox.send(request).await.map_err(|_| AgentError::Closed)?;
    }
    Ok(())
}

fn refused(fault: &Fault) -> Refused {
    let kind = Kind::from(fault.kind);
    Refused {
        resource: ResourceName::new(kind, fault.name.clone()),
        reason: if fault.place.is_empty() {
            fault.reason.clone()
        } else {
            format!("{}: {}", fault.place, fault.reason)
        },
    }
}
