//! A node as the wire sees it: says exactly what the test tells it to.

use std::collections::BTreeMap;

use envoy_types::pb::envoy::config::core::v3::{Node as WireNode, node::UserAgentVersionType};
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};
use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::google::rpc::Status as Refusal;
use filter_agent::ads::{Kind, Mode, PushName, Refused, ResourceName, SINGLETON};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use crate::harness::{NODE_TOKEN, bearer, soon};

/// A node's stream.
pub(crate) struct Node {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
    /// What the node holds: `Kind/name` to the encoded resource.
    pub(crate) holds: BTreeMap<String, Vec<u8>>,
}

/// A push as it came.
#[derive(Debug)]
pub(crate) struct Push {
    pub(crate) name: PushName,
    pub(crate) responses: Vec<DeltaDiscoveryResponse>,
}

impl Push {
    /// `Kind/name` of what it brings, in order of arrival, the checkpoint left out.
    pub(crate) fn changed(&self) -> Vec<String> {
        self.named(|response| {
            let names = response.resources.iter();
            names.map(|resource| resource.name.clone()).collect()
        })
    }

    /// `Kind/name` of what it removes.
    pub(crate) fn removed(&self) -> Vec<String> {
        self.named(|response| response.removed_resources.clone())
    }

    pub(crate) fn version(&self) -> u64 {
        self.name.checkpoint.version
    }

    fn named(&self, names: impl Fn(&DeltaDiscoveryResponse) -> Vec<String>) -> Vec<String> {
        self.responses
            .iter()
            .map(|response| (kind(response), names(response)))
            .filter(|(kind, _)| *kind != Kind::Checkpoint)
            .flat_map(|(kind, names)| {
                names
                    .into_iter()
                    .map(move |name| ResourceName::new(kind, name).to_string())
            })
            .collect()
    }
}

fn kind(response: &DeltaDiscoveryResponse) -> Kind {
    Kind::from_type_url(&response.type_url).expect("a type of ours")
}

impl Node {
    /// Opens a stream; `checkpoint` is `<version>/<nonce>`.
    pub(crate) async fn connect(channel: &Channel, name: &str, checkpoint: Option<&str>) -> Self {
        Self::try_connect(channel, name, checkpoint, NODE_TOKEN)
            .await
            .unwrap()
    }

    pub(crate) async fn try_connect(
        channel: &Channel,
        name: &str,
        checkpoint: Option<&str>,
        token: &str,
    ) -> Result<Self, Status> {
        let mut client =
            AggregatedDiscoveryServiceClient::with_interceptor(channel.clone(), bearer(token));
        let (requests, outgoing) = mpsc::channel(64);
        let mut node = Some(WireNode {
            id: name.into(),
            user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion("1.40.0".into())),
            ..WireNode::default()
        });
        for kind in Kind::ALL {
            let versions = checkpoint
                .filter(|_| kind == Kind::Checkpoint)
                .map(|checkpoint| (SINGLETON.to_owned(), checkpoint.to_owned()));
            requests
                .send(DeltaDiscoveryRequest {
                    node: node.take(),
                    type_url: kind.type_url().into(),
                    resource_names_subscribe: vec!["*".into()],
                    initial_resource_versions: versions.into_iter().collect(),
                    ..DeltaDiscoveryRequest::default()
                })
                .await
                .unwrap();
        }
        let responses = client
            .delta_aggregated_resources(Request::new(ReceiverStream::new(outgoing)))
            .await?
            .into_inner();
        Ok(Self {
            requests,
            responses,
            holds: BTreeMap::new(),
        })
    }

    /// The next push, whole and unanswered.
    pub(crate) async fn push(&mut self) -> Push {
        let mut responses = Vec::new();
        loop {
            let response = soon(self.responses.message()).await.unwrap();
            let response = response.expect("the stream goes on");
            let is_last = kind(&response) == Kind::Checkpoint;
            responses.push(response);
            if is_last {
                break;
            }
        }
        let name: PushName = responses[0].system_version_info.parse().unwrap();
        for response in &responses {
            assert_eq!(response.system_version_info, name.to_string());
        }
        Push { name, responses }
    }

    /// Applies a push and says so.
    pub(crate) async fn accept(&mut self, push: &Push) {
        if push.name.mode == Mode::Full {
            self.holds.clear();
        }
        for response in &push.responses {
            let kind = kind(response);
            for resource in &response.resources {
                let name = ResourceName::new(kind, resource.name.clone()).to_string();
                let any = resource.resource.as_ref().unwrap();
                assert_eq!(any.type_url, kind.type_url());
                self.holds.insert(name, any.value.clone());
            }
            for name in &response.removed_resources {
                self.holds
                    .remove(&ResourceName::new(kind, name.clone()).to_string());
            }
        }
        self.holds.remove("Checkpoint/default");
        self.answer(push, &[]).await;
    }

    /// Answers every type, refusing some resources.
    pub(crate) async fn answer(&mut self, push: &Push, refused: &[Refused]) {
        for response in &push.responses {
            let of_type: Vec<Refused> = refused
                .iter()
                .filter(|refused| refused.resource.kind == kind(response))
                .cloned()
                .collect();
            let error_detail = (!of_type.is_empty()).then(|| {
                let status = Refused::to_status(&of_type);
                let details = status.details.into_iter().map(|any| Any {
                    type_url: any.type_url,
                    value: any.value,
                });
                Refusal {
                    code: status.code,
                    message: status.message,
                    details: details.collect(),
                }
            });
            self.requests
                .send(DeltaDiscoveryRequest {
                    type_url: response.type_url.clone(),
                    response_nonce: response.nonce.clone(),
                    error_detail,
                    ..DeltaDiscoveryRequest::default()
                })
                .await
                .unwrap();
        }
    }

    /// Takes and accepts pushes until it has a version.
    pub(crate) async fn reach(&mut self, version: u64) -> Push {
        loop {
            let push = self.push().await;
            self.accept(&push).await;
            if push.version() >= version {
                return push;
            }
        }
    }

    /// Accepts everything from here on.
    pub(crate) fn run(mut self) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move {
            while let Ok(Some(response)) = self.responses.message().await {
                let answer = DeltaDiscoveryRequest {
                    type_url: response.type_url,
                    response_nonce: response.nonce,
                    ..DeltaDiscoveryRequest::default()
                };
                if self.requests.send(answer).await.is_err() {
                    return;
                }
            }
        })
    }

    /// How the stream ends.
    pub(crate) async fn end(&mut self) -> Option<Status> {
        loop {
            match soon(self.responses.message()).await {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some(status),
            }
        }
    }
}

/// `<version>/<nonce>` of a push.
pub(crate) fn checkpoint(push: &Push) -> String {
    filter_agent::ads::checkpoint_to_string(&push.name.checkpoint)
}
