//! Usage on its way into the ledger, one half of `turnpike.metering.v1.Metering`; the other half is
//! `crate::leases`.
//!
//! Streams hand their deliveries to one collector, which commits those of every node together and
//! answers each after the commit. What waits is bounded twice: by stream, since an answer needs a
//! place in the stream's outbox before its delivery is taken, and in bytes over all streams.

mod collector;
mod wire;

use control_plane_store::Store;
use proto::metering::v1::metering_server::Metering;
use proto::metering::v1::{LeaseDown, LeaseUp, UsageDown, UsageUp, usage_up};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

pub(crate) use collector::Collector;

use crate::leases::Leases;
use crate::node_certificate::Names;
use crate::shutdown::Shutdown;
use crate::status;

// Deliveries of one stream that may wait for their commit.
const ANSWERS_AHEAD: usize = 64;

/// The metering service.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    pub(crate) store: Store,
    pub(crate) collector: Collector,
    pub(crate) leases: Leases,
    pub(crate) shutdown: Shutdown,
}

type Outbox = mpsc::Sender<Result<UsageDown, Status>>;

#[tonic::async_trait]
impl Metering for Usage {
    type UsageStream = ReceiverStream<Result<UsageDown, Status>>;
    type LeaseStream = ReceiverStream<Result<LeaseDown, Status>>;

    async fn lease(
        &self,
        request: Request<Streaming<LeaseUp>>,
    ) -> Result<Response<Self::LeaseStream>, Status> {
        let names = Names::of(&request);
        let answers = self.leases.serve(names, request.into_inner());
        Ok(Response::new(answers))
    }

    async fn usage(
        &self,
        request: Request<Streaming<UsageUp>>,
    ) -> Result<Response<Self::UsageStream>, Status> {
        let (outbox, answers) = mpsc::channel(ANSWERS_AHEAD);
        let service = self.clone();
        let mut shutdown = self.shutdown.clone();
        let names = Names::of(&request);
        let mut messages = request.into_inner();
        tokio::spawn(async move {
            let end = tokio::select! {
                end = service.take_in(&names, &mut messages, &outbox) => end,
                () = shutdown.requested() => {
                    Err(Status::unavailable("the control plane is stopping"))
                }
            };
            let Err(status) = end else {
                return;
            };
            tracing::debug!(%status, "a usage stream ended");
            // The node that does not listen is not waited for.
            outbox.try_send(Err(status)).unwrap_or_default();
        });
        Ok(Response::new(ReceiverStream::new(answers)))
    }
}

impl Usage {
    /// Takes a node's messages until it ends the stream.
    async fn take_in(
        &self,
        names: &Names,
        messages: &mut Streaming<UsageUp>,
        outbox: &Outbox,
    ) -> Result<(), Status> {
        loop {
            let message = tokio::select! {
                message = messages.message() => message?,
                // The collector has ended the stream, or the node does not listen any more.
                () = outbox.closed() => return Ok(()),
            };
            let Some(message) = message else {
                return Ok(());
            };
            let place = outbox
                .clone()
                .reserve_owned()
                .await
                .map_err(|_| Status::cancelled("the node does not listen"))?;
            match message.message {
                Some(usage_up::Message::Open(open)) => {
                    let (shard, node) = wire::opening(open)?;
                    names.check(&node)?;
                    let answer = self.store.open_shard(shard, &node).await;
                    place.send(Ok(wire::answer(answer.map_err(status::from_store)?)));
                }
                Some(usage_up::Message::Batch(batch)) => {
                    self.collector.submit(wire::records(batch)?, place).await?;
                }
                Some(usage_up::Message::Gap(gap)) => {
                    self.collector.submit(wire::gap(gap)?, place).await?;
                }
                None => return Err(status::invalid("message", "is required")),
            }
        }
    }
}
