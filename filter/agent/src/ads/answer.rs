//! ACKs and NACKs, and how a refused resource is told.

use prost::Message as _;

use super::{Any, DeltaDiscoveryRequest, Kind, RefusedDetail, ResourceName, Status};

/// `google.rpc.Code.INVALID_ARGUMENT`
const INVALID_ARGUMENT: i32 = 3;

/// A resource that a node does not use as it was sent, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is refused.
    pub resource: ResourceName,
    /// For an operator; holds no secret.
    pub reason: String,
}

impl Refused {
    /// The status of a NACK: a line `Kind/name: reason` for each, and the same as details.
    #[must_use]
    pub fn to_status(refused: &[Self]) -> Status {
        let lines: Vec<String> = refused
            .iter()
            .map(|refused| format!("{}: {}", refused.resource, refused.reason))
            .collect();
        Status {
            code: INVALID_ARGUMENT,
            message: lines.join("\n"),
            details: refused.iter().map(Self::to_detail).collect(),
        }
    }

    /// One entry of a NACK's `details`; `None` if it is something else.
    #[must_use]
    pub fn from_detail(type_url: &str, value: &[u8]) -> Option<Self> {
        if type_url != RefusedDetail::TYPE_URL {
            return None;
        }
        let detail = RefusedDetail::decode(value).ok()?;
        let kind = Kind::from_type_url(&detail.type_url)?;
        Some(Self {
            resource: ResourceName::new(kind, detail.name),
            reason: detail.reason,
        })
    }

    fn to_detail(&self) -> Any {
        let detail = RefusedDetail {
            type_url: self.resource.kind.type_url().to_owned(),
            name: self.resource.name.clone(),
            reason: self.reason.clone(),
        };
        Any {
            type_url: RefusedDetail::TYPE_URL.to_owned(),
            value: detail.encode_to_vec(),
        }
    }
}

/// The answer to a response: an ACK if nothing is refused.
pub(super) fn answer(kind: Kind, nonce: String, refused: &[Refused]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        type_url: kind.type_url().to_owned(),
        response_nonce: nonce,
        error_detail: (!refused.is_empty()).then(|| Refused::to_status(refused)),
        ..DeltaDiscoveryRequest::default()
    }
}
