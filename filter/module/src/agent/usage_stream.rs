//! The Usage stream: brings the spool of this process, and of dead ones, to the ledger.

use std::{sync::Arc, time::Duration};

use filter_agent::{
    Backoff,
    spool::{Retention, ShardEnd, adopt, boots},
    usage::{Session, Window},
};
use proto::metering::v1::{UsageDown, UsageUp, metering_client::MeteringClient};
use tokio::{
    sync::mpsc,
    time::{Instant, interval},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Streaming};

use super::{Agent, AgentError, channel, dead_leases::Dead, disk::StateDir};
use crate::{clock, entropy, log, node::ThisNode};

/// How often the shards are looked at for new records.
const POLL: Duration = Duration::from_millis(200);
/// How often directories of dead processes are looked for, and old segments removed.
const CARE: Duration = Duration::from_secs(30);
/// The same while the disk is full.
const URGENT_CARE: Duration = Duration::from_secs(1);
/// On a full disk, records that are not in the ledger go before those that are.
const NOTHING_ACKED: Retention = Retention {
    bytes: 0,
    age_ms: 0,
};
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
            let wait_ms = Backoff::PROMPT.wait_ms(attempt, u64::from_ne_bytes(entropy::system()));
            log::info(&format!(
                "usage stream ended, again in {wait_ms} ms: {ended}"
            ));
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    }

    /// The shards of this process get no more records.
    pub(super) fn end(&mut self, ends: Vec<ShardEnd>) {
        for end in ends {
            self.session.end(self.node.boot_id(), end);
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
        channel::authorize(&self.agent.settings, &mut request).await?;
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
        self.tell_done();
        Ok(())
    }

    /// Adopts what dead processes left, and removes what is acked and old.
    fn care(&mut self) {
        let (pause, retention) = if self.agent.disk_full.get() {
            (URGENT_CARE, NOTHING_ACKED)
        } else {
            (CARE, Retention::default())
        };
        if self.cared.is_some_and(|last| last.elapsed() < pause) {
            return;
        }
        self.cared = Some(Instant::now());
        if let Err(error) = self.adopt() {
            log::error(&format!("spool of a dead process: {error}"));
        }
        self.tell_done();
        let now_ms = u64::try_from(clock::unix_us() / 1_000).unwrap_or(0);
        if let Err(error) = self.session.prune(retention, now_ms) {
            log::error(&format!("spool: {error}"));
        }
    }

    /// Before their directories are removed, and their names with them.
    fn tell_done(&mut self) {
        for (boot, ends) in self.session.take_done() {
            // Its receiver lives as long as the agent.
            drop(self.agent.dead.send(Dead { boot, ends }));
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
                    let (open, damaged) = adopted.in_flight();
                    log::info(&format!(
                        "adopted the spool of boot {boot}; {open} exchanges were open"
                    ));
                    if damaged > 0 {
                        log::error(&format!(
                            "boot {boot} left {damaged} open exchanges that cannot be read"
                        ));
                    }
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
