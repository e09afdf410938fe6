//! The Lease stream: keeps this process in credit for as long as it runs, and gives all of it back
//! at the end.
//!
//! It is open whether there are limits or not: a process that holds nothing costs a beat every few
//! seconds, and starting, draining and ending are the same for every process.

use std::{
    future::pending,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use filter_agent::{Backoff, lease::Session, spool};
use filter_core::credit::Wake;
use proto::metering::v1::{
    LeaseDown, LeaseUp, ShardEnd, lease_up, metering_client::MeteringClient,
};
use tokio::{
    sync::{
        Notify,
        mpsc::{self, error::TrySendError},
    },
    time::sleep,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Streaming, transport::Channel};

use super::{AgentError, channel};
use crate::{clock, credit::LeaseCounts, entropy, log, settings::Settings, worker};

/// Messages that may wait to be sent. Behind so many, nothing more is asked for until some are gone.
const OUTBOX: usize = 64;

/// Rung by workers whose accounts need something, and once when the process begins to drain.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Notify,
    is_draining: AtomicBool,
}

impl Wake for Bell {
    fn wake(&self) {
        self.rung.notify_one();
    }
}

impl Bell {
    /// The process is about to end: what no request needs is to be given back at once.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
        self.rung.notify_one();
    }
}

/// The credit side of the agent.
pub(super) struct LeaseStream<'a> {
    settings: &'a Settings,
    channel: Channel,
    session: Session,
    bell: Arc<Bell>,
    counts: &'a LeaseCounts,
    is_draining: bool,
}

/// One open stream.
struct Open {
    outbox: mpsc::Sender<LeaseUp>,
    inbound: Streaming<LeaseDown>,
}

impl<'a> LeaseStream<'a> {
    /// `bell` is the one that is set for the session's accounts.
    pub(super) fn new(
        settings: &'a Settings,
        channel: Channel,
        session: Session,
        bell: Arc<Bell>,
        counts: &'a LeaseCounts,
    ) -> Self {
        Self {
            settings,
            channel,
            session,
            bell,
            counts,
            is_draining: false,
        }
    }

    /// Keeps a stream open for ever.
    pub(super) async fn run(&mut self) {
        let mut attempt = 0;
        loop {
            let (was_open, ended) = self.serve().await;
            self.session.disconnected();
            self.counts.note_connected(false);
            attempt = if was_open { 0 } else { attempt + 1 };
            let wait_ms = Backoff::PROMPT.wait_ms(attempt, u64::from_ne_bytes(entropy::system()));
            log::info(&format!(
                "lease stream ended, again in {wait_ms} ms: {ended}"
            ));
            self.meanwhile(sleep(Duration::from_millis(wait_ms))).await;
        }
    }

    /// Gives back all that is held, over a stream of its own, and waits until that is taken in. No
    /// exchange is open any more, and every record is in its shard, which goes up to `ends`.
    pub(super) async fn close(&mut self, ends: &[spool::ShardEnd]) {
        self.session.disconnected();
        let ends = ends.iter().map(|end| ShardEnd {
            shard: end.shard,
            last_seq: end.last_seq,
        });
        self.session.observe(0, ends.collect());
        self.session.finish(clock::mono_us());
        if self.session.epoch() == 0 {
            // Nothing was ever held.
            return;
        }
        let Ok(Open {
            outbox,
            mut inbound,
        }) = self.open().await
        else {
            return;
        };
        let mut outbox = Some(outbox);
        loop {
            // A Close has no answer. What shows that it was read is the end of the stream.
            if let Some(open) = &outbox
                && (self.pump(open).is_err() || self.session.is_closed())
            {
                outbox = None;
            }
            match inbound.message().await {
                Ok(Some(down)) => self.session.on_down(down, clock::mono_us()),
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
        let mut was_open = false;
        loop {
            self.observe();
            let is_full = match self.pump(&open.outbox) {
                Ok(is_full) => is_full,
                Err(error) => return (was_open, error),
            };
            tokio::select! {
                message = open.inbound.message() => match message {
                    Ok(Some(down)) => {
                        self.session.on_down(down, clock::mono_us());
                        self.counts.note_connected(true);
                        was_open = true;
                    }
                    Ok(None) => return (was_open, AgentError::Closed),
                    Err(status) => return (was_open, status.into()),
                },
                () = self.changed() => {}
                room = open.outbox.reserve(), if is_full => if room.is_err() {
                    return (was_open, AgentError::Closed);
                },
            }
        }
    }

    async fn open(&mut self) -> Result<Open, AgentError> {
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let mut request = Request::new(ReceiverStream::new(messages));
        channel::authorize(self.settings, &mut request).await?;
        self.session.connected();
        // Before the call: some servers answer a stream only when the first message has come.
        self.pump(&outbox)?;
        let mut client = MeteringClient::new(self.channel.clone());
        let answer = self
            .meanwhile(async move { client.lease(request).await })
            .await;
        let inbound = answer?.into_inner();
        Ok(Open { outbox, inbound })
    }

    /// Sends what there is to say. True: there is more, and no room for it.
    fn pump(&mut self, outbox: &mpsc::Sender<LeaseUp>) -> Result<bool, AgentError> {
        loop {
            let room = match outbox.try_reserve() {
                Ok(room) => room,
                Err(TrySendError::Full(())) => return Ok(true),
                Err(TrySendError::Closed(())) => return Err(AgentError::Closed),
            };
            let Some(message) = self.next_up() else {
                return Ok(false);
            };
            if let Some(lease_up::Message::Wants(wants)) = &message.message {
                self.counts.note_wants(&wants.wants);
            }
            room.send(message);
        }
    }

    /// Looks after the accounts until `done` comes: without a stream, those who wait are still to
    /// be woken.
    async fn meanwhile<T>(&mut self, done: impl Future<Output = T>) -> T {
        let mut done = pin!(done);
        loop {
            // No stream is open, or its Hello is not answered: there is nothing to say.
            drop(self.next_up());
            tokio::select! {
                value = &mut done => return value,
                () = self.changed() => {}
            }
        }
    }

    fn next_up(&mut self) -> Option<LeaseUp> {
        if !self.is_draining && self.bell.is_draining.load(Ordering::Acquire) {
            self.is_draining = true;
            self.session.drain();
        }
        let entropy = u64::from_ne_bytes(entropy::system());
        self.session.next_up(clock::mono_us(), entropy)
    }

    /// The bell rings, or it is time to look.
    async fn changed(&self) {
        let now_us = clock::mono_us();
        let due = self.session.look_at_us(now_us);
        let time = async {
            match due {
                Some(due_us) => sleep(Duration::from_micros(due_us.saturating_sub(now_us))).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.bell.rung.notified() => {}
            () = time => {}
        }
    }

    fn observe(&mut self) {
        let ends = worker::all().into_iter().filter_map(|worker| {
            let (shard, next_seq) = worker
                .spool()
                .as_ref()
                .map(|writer| (writer.shard(), writer.next_seq()))?;
            let last_seq = next_seq.saturating_sub(1);
            Some(ShardEnd { shard, last_seq })
        });
        let ends = ends.collect();
        self.session.observe(worker::open_exchanges(), ends);
    }
}

#[cfg(test)]
pub(super) mod tests;
