//! Config for nodes: the server side of the delta ADS protocol that `filter_agent::ads` describes.
//!
//! Each stream has a task of its own that follows the published config, so a slow node holds up
//! nobody; while it is busy with one push, later changes add up to its next one.

mod push;
mod stream;
mod transcript;

use control_plane_core::nodes::BootId;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
    aggregated_discovery_service_server::AggregatedDiscoveryService,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::feed::Feed;
use crate::fleet::{Fleet, Process};
use crate::metrics::Metrics;
use crate::node_certificate::Names;
use crate::shutdown::Shutdown;

/// Names the node's process: 32 hexadecimal digits in the request's metadata.
const BOOT_ID_METADATA: &str = "x-turnpike-boot-id";

// Responses on their way to one node: with those of at most 512 KiB, a few MiB.
const RESPONSES_AHEAD: usize = 4;

/// The ADS service.
#[derive(Clone, Debug)]
pub(crate) struct Ads {
    pub(crate) feed: Feed,
    pub(crate) fleet: Fleet,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for Ads {
    type StreamAggregatedResourcesStream = tokio_stream::Empty<Result<DiscoveryResponse, Status>>;

    async fn stream_aggregated_resources(
        &self,
        _: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        Err(Status::unimplemented(
            "only DeltaAggregatedResources is served",
        ))
    }

    type DeltaAggregatedResourcesStream = ReceiverStream<Result<DeltaDiscoveryResponse, Status>>;

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        let process = process(&request)?;
        let (responses, outbox) = mpsc::channel(RESPONSES_AHEAD);
        let names = Names::of(&request);
        let stream = stream::NodeStream::new(self.clone(), names, request.into_inner(), responses);
        tokio::spawn(stream.serve(process));
        Ok(Response::new(ReceiverStream::new(outbox)))
    }
}

fn process<T>(request: &Request<T>) -> Result<Process, Status> {
    let Some(digits) = request.metadata().get(BOOT_ID_METADATA) else {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| Status::internal("no randomness"))?;
        let fresh = BootId(random);
        return Ok(Process::Unnamed { fresh });
    };
    let digits = digits.to_str().unwrap_or_default();
    let number = u128::from_str_radix(digits, 16);
    match number {
        Ok(number) if digits.len() == 32 => Ok(Process::Named(BootId(number.to_be_bytes()))),
        Ok(_) | Err(_) => Err(Status::invalid_argument(format!(
            "{BOOT_ID_METADATA} must be 32 hexadecimal digits"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_by_32_digits_or_anew() {
        let named = |value: &str| {
            let mut request = Request::new(());
            let value = value.parse().unwrap();
            request.metadata_mut().insert(BOOT_ID_METADATA, value);
            process(&request)
        };
        let id = BootId(std::array::from_fn(|at| u8::try_from(at).unwrap()));
        assert_eq!(
            named("000102030405060708090a0b0c0d0e0f").unwrap(),
            Process::Named(id)
        );
        for wrong in ["", "00", "+00102030405060708090a0b0c0d0e0g"] {
            let status = named(wrong).unwrap_err();
            assert_eq!(status.code(), tonic::Code::InvalidArgument, "{wrong}");
        }
        let anew = || process(&Request::new(())).unwrap();
        assert_ne!(anew(), anew());
    }
}
