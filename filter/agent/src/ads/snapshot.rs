//! A node's config as it is kept on disk, so that it starts without a control plane.
//!
//! `"turnpike" | format u32 | crc32c u32 | protobuf body`, little endian. Encryption is around it.

use std::collections::BTreeMap;

use prost::Message as _;
use proto::config::v1::{
    Checkpoint, Credential, Limit, Model, PriceBook, Provider, RuleSet, Settings, Team, VirtualKey,
};

use super::Resources;

const MAGIC: &[u8; 8] = b"turnpike";
const FORMAT: u32 = 1;

/// A config as it stood at its last checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Every resource in force, and the checkpoint they stand at.
    pub resources: Resources,
    /// True if `resources` holds all that was published at its checkpoint; false if a resource was
    /// refused or credentials were left out.
    pub whole: bool,
}

/// Why stored bytes are not a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("not a snapshot")]
    Foreign,
    #[error("snapshot format {0} is not known")]
    Format(u32),
    #[error("snapshot checksum does not match")]
    Checksum,
    #[error("snapshot body is unreadable")]
    Body(#[source] prost::DecodeError),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Body {
    #[prost(message, optional, tag = "1")]
    checkpoint: Option<Checkpoint>,
    #[prost(bool, tag = "2")]
    whole: bool,
    #[prost(message, repeated, tag = "3")]
    virtual_keys: Vec<VirtualKey>,
    #[prost(message, repeated, tag = "4")]
    teams: Vec<Team>,
    #[prost(message, repeated, tag = "5")]
    providers: Vec<Provider>,
    #[prost(message, repeated, tag = "6")]
    credentials: Vec<Credential>,
    #[prost(message, repeated, tag = "7")]
    models: Vec<Model>,
    #[prost(message, optional, tag = "8")]
    rule_set: Option<RuleSet>,
    #[prost(message, optional, tag = "9")]
    price_book: Option<PriceBook>,
    #[prost(message, optional, tag = "10")]
    settings: Option<Settings>,
    #[prost(message, repeated, tag = "11")]
    limits: Vec<Limit>,
}

// === impl Snapshot ===

impl Snapshot {
    /// The same config with no provider secret in it, for a disk that has no key to encrypt with.
    #[must_use]
    pub fn without_credentials(mut self) -> Self {
        self.whole &= self.resources.credentials.is_empty();
        self.resources.credentials.clear();
        self
    }

    /// The bytes to store. They hold provider secrets unless those were taken out.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let body = Body::from(self).encode_to_vec();
        let mut bytes = Vec::with_capacity(MAGIC.len() + 8 + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// If the bytes are foreign, damaged, or of a format that this build does not know.
    pub fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let (magic, rest) = bytes.split_first_chunk().ok_or(SnapshotError::Foreign)?;
        if magic != MAGIC {
            return Err(SnapshotError::Foreign);
        }
        let (format, rest) = rest.split_first_chunk().ok_or(SnapshotError::Foreign)?;
        let format = u32::from_le_bytes(*format);
        if format != FORMAT {
            return Err(SnapshotError::Format(format));
        }
        let (checksum, body) = rest.split_first_chunk().ok_or(SnapshotError::Checksum)?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
            return Err(SnapshotError::Checksum);
        }
        Body::decode(body)
            .map(Self::from)
            .map_err(SnapshotError::Body)
    }
}

// === impl Body ===

impl From<Snapshot> for Body {
    fn from(snapshot: Snapshot) -> Self {
        let resources = snapshot.resources;
        Self {
            checkpoint: resources.checkpoint,
            whole: snapshot.whole,
            virtual_keys: resources.virtual_keys.into_values().collect(),
            teams: resources.teams.into_values().collect(),
            providers: resources.providers.into_values().collect(),
            credentials: resources.credentials.into_values().collect(),
            models: resources.models.into_values().collect(),
            rule_set: resources.rule_set,
            price_book: resources.price_book,
            settings: resources.settings,
            limits: resources.limits.into_values().collect(),
        }
    }
}

impl From<Body> for Snapshot {
    fn from(body: Body) -> Self {
        let resources = Resources {
            virtual_keys: by_id(body.virtual_keys, |key| &key.id),
            teams: by_id(body.teams, |team| &team.id),
            providers: by_id(body.providers, |provider| &provider.id),
            credentials: by_id(body.credentials, |credential| &credential.id),
            models: by_id(body.models, |model| &model.id),
            rule_set: body.rule_set,
            price_book: body.price_book,
            limits: by_id(body.limits, |limit| &limit.id),
            settings: body.settings,
            checkpoint: body.checkpoint,
        };
        Self {
            resources,
            whole: body.whole,
        }
    }
}

fn by_id<T>(items: Vec<T>, id: impl Fn(&T) -> &String) -> BTreeMap<String, T> {
    items
        .into_iter()
        .map(|item| (id(&item).clone(), item))
        .collect()
}

#[cfg(test)]
mod tests;
