//! What a node says on its stream, and what that means for what it is sent next.

use std::collections::BTreeSet;

use envoy_types::pb::envoy::config::core::v3::node::UserAgentVersionType;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_types::pb::google::rpc::Status as Refusal;
use filter_agent::ads::{Kind, Refused, SINGLETON, checkpoint_from_str};
use proto::config::v1::Checkpoint;
use thiserror::Error;

/// A request that is not of the protocol (see `filter_agent::ads`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Violation {
    #[error("the first request must carry the node, with an id of 1-256 characters")]
    NoNode,
    #[error("a resource type is asked for that is not served here")]
    UnknownType,
    #[error("the version of the checkpoint is not of the form `<version>/<nonce>`")]
    UnreadableCheckpoint,
}

/// Who opened a stream and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opening {
    /// A label for people.
    pub(super) name: String,
    pub(super) version: String,
    /// The checkpoint that the node holds whole.
    pub(super) checkpoint: Option<Checkpoint>,
}

/// Gathers the opening requests, the checkpoint's being the last.
#[derive(Debug, Default)]
pub(super) struct Opener {
    node: Option<(String, String)>,
}

impl Opener {
    /// Takes a request; the opening is complete once it is returned.
    pub(super) fn hear(
        &mut self,
        request: DeltaDiscoveryRequest,
    ) -> Result<Option<Opening>, Violation> {
        if self.node.is_none() {
            self.node = Some(who(&request)?);
        }
        let kind = Kind::from_type_url(&request.type_url).ok_or(Violation::UnknownType)?;
        if kind != Kind::Checkpoint {
            return Ok(None);
        }
        let checkpoint = request
            .initial_resource_versions
            .get(SINGLETON)
            .map(|text| checkpoint_from_str(text))
            .transpose()
            .map_err(|_| Violation::UnreadableCheckpoint)?;
        let (name, version) = self.node.take().ok_or(Violation::NoNode)?;
        Ok(Some(Opening {
            name,
            version,
            checkpoint,
        }))
    }
}

fn who(request: &DeltaDiscoveryRequest) -> Result<(String, String), Violation> {
    let node = request.node.as_ref().ok_or(Violation::NoNode)?;
    let is_label = (1..=256).contains(&node.id.len()) && !node.id.chars().any(char::is_control);
    if !is_label {
        return Err(Violation::NoNode);
    }
    let version = match &node.user_agent_version_type {
        Some(UserAgentVersionType::UserAgentVersion(version)) => cut(version, 128),
        Some(UserAgentVersionType::UserAgentBuildVersion(_)) | None => String::new(),
    };
    Ok((node.id.clone(), version))
}

/// A node's answer to a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// Whether the node runs the push's version now.
    pub(super) accepted: bool,
    /// Everything it refused of it, as `Kind/id: reason`.
    pub(super) rejected: Vec<String>,
}

/// Gathers the answers to the responses of one push.
#[derive(Debug)]
pub(super) struct Answers {
    checkpoint_nonce: String,
    refused: BTreeSet<String>,
}

// Nothing that a node says may grow the control plane without bound.
const MAX_REFUSED: usize = 200;
const MAX_REASON_CHARS: usize = 500;

impl Answers {
    /// `checkpoint_nonce` is the nonce of the push's last response.
    pub(super) fn new(checkpoint_nonce: u64) -> Self {
        Self {
            checkpoint_nonce: checkpoint_nonce.to_string(),
            refused: BTreeSet::new(),
        }
    }

    /// Takes a request; the answer is complete once it is returned.
    pub(super) fn hear(
        &mut self,
        request: &DeltaDiscoveryRequest,
    ) -> Result<Option<Answer>, Violation> {
        let kind = Kind::from_type_url(&request.type_url).ok_or(Violation::UnknownType)?;
        if let Some(refusal) = &request.error_detail {
            self.note(kind, refusal);
        }
        if kind != Kind::Checkpoint || request.response_nonce != self.checkpoint_nonce {
            return Ok(None);
        }
        Ok(Some(Answer {
            accepted: request.error_detail.is_none(),
            rejected: std::mem::take(&mut self.refused).into_iter().collect(),
        }))
    }

    fn note(&mut self, kind: Kind, refusal: &Refusal) {
        let before = self.refused.len();
        for detail in &refusal.details {
            if let Some(Refused { resource, reason }) =
                Refused::from_detail(&detail.type_url, &detail.value)
            {
                self.insert(format!("{resource}: {reason}"));
            }
        }
        if self.refused.len() == before && !refusal.message.is_empty() {
            self.insert(format!("{}: {}", kind.name(), refusal.message));
        }
    }

    fn insert(&mut self, refused: String) {
        if self.refused.len() < MAX_REFUSED {
            self.refused.insert(cut(&refused, MAX_REASON_CHARS));
        }
    }
}

fn cut(text: &str, chars: usize) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(chars)
        .collect()
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::config::core::v3::Node;
    use envoy_types::pb::google::protobuf::Any;
    use filter_agent::ads::ResourceName;

    use super::*;

    fn request(kind: Kind) -> DeltaDiscoveryRequest {
        DeltaDiscoveryRequest {
            type_url: kind.type_url().into(),
            ..DeltaDiscoveryRequest::default()
        }
    }

    fn first(id: &str) -> DeltaDiscoveryRequest {
        DeltaDiscoveryRequest {
            node: Some(Node {
                id: id.into(),
                user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion(
                    "1.40.0".into(),
                )),
                ..Node::default()
            }),
            ..request(Kind::VirtualKey)
        }
    }

    fn checkpoint(named: Option<&str>) -> DeltaDiscoveryRequest {
        DeltaDiscoveryRequest {
            initial_resource_versions: named
                .map(|named| (SINGLETON.to_owned(), named.to_owned()))
                .into_iter()
                .collect(),
            ..request(Kind::Checkpoint)
        }
    }

    #[test]
    fn an_opening_ends_with_the_checkpoint() {
        let mut opener = Opener::default();
        assert_eq!(opener.hear(first("gw-1")), Ok(None));
        assert_eq!(opener.hear(request(Kind::Model)), Ok(None));
        let opening = opener.hear(checkpoint(Some("7/ab"))).unwrap().unwrap();
        assert_eq!(
            (opening.name.as_str(), opening.version.as_str()),
            ("gw-1", "1.40.0")
        );
        let named = opening.checkpoint.unwrap();
        assert_eq!((named.version, named.nonce.as_str()), (7, "ab"));

        let mut opener = Opener::default();
        opener.hear(first("gw-1")).unwrap();
        let opening = opener.hear(checkpoint(None)).unwrap().unwrap();
        assert_eq!(opening.checkpoint, None);
    }

    #[test]
    fn an_opening_that_is_not_of_the_protocol_is_refused() {
        let refused = |request| Opener::default().hear(request).unwrap_err();
        assert_eq!(refused(request(Kind::Team)), Violation::NoNode);
        assert_eq!(refused(first("")), Violation::NoNode);
        assert_eq!(refused(first("a\nb")), Violation::NoNode);
        let mut opener = Opener::default();
        opener.hear(first("gw-1")).unwrap();
        let wrong = opener.hear(checkpoint(Some("seven"))).unwrap_err();
        assert_eq!(wrong, Violation::UnreadableCheckpoint);
        let mut foreign = first("gw-1");
        foreign.type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
        assert_eq!(refused(foreign), Violation::UnknownType);
    }

    fn nack(kind: Kind, nonce: &str, names: &[&str]) -> DeltaDiscoveryRequest {
        let refused: Vec<_> = names
            .iter()
            .map(|name| Refused {
                resource: ResourceName::new(kind, *name),
                reason: "no targets".into(),
            })
            .collect();
        let status = Refused::to_status(&refused);
        DeltaDiscoveryRequest {
            response_nonce: nonce.into(),
            error_detail: Some(Refusal {
                code: status.code,
                message: status.message,
                details: status
                    .details
                    .into_iter()
                    .map(|any| Any {
                        type_url: any.type_url,
                        value: any.value,
                    })
                    .collect(),
            }),
            ..request(kind)
        }
    }

    #[test]
    fn what_is_refused_is_told_with_the_checkpoint_that_it_belongs_to() {
        let mut answers = Answers::new(9);
        assert_eq!(answers.hear(&nack(Kind::Model, "7", &["b", "a"])), Ok(None));
        assert_eq!(answers.hear(&nack(Kind::Provider, "", &["p"])), Ok(None));
        let mut old = request(Kind::Checkpoint);
        old.response_nonce = "5".into();
        assert_eq!(answers.hear(&old), Ok(None));
        let mut ack = request(Kind::Checkpoint);
        ack.response_nonce = "9".into();
        assert_eq!(
            answers.hear(&ack).unwrap().unwrap(),
            Answer {
                accepted: true,
                rejected: vec![
                    "Model/a: no targets".into(),
                    "Model/b: no targets".into(),
                    "Provider/p: no targets".into()
                ],
            }
        );
    }

    #[test]
    fn a_refused_checkpoint_says_why() {
        let mut refusal = request(Kind::Checkpoint);
        refusal.response_nonce = "9".into();
        refusal.error_detail = Some(Refusal {
            code: 3,
            message: "older than 12".into(),
            details: vec![],
        });
        assert_eq!(
            Answers::new(9).hear(&refusal).unwrap().unwrap(),
            Answer {
                accepted: false,
                rejected: vec!["Checkpoint: older than 12".into()],
            }
        );
    }

    #[test]
    fn a_node_that_refuses_without_end_is_cut_short() {
        let names: Vec<String> = (0..1000).map(|at| at.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut answers = Answers::new(9);
        answers.hear(&nack(Kind::Model, "1", &names)).unwrap();
        let mut ack = request(Kind::Checkpoint);
        ack.response_nonce = "9".into();
        let answer = answers.hear(&ack).unwrap().unwrap();
        assert_eq!(answer.rejected.len(), MAX_REFUSED);
    }
}
