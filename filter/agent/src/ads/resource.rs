//! One resource of a node's config, of any type.

use std::fmt;

use proto::config::v1::{
    Credential, Limit, Model, PriceBook, Provider, RuleSet, Settings, Team, VirtualKey,
};

use super::{Kind, SINGLETON, WireResource};

/// A decoded resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Resource {
    VirtualKey(VirtualKey),
    Team(Team),
    Provider(Provider),
    Credential(Credential),
    Model(Model),
    RuleSet(RuleSet),
    PriceBook(PriceBook),
    Limit(Limit),
    Settings(Settings),
}

/// What a resource is called across types; shown as `Kind/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceName {
    /// The type.
    pub kind: Kind,
    /// The id of the resource, as on the wire.
    pub name: String,
}

// === impl Resource ===

impl Resource {
    /// Decodes what a response of type `kind` carries.
    ///
    /// # Errors
    /// The reason, in words for an operator, if it is not a readable message of that type whose id
    /// is its name.
    pub fn decode(kind: Kind, wire: &WireResource) -> Result<Self, String> {
        let any = wire.resource.as_ref().ok_or("it has no body")?;
        if any.type_url != kind.type_url() {
            return Err(format!("its body is of type `{}`", any.type_url));
        }
        let resource = Self::decode_value(kind, &any.value)?;
        if resource.id() != wire.name {
            return Err(format!(
                "its id is `{}`, which is not its name",
                resource.id()
            ));
        }
        Ok(resource)
    }

    /// The type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::VirtualKey(_) => Kind::VirtualKey,
            Self::Team(_) => Kind::Team,
            Self::Provider(_) => Kind::Provider,
            Self::Credential(_) => Kind::Credential,
            Self::Model(_) => Kind::Model,
            Self::RuleSet(_) => Kind::RuleSet,
            Self::PriceBook(_) => Kind::PriceBook,
            Self::Limit(_) => Kind::Limit,
            Self::Settings(_) => Kind::Settings,
        }
    }

    /// The id, which is the name on the wire.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::VirtualKey(key) => &key.id,
            Self::Team(team) => &team.id,
            Self::Provider(provider) => &provider.id,
            Self::Credential(credential) => &credential.id,
            Self::Model(model) => &model.id,
            Self::Limit(limit) => &limit.id,
            Self::RuleSet(_) | Self::PriceBook(_) | Self::Settings(_) => SINGLETON,
        }
    }

    /// The wire form, for the side that sends.
    #[must_use]
    pub fn encode(&self, version: String) -> WireResource {
        let value = match self {
            Self::VirtualKey(message) => prost::Message::encode_to_vec(message),
            Self::Team(message) => prost::Message::encode_to_vec(message),
            Self::Provider(message) => prost::Message::encode_to_vec(message),
            Self::Credential(message) => prost::Message::encode_to_vec(message),
            Self::Model(message) => prost::Message::encode_to_vec(message),
            Self::RuleSet(message) => prost::Message::encode_to_vec(message),
            Self::PriceBook(message) => prost::Message::encode_to_vec(message),
            Self::Limit(message) => prost::Message::encode_to_vec(message),
            Self::Settings(message) => prost::Message::encode_to_vec(message),
        };
        let any = super::Any {
            type_url: self.kind().type_url().to_owned(),
            value,
        };
        WireResource {
            version,
            resource: Some(any),
            name: self.id().to_owned(),
        }
    }

    fn decode_value(kind: Kind, value: &[u8]) -> Result<Self, String> {
        let resource = match kind {
            Kind::VirtualKey => Self::VirtualKey(message(value)?),
            Kind::Team => Self::Team(message(value)?),
            Kind::Provider => Self::Provider(message(value)?),
            Kind::Credential => Self::Credential(message(value)?),
            Kind::Model => Self::Model(message(value)?),
            Kind::RuleSet => Self::RuleSet(message(value)?),
            Kind::PriceBook => Self::PriceBook(message(value)?),
            Kind::Limit => Self::Limit(message(value)?),
            Kind::Settings => Self::Settings(message(value)?),
            Kind::Checkpoint => return Err("a checkpoint is not config".to_owned()),
        };
        Ok(resource)
    }
}

fn message<M: prost::Message + Default>(value: &[u8]) -> Result<M, String> {
    M::decode(value).map_err(|error| error.to_string())
}

// === impl ResourceName ===

impl ResourceName {
    /// A name.
    #[must_use]
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.name(), self.name)
    }
}
