//! The node's own side of the protocol, `filter_agent::ads::Session`, on this server.

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};
use filter_agent::ads::{
    self, Applied, Kind, Node, Outcome, Refused, ResourceName, Session, Step, Urgent,
};
use prost::Message as _;
use proto::admin::v1::{
    Credential, DeleteVirtualKeyRequest, Plaintext, UpdateCredentialRequest, credential,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Streaming};

use crate::harness::{Database, NODE_TOKEN, bearer, replica, soon};

/// A session's stream; what it compiles is taken, but for what the test refuses.
struct Link {
    session: Session,
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
    refuse: Vec<Refused>,
    urgent: Vec<Urgent>,
}

impl Link {
    async fn open(channel: &Channel, mut session: Session) -> Self {
        let (requests, outgoing) = mpsc::channel(64);
        for request in session.connected() {
            requests.send(to_envoy(&request)).await.unwrap();
        }
        let responses =
            AggregatedDiscoveryServiceClient::with_interceptor(channel.clone(), bearer(NODE_TOKEN))
                .delta_aggregated_resources(Request::new(ReceiverStream::new(outgoing)))
                .await
                .unwrap()
                .into_inner();
        Self {
            session,
            requests,
            responses,
            refuse: Vec::new(),
            urgent: Vec::new(),
        }
    }

    /// Closes the stream.
    fn close(self) -> Session {
        self.session
    }

    /// The next checkpoint that is applied: its version, and whether anything changed.
    async fn applied(&mut self) -> (u64, bool) {
        loop {
            let response = soon(self.responses.message()).await.unwrap().unwrap();
            let response = ads::DeltaDiscoveryResponse::decode(response.encode_to_vec().as_slice());
            let mut outcome = self.session.on_response(response.unwrap()).unwrap();
            loop {
                self.send(&outcome).await;
                match outcome.step {
                    Step::Wait => break,
                    Step::Compile if self.refuse.is_empty() => outcome = self.session.accept(),
                    Step::Compile => {
                        let refuse = std::mem::take(&mut self.refuse);
                        outcome = self.session.reject(&refuse);
                    }
                    Step::Applied(Applied::Checkpoint {
                        checkpoint,
                        changed,
                        ..
                    }) => return (checkpoint.version, changed),
                    Step::Applied(Applied::Urgent(urgent)) => {
                        self.urgent.extend(urgent);
                        break;
                    }
                }
            }
        }
    }

    async fn reach(&mut self, version: u64) {
        while self.applied().await.0 < version {}
    }

    async fn send(&self, outcome: &Outcome) {
        for request in &outcome.requests {
            self.requests.send(to_envoy(request)).await.unwrap();
        }
    }
}

fn to_envoy(request: &ads::DeltaDiscoveryRequest) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest::decode(request.encode_to_vec().as_slice()).unwrap()
}

fn new_session() -> Session {
    let node = Node {
        id: "gw-1".into(),
        user_agent_name: "turnpike".into(),
        user_agent_version: "1.40.0".into(),
        ..Node::default()
    };
    Session::new(node, None)
}

#[tokio::test]
async fn a_session_comes_into_sync_and_stays_so_over_a_reconnect() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let mut link = Link::open(&replica.channel, new_session()).await;
    link.reach(version).await;
    assert!(link.session.in_sync());
    let current = link.session.current();
    assert!(current.virtual_keys.contains_key("app") && current.models.contains_key("large"));
    assert!(!current.providers["acme"].cluster.is_empty());

    let (version, _) = replica.create_key("second", "blue").await;
    link.reach(version).await;
    let mut link = Link::open(&replica.channel, link.close()).await;
    assert_eq!(link.applied().await, (version, false));
    assert_eq!(link.session.current().virtual_keys.len(), 2);
}

#[tokio::test]
async fn a_revocation_and_a_rotation_do_not_wait_for_their_checkpoint() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let mut link = Link::open(&replica.channel, new_session()).await;
    link.reach(version).await;

    let request = DeleteVirtualKeyRequest {
        name: "virtualKeys/app".into(),
    };
    let deleted = replica.virtual_keys().delete_virtual_key(request).await;
    link.reach(deleted.unwrap().into_inner().config_version)
        .await;
    let request = UpdateCredentialRequest {
        credential: Some(Credential {
            name: "credentials/acme-main".into(),
            source: Some(credential::Source::Secret(Plaintext {
                value: "sk-test-rotated-1".into(),
            })),
            ..Credential::default()
        }),
        update_mask: None,
    };
    let rotated = replica.credentials().update_credential(request).await;
    link.reach(rotated.unwrap().into_inner().config_version)
        .await;
    let urgent: Vec<&ResourceName> = link.urgent.iter().map(|urgent| &urgent.resource).collect();
    assert_eq!(
        urgent,
        [
            &ResourceName::new(Kind::VirtualKey, "app"),
            &ResourceName::new(Kind::Credential, "acme-main"),
        ]
    );
    let current = link.session.current();
    assert_eq!(current.credentials["acme-main"].secret, "sk-test-rotated-1");
    assert!(current.virtual_keys.is_empty());
}

#[tokio::test]
async fn a_session_that_refused_something_is_sent_everything_when_it_comes_back() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let mut link = Link::open(&replica.channel, new_session()).await;
    link.refuse = vec![Refused {
        resource: ResourceName::new(Kind::Credential, "acme-main"),
        reason: "its place is not known".into(),
    }];
    link.reach(version).await;
    assert!(!link.session.current().credentials.contains_key("acme-main"));
    let waited = crate::wait::wait(&replica, version, 5).await;
    assert_eq!(
        waited.rejected,
        ["Credential/acme-main: its place is not known"]
    );

    let mut link = Link::open(&replica.channel, link.close()).await;
    link.reach(version).await;
    assert!(link.session.current().credentials.contains_key("acme-main"));
    // What the closed stream said is forgotten with it.
    soon(async {
        while !crate::wait::wait(&replica, version, 5)
            .await
            .rejected
            .is_empty()
        {}
    })
    .await;
}
