//! A push, cut into responses that fit a gRPC message.

use control_plane_core::published::{Change, Kind};
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryResponse, Resource};
use envoy_types::pb::google::protobuf::Any;
use filter_agent::ads::{Mode, PushName, SINGLETON, checkpoint_to_string, type_url};
use prost::Message as _;
use proto::config::v1::Checkpoint;

// Well below the 4 MiB that gRPC clients take by default. One resource may be larger than this;
// then it has a response of its own.
const MAX_RESPONSE_BYTES: usize = 512 * 1024;
const MAX_RESPONSE_RESOURCES: usize = 1000;

/// Responses still to be sent, the checkpoint last.
#[derive(Debug)]
pub(super) struct Push {
    name: PushName,
    changes: std::iter::Peekable<std::vec::IntoIter<Change>>,
    ended: bool,
}

impl Push {
    /// What brings a node to a checkpoint.
    pub(super) fn new(mode: Mode, checkpoint: Checkpoint, mut changes: Vec<Change>) -> Self {
        changes.sort_by_key(|change| order(change.kind));
        Self {
            name: PushName { mode, checkpoint },
            changes: changes.into_iter().peekable(),
            ended: false,
        }
    }

    /// The next response, under a nonce; none after the checkpoint.
    pub(super) fn next(&mut self, nonce: u64) -> Option<DeltaDiscoveryResponse> {
        if self.ended {
            return None;
        }
        let Some(kind) = self.changes.peek().map(|change| change.kind) else {
            self.ended = true;
            return Some(self.checkpoint(nonce));
        };
        let mut response = self.response(kind.type_url(), nonce);
        let mut bytes = 0;
        let mut count = 0;
        while let Some(change) = self.changes.next_if(|change| {
            let size = change.body.as_ref().map_or(0, |body| body.bytes().len());
            count += 1;
            bytes += size + change.id.len();
            let fits = bytes <= MAX_RESPONSE_BYTES && count <= MAX_RESPONSE_RESOURCES;
            change.kind == kind && (fits || count == 1)
        }) {
            match &change.body {
                Some(body) => response.resources.push(Resource {
                    name: change.id,
                    version: change.version.to_string(),
                    resource: Some(Any {
                        type_url: kind.type_url().to_owned(),
                        value: body.bytes().to_vec(),
                    }),
                    ..Resource::default()
                }),
                None => response.removed_resources.push(change.id),
            }
        }
        Some(response)
    }

    fn checkpoint(&self, nonce: u64) -> DeltaDiscoveryResponse {
        let mut response = self.response(type_url::CHECKPOINT, nonce);
        response.resources.push(Resource {
            name: SINGLETON.to_owned(),
            version: checkpoint_to_string(&self.name.checkpoint),
            resource: Some(Any {
                type_url: type_url::CHECKPOINT.to_owned(),
                value: self.name.checkpoint.encode_to_vec(),
            }),
            ..Resource::default()
        });
        response
    }

    fn response(&self, type_url: &str, nonce: u64) -> DeltaDiscoveryResponse {
        DeltaDiscoveryResponse {
            system_version_info: self.name.to_string(),
            type_url: type_url.to_owned(),
            nonce: nonce.to_string(),
            ..DeltaDiscoveryResponse::default()
        }
    }
}

// What a node acts on at once comes first, so that a revocation never waits behind a large model
// list; then what others refer to, before what refers to it.
fn order(kind: Kind) -> u8 {
    match kind {
        Kind::VirtualKey => 0,
        Kind::Team => 1,
        Kind::Credential => 2,
        Kind::Provider => 3,
        Kind::Model => 4,
        Kind::RuleSet => 5,
        Kind::PriceBook => 6,
        Kind::Limit => 7,
        Kind::Settings => 8,
        Kind::Checkpoint => 9,
    }
}

#[cfg(test)]
mod tests {
    use control_plane_core::published::Body;

    use super::*;

    fn change(kind: Kind, id: &str, bytes: Option<usize>) -> Change {
        Change {
            kind,
            id: id.into(),
            version: 4,
            body: bytes.map(|count| Body::new(vec![7; count].into())),
        }
    }

    fn responses(changes: Vec<Change>) -> Vec<DeltaDiscoveryResponse> {
        let checkpoint = Checkpoint {
            version: 5,
            nonce: "ab".into(),
        };
        let mut push = Push::new(Mode::Delta { from: 3 }, checkpoint, changes);
        let mut nonce = 10;
        std::iter::from_fn(|| {
            nonce += 1;
            push.next(nonce)
        })
        .collect()
    }

    fn shape(response: &DeltaDiscoveryResponse) -> (String, usize, usize) {
        let kind = response.type_url.rsplit('.').next().unwrap().to_owned();
        (
            kind,
            response.resources.len(),
            response.removed_resources.len(),
        )
    }

    #[test]
    fn keys_come_first_and_the_checkpoint_last() {
        let responses = responses(vec![
            change(Kind::Settings, "default", Some(3)),
            change(Kind::Model, "m", Some(3)),
            change(Kind::VirtualKey, "a", None),
            change(Kind::VirtualKey, "b", Some(3)),
        ]);
        let shapes: Vec<_> = responses.iter().map(shape).collect();
        assert_eq!(
            shapes,
            [
                ("VirtualKey".to_owned(), 1, 1),
                ("Model".to_owned(), 1, 0),
                ("Settings".to_owned(), 1, 0),
                ("Checkpoint".to_owned(), 1, 0),
            ]
        );
        for (position, response) in responses.iter().enumerate() {
            assert_eq!(response.system_version_info, "delta 3..5/ab");
            assert_eq!(response.nonce, (position + 11).to_string());
        }
        let checkpoint = &responses[3].resources[0];
        let body = checkpoint.resource.as_ref().unwrap();
        let decoded = Checkpoint::decode(body.value.as_slice()).unwrap();
        assert_eq!((decoded.version, decoded.nonce.as_str()), (5, "ab"));
        assert_eq!(checkpoint.version, "5/ab");
    }

    #[test]
    fn a_large_push_is_cut_and_loses_nothing() {
        let mut changes: Vec<_> = (0..2500)
            .map(|at| change(Kind::VirtualKey, &at.to_string(), Some(300)))
            .collect();
        changes.push(change(Kind::RuleSet, "default", Some(900_000)));
        let responses = responses(changes);
        let shapes: Vec<_> = responses.iter().map(shape).collect();
        assert_eq!(
            shapes.iter().map(|shape| shape.1).collect::<Vec<_>>(),
            [1000, 1000, 500, 1, 1]
        );
        let large: Vec<_> = (0..10)
            .map(|at| change(Kind::Provider, &at.to_string(), Some(200_000)))
            .collect();
        let counts: Vec<_> = self::responses(large)
            .iter()
            .map(|response| response.resources.len())
            .collect();
        assert_eq!(counts, [2, 2, 2, 2, 2, 1]);
    }

    #[test]
    fn nothing_changed_is_a_push_of_the_checkpoint_alone() {
        let responses = responses(vec![]);
        assert_eq!(
            responses.iter().map(shape).collect::<Vec<_>>(),
            [("Checkpoint".to_owned(), 1, 0)]
        );
    }
}
