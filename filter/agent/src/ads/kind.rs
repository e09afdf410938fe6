//! The resource types of a node's config.

use filter_core::config::ResourceKind;

/// The name of a type's only resource.
pub const SINGLETON: &str = "default";

/// Type URLs on the wire, one per message of `turnpike.config.v1` that is a resource.
pub mod type_url {
    pub const VIRTUAL_KEY: &str = "type.googleapis.com/turnpike.config.v1.VirtualKey";
    pub const TEAM: &str = "type.googleapis.com/turnpike.config.v1.Team";
    pub const PROVIDER: &str = "type.googleapis.com/turnpike.config.v1.Provider";
    pub const CREDENTIAL: &str = "type.googleapis.com/turnpike.config.v1.Credential";
    pub const MODEL: &str = "type.googleapis.com/turnpike.config.v1.Model";
    pub const RULE_SET: &str = "type.googleapis.com/turnpike.config.v1.RuleSet";
    pub const PRICE_BOOK: &str = "type.googleapis.com/turnpike.config.v1.PriceBook";
    pub const LIMIT: &str = "type.googleapis.com/turnpike.config.v1.Limit";
    pub const SETTINGS: &str = "type.googleapis.com/turnpike.config.v1.Settings";
    pub const CHECKPOINT: &str = "type.googleapis.com/turnpike.config.v1.Checkpoint";
}

/// A resource type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    VirtualKey,
    Team,
    Provider,
    Credential,
    Model,
    RuleSet,
    PriceBook,
    Limit,
    Settings,
    Checkpoint,
}

impl Kind {
    /// Every type, in the order of the opening requests: the checkpoint last.
    pub const ALL: [Self; 10] = [
        Self::VirtualKey,
        Self::Team,
        Self::Provider,
        Self::Credential,
        Self::Model,
        Self::RuleSet,
        Self::PriceBook,
        Self::Limit,
        Self::Settings,
        Self::Checkpoint,
    ];

    /// The type URL on the wire.
    #[must_use]
    pub const fn type_url(self) -> &'static str {
        match self {
            Self::VirtualKey => type_url::VIRTUAL_KEY,
            Self::Team => type_url::TEAM,
            Self::Provider => type_url::PROVIDER,
            Self::Credential => type_url::CREDENTIAL,
            Self::Model => type_url::MODEL,
            Self::RuleSet => type_url::RULE_SET,
            Self::PriceBook => type_url::PRICE_BOOK,
            Self::Limit => type_url::LIMIT,
            Self::Settings => type_url::SETTINGS,
            Self::Checkpoint => type_url::CHECKPOINT,
        }
    }

    /// The type of a type URL; `None` if it is not one of ours.
    #[must_use]
    pub fn from_type_url(url: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.type_url() == url)
    }

    /// The message's name, for example `VirtualKey`.
    #[must_use]
    pub fn name(self) -> &'static str {
        let url = self.type_url();
        url.rsplit_once('.').map_or(url, |(_, name)| name)
    }
}

impl From<ResourceKind> for Kind {
    fn from(kind: ResourceKind) -> Self {
        match kind {
            ResourceKind::VirtualKey => Self::VirtualKey,
            ResourceKind::Team => Self::Team,
            ResourceKind::Provider => Self::Provider,
            ResourceKind::Credential => Self::Credential,
            ResourceKind::Model => Self::Model,
            ResourceKind::RuleSet => Self::RuleSet,
            ResourceKind::PriceBook => Self::PriceBook,
            ResourceKind::Limit => Self::Limit,
            ResourceKind::Settings => Self::Settings,
            ResourceKind::Checkpoint => Self::Checkpoint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_the_core_is_the_type_of_the_same_url() {
        for kind in ResourceKind::ALL {
            assert_eq!(Kind::from(kind).type_url(), kind.type_url());
        }
    }

    #[test]
    fn each_type_is_found_by_its_url_and_the_checkpoint_is_last() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_type_url(kind.type_url()), Some(kind));
            assert_eq!(format!("{kind:?}"), kind.name());
        }
        assert_eq!(Kind::ALL.last(), Some(&Kind::Checkpoint));
        assert_eq!(
            Kind::from_type_url("type.googleapis.com/turnpike.config.v1.Other"),
            None
        );
    }
}
