//! One process's stream, from its Hello to its end.

use std::time::Duration;

use proto::metering::v1::{LeaseUp, lease_up};
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::roster::Seat;
use super::{Leases, Outbox, wire};
use crate::node_certificate::Names;
use crate::status;

// A process that takes longer than this to say Hello is cut.
const OPENING_TIME: Duration = Duration::from_secs(10);

/// Serves a process until it leaves, breaks the protocol, or the replica is to stop.
pub(super) async fn serve(
    leases: Leases,
    names: Names,
    messages: Streaming<LeaseUp>,
    outbox: Outbox,
) {
    let mut shutdown = leases.shutdown.clone();
    let end = tokio::select! {
        end = follow(leases, names, messages, &outbox) => end,
        () = shutdown.requested() => Err(Status::unavailable("the control plane is stopping")),
    };
    let Err(status) = end else {
        return;
    };
    tracing::debug!(%status, "a lease stream ended");
    // The node that does not listen is not waited for.
    outbox.try_send(Err(status)).unwrap_or_default();
}

async fn follow(
    leases: Leases,
    names: Names,
    mut messages: Streaming<LeaseUp>,
    outbox: &Outbox,
) -> Result<(), Status> {
    let first = timeout(OPENING_TIME, messages.message())
        .await
        .map_err(|_| Status::deadline_exceeded("no hello came"))??;
    let Some(first) = first else {
        return Ok(());
    };
    let hello = wire::hello(first)?;
    names.check(&hello.node)?;
    let welcome = leases.greet(&hello).await?;
    let epoch = welcome.epoch;
    tracing::info!(node = %hello.node, epoch, fenced = welcome.fenced, "a process holds leases");
    for message in wire::welcome(welcome, leases.feed.current().nonce()) {
        outbox.send(Ok(message)).await.map_err(|_| gone())?;
    }
    let (seat, ended) = leases.roster.seat(hello.boot_id, epoch, outbox.clone());
    tokio::select! {
        end = take_in(&leases, &hello, &seat, &mut messages, outbox) => end,
        status = ended => Err(status.unwrap_or_else(|_| gone())),
        // An answer was the end of the stream, or the node does not listen any more.
        () = outbox.closed() => Ok(()),
    }
}

async fn take_in(
    leases: &Leases,
    hello: &wire::Greeting,
    seat: &Seat,
    messages: &mut Streaming<LeaseUp>,
    outbox: &Outbox,
) -> Result<(), Status> {
    while let Some(message) = messages.message().await? {
        let place = outbox.clone().reserve_owned().await.map_err(|_| gone())?;
        match message.message {
            Some(lease_up::Message::Wants(wants)) => {
                seat.heard(wants.epoch);
                let asked = wire::wants(hello.boot_id, wants)?;
                leases.wants.submit(asked, place).await?;
            }
            Some(lease_up::Message::Beat(beat)) => {
                seat.heard(beat.epoch);
                leases
                    .beats
                    .submit(hello.boot_id, beat.epoch, place)
                    .await?;
            }
            Some(lease_up::Message::Close(close)) => {
                let closing = wire::closing(close)?;
                leases
                    .closes
                    .take(&leases.store, hello.boot_id, closing)
                    .await;
            }
            Some(lease_up::Message::Hello(_)) => {
                return Err(status::invalid("hello", "comes first, and once"));
            }
            None => return Err(status::invalid("message", "is required")),
        }
    }
    Ok(())
}

fn gone() -> Status {
    Status::cancelled("the node does not listen")
}
