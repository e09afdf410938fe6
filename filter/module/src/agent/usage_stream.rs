//! The Usage stream: brings the spool of this process, and of dead ones, to the ledger.

use std::{sync::Arc, time::Duration};

use filter_agent::{
    backoff_ms,
    spool::{Retention, adopt, boots},
    usage::{Session, Window},
};
use proto::metering::v1::{UsageDown, UsageUp, metering_client::MeteringClient};
use tokio::{
    sync::mpsc,
    time::{Instant, interval},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Streaming};

use super::{Agent, AgentError, channel, disk::StateDir};
use crate::{clock, entropy, log, node::ThisNode};

/// How often the shards are looked at for new records.
const POLL: Duration = Duration::from_millis(200);
/// How often directories of dead processes are looked for, and old segments removed.
const CARE: Duration = Duration::from_secs(30);
/// Messages that may wait to be sent; the session's window is what bounds them.
const OUTBOX: usize = 64;

/// The usage side of the agent.
pub(super) struct UsageStream<'a> {
    agent: &'a Agent,
    node: Arc<ThisNode>,
    session: Session<StateDir>,
    cared: Option<Instant>,
}

/// One open stream.
struct Open {
    outbox: mpsc::Sender<UsageUp>,
    inbound: Streaming<UsageDown>,
}

impl<'a> UsageStream<'a> {
    pub(super) fn new(agent: &'a Agent, node: Arc<ThisNode>, shards: u32) -> Self {
        let mut session = Session::new(node.name.clone(), Window::default());
        for shard in 0..shards {
            session.add(node.reader(shard));
        }
        Self {
            agent,
            node,
            session,
            cared: None,
        }
    }

    /// Keeps a stream open for ever.
    pub(super) async fn run(&mut self) {
        let mut attempt = 0;
        loop {
            let (progressed, ended) = self.serve().await;
            attempt = if progressed { 0 } else { attempt + 1 };
            let wait_ms = backoff_ms(attempt, u64::from_ne_bytes(entropy::system()));
            log::info(&format!(
                "usage stream ended, again in {wait_ms} ms: {ended}"
            ));
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    }

    /// Sends what is in the spool, over a stream of its own.
    pub(super) async fn flush(&mut self) {
        let Ok(mut open) = self.open().await else {
            return;
        };
        loop {
            if self.pump(&open.outbox).await.is_err() || self.session.is_drained() {
                return;
            }
            match open.inbound.message().await {
                Ok(Some(down)) => self.session.on_down(down),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// One stream, to its end; whether the control plane said anything on it.
    async fn serve(&mut self) -> (bool, AgentError) {
        let mut open = match self.open().await {
            Ok(open) => open,
            Err(error) => return (false, error),
        };
        let mut progressed = false;
        let mut poll = interval(POLL);
        loop {
            self.care();
            if let Err(error) = self.pump(&open.outbox).await {
                return (progressed, error);
            }
            tokio::select! {
                message = open.inbound.message() => match message {
                    Ok(Some(down)) => {
                        progressed = true;
                        self.session.on_down(down);
                    }
                    Ok(None) => return (progressed, AgentError::Closed),
                    Err(status) => return (progressed, status.into()),
                },
                _ = poll.tick() => {}
            }
        }
    }

    async fn open(&mut self) -> Result<Open, AgentError> {
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let mut request = Request::new(ReceiverStream::new(messages));
        let token = channel::authorization(&self.agent.settings.node_token_file).await?;
        request.metadata_mut().insert("authorization", token);
        self.session.connected();
        let mut client = MeteringClient::new(self.agent.channel.clone());
        // Some servers answer a stream only when the first message has come.
        if let Some(first) = self.session.next_up() {
            outbox.send(first).await.map_err(|_| AgentError::Closed)?;
        }
        let inbound = client.usage(request).await?.into_inner();
        Ok(Open { outbox, inbound })
    }

    async fn pump(&mut self, outbox: &mpsc::Sender<UsageUp>) -> Result<(), AgentError> {
        while let Some(message) = self.session.next_up() {
            outbox.send(message).await.map_err(|_| AgentError::Closed)?;
        }
        for trouble in self.session.take_troubles() {
            log::error(&trouble.to_string());
        }
        Ok(())
    }

    /// Adopts what dead processes left, and removes what is acked and old.
    fn care(&mut self) {
        if self.cared.is_some_and(|last| last.elapsed() < CARE) {
            return;
        }
        self.cared = Some(Instant::now());
        if let Err(error) = self.adopt() {
            log::error(&format!("spool of a dead process: {error}"));
        }
        let now_ms = u64::try_from(clock::unix_us() / 1_000).unwrap_or(0);
        if let Err(error) = self.session.prune(Retention::default(), now_ms) {
            log::error(&format!("spool: {error}"));
        }
    }

    fn adopt(&mut self) -> Result<(), filter_agent::spool::BootError> {
        let own = self.node.boot_id();
        for boot in boots(&self.node.disk)?
            .into_iter()
            .filter(|boot| *boot != own)
        {
            match adopt(&self.node.disk, boot) {
                Ok(Some(adopted)) => {
                    log::info(&format!("adopted the spool of boot {boot}"));
                    self.session.adopt(adopted);
                }
                Ok(None) => {}
                // One that cannot be read must not keep the others from the ledger.
                Err(error) => log::error(&format!("spool of boot {boot}: {error}")),
            }
        }
        Ok(())
    }
}
