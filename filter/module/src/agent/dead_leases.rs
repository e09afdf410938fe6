//! Closes what dead processes held. Until somebody does, their credit is suspended: nobody knows
//! whether they are dead or only out of reach. Whoever has their spool knows, and once all of it is
//! in the ledger, the rest of their credit is free.

use std::time::Duration;

use filter_agent::{
    Backoff,
    spool::{BootId, ShardEnd},
};
use proto::metering::v1::{
    self as wire, Close, Hello, LeaseDown, LeaseUp, Welcome, lease_down, lease_up,
    metering_client::MeteringClient,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Streaming, transport::Channel};

use super::{AgentError, channel};
use crate::{entropy, log, settings::Settings};

/// Longer than the control plane takes for a Hello and its Closes.
const DEADLINE: Duration = Duration::from_secs(15);
/// A process has one epoch, and one more for each time that it was taken for lost.
const EPOCHS: u64 = 32;

/// A process that is dead, and whose records are all in the ledger.
#[derive(Clone, Debug)]
pub(super) struct Dead {
    pub(super) boot: BootId,
    pub(super) ends: Vec<ShardEnd>,
}

/// The task that closes them.
pub(super) struct DeadLeases<'a> {
    pub(super) settings: &'a Settings,
    pub(super) channel: Channel,
    pub(super) node: &'a str,
    pub(super) dead: mpsc::UnboundedReceiver<Dead>,
}

impl DeadLeases<'_> {
    /// Closes one after the other, each until it succeeds.
    pub(super) async fn run(&mut self) {
        while let Some(dead) = self.dead.recv().await {
            let mut attempt = 0;
            while let Err(error) = self.close_in_time(&dead).await {
                let wait_ms =
                    Backoff::PROMPT.wait_ms(attempt, u64::from_ne_bytes(entropy::system()));
                log::info(&format!(
                    "credit of boot {} is not closed, again in {wait_ms} ms: {error}",
                    dead.boot
                ));
                attempt += 1;
                sleep(Duration::from_millis(wait_ms)).await;
            }
        }
        // Nobody is left who could find one.
        std::future::pending().await
    }

    async fn close_in_time(&self, dead: &Dead) -> Result<(), AgentError> {
        timeout(DEADLINE, self.close(dead))
            .await
            .unwrap_or(Err(AgentError::Closed))
    }

    /// Says Hello in its name, to learn its epoch, and closes that and those before.
    async fn close(&self, dead: &Dead) -> Result<(), AgentError> {
        let epochs = usize::try_from(EPOCHS).unwrap_or_default();
        let (outbox, messages) = mpsc::channel(epochs + 1);
        let mut request = Request::new(ReceiverStream::new(messages));
        channel::authorize(self.settings, &mut request).await?;
        let hello = lease_up::Message::Hello(Hello {
            boot_id: dead.boot.0.to_vec(),
            node: self.node.to_owned(),
            draining: true,
            ..Hello::default()
        });
        send(&outbox, hello).await?;
        let mut client = MeteringClient::new(self.channel.clone());
        let mut inbound = client.lease(request).await?.into_inner();
        let welcome = welcome(&mut inbound).await?;
        let first = welcome.epoch.saturating_sub(EPOCHS - 1).max(1);
        for epoch in first..=welcome.epoch {
            send(&outbox, close(dead, epoch)).await?;
        }
        drop(outbox);
        // A Close has no answer: that it was read is seen by the end of the stream.
        while inbound.message().await?.is_some() {}
        Ok(())
    }
}

async fn send(
    outbox: &mpsc::Sender<LeaseUp>,
    message: lease_up::Message,
) -> Result<(), AgentError> {
    let message = Some(message);
    let sent = outbox.send(LeaseUp { message }).await;
    sent.map_err(|_| AgentError::Closed)
}

async fn welcome(inbound: &mut Streaming<LeaseDown>) -> Result<Welcome, AgentError> {
    while let Some(down) = inbound.message().await? {
        if let Some(lease_down::Message::Welcome(welcome)) = down.message {
            return Ok(welcome);
        }
    }
    Err(AgentError::Closed)
}

fn close(dead: &Dead, epoch: u64) -> lease_up::Message {
    let shards = dead.ends.iter().map(|end| wire::ShardEnd {
        shard: end.shard,
        last_seq: end.last_seq,
    });
    lease_up::Message::Close(Close {
        epoch,
        holdings: Vec::new(),
        shards: shards.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::lease_stream::tests::{Node, control_plane},
        *,
    };

    #[tokio::test]
    async fn a_dead_processs_epochs_are_closed_at_its_shards_ends() {
        let (control_plane, address) = control_plane().await;
        let node = Node::new(address);
        let (dead, receiver) = mpsc::unbounded_channel();
        let mut closer = DeadLeases {
            settings: &node.settings,
            channel: channel::channel(&node.settings).expect("a channel"),
            node: "a",
            dead: receiver,
        };
        let sent = dead.send(Dead {
            boot: BootId([9; 16]),
            ends: vec![ShardEnd {
                shard: 1,
                last_seq: 7,
                unmarked: None,
            }],
        });
        sent.expect("the receiver lives");
        let closed = async {
            while control_plane.closes().is_empty() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = closer.run() => panic!("it runs for ever"),
            closed = timeout(Duration::from_secs(5), closed) => closed.expect("closed"),
        }
        let closes = control_plane.closes();
        let [close] = closes.as_slice() else {
            panic!("one epoch: {closes:?}");
        };
        assert_eq!(close.epoch, 1);
        assert_eq!(
            close.shards,
            [wire::ShardEnd {
                shard: 1,
                last_seq: 7
            }]
        );
    }
}
