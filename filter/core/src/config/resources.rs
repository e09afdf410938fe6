//! Every resource a node runs on, as it came over the wire.

use std::collections::BTreeMap;
use std::fmt;

use proto::config::v1::{
    Checkpoint, Credential, Limit, Model, PriceBook, Provider, RuleSet, Settings, Team, VirtualKey,
};

/// The name of the one resource of a singleton kind.
pub const SINGLETON_NAME: &str = "default";

const TYPE_URL_PREFIX: &str = "type.googleapis.com/turnpike.config.v1.";

/// Every resource a node runs on, by id: what a node keeps on disk, what is staged until a
/// checkpoint, and what [`compile`](super::compile) turns into a config.
#[derive(Clone, Default, PartialEq)]
pub struct Resources {
    /// Keys by id.
    pub virtual_keys: BTreeMap<String, VirtualKey>,
    /// Teams by id.
    pub teams: BTreeMap<String, Team>,
    /// Providers by id.
    pub providers: BTreeMap<String, Provider>,
    /// Credentials by id, secrets in plaintext.
    pub credentials: BTreeMap<String, Credential>,
    /// Models by public name.
    pub models: BTreeMap<String, Model>,
    /// The rules; `None`: there are none.
    pub rule_set: Option<RuleSet>,
    /// The prices; `None`: every price is unknown.
    pub price_book: Option<PriceBook>,
    /// Limits by id.
    pub limits: BTreeMap<String, Limit>,
    /// The settings; `None`: every default.
    pub settings: Option<Settings>,
    /// The last checkpoint; `None`: nothing was ever pushed.
    pub checkpoint: Option<Checkpoint>,
}

/// Counts only: keys are hashes and credentials are plaintext.
impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resources")
            .field("virtual_keys", &self.virtual_keys.len())
            .field("teams", &self.teams.len())
            .field("providers", &self.providers.len())
            .field("credentials", &self.credentials.len())
            .field("models", &self.models.len())
            .field(
                "rules",
                &self.rule_set.as_ref().map_or(0, |set| set.rules.len()),
            )
            .field(
                "prices",
                &self.price_book.as_ref().map_or(0, |book| book.prices.len()),
            )
            .field("limits", &self.limits.len())
            .field(
                "version",
                &self
                    .checkpoint
                    .as_ref()
                    .map_or(0, |checkpoint| checkpoint.version),
            )
            .finish_non_exhaustive()
    }
}

/// The kinds of resources, one message each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// [`VirtualKey`]
    VirtualKey,
    /// [`Team`]
    Team,
    /// [`Provider`]
    Provider,
    /// [`Credential`]
    Credential,
    /// [`Model`]
    Model,
    /// [`RuleSet`]
    RuleSet,
    /// [`PriceBook`]
    PriceBook,
    /// [`Limit`]
    Limit,
    /// [`Settings`]
    Settings,
    /// [`Checkpoint`]
    Checkpoint,
}

impl ResourceKind {
    /// Every kind, in an order in which each one comes after those it refers to; the checkpoint last.
    pub const ALL: [Self; 10] = [
        Self::Settings,
        Self::Team,
        Self::VirtualKey,
        Self::Provider,
        Self::Credential,
        Self::Model,
        Self::RuleSet,
        Self::PriceBook,
        Self::Limit,
        Self::Checkpoint,
    ];

    /// The type URL on the wire.
    pub const fn type_url(self) -> &'static str {
        match self {
            Self::VirtualKey => "type.googleapis.com/turnpike.config.v1.VirtualKey",
            Self::Team => "type.googleapis.com/turnpike.config.v1.Team",
            Self::Provider => "type.googleapis.com/turnpike.config.v1.Provider",
            Self::Credential => "type.googleapis.com/turnpike.config.v1.Credential",
            Self::Model => "type.googleapis.com/turnpike.config.v1.Model",
            Self::RuleSet => "type.googleapis.com/turnpike.config.v1.RuleSet",
            Self::PriceBook => "type.googleapis.com/turnpike.config.v1.PriceBook",
            Self::Limit => "type.googleapis.com/turnpike.config.v1.Limit",
            Self::Settings => "type.googleapis.com/turnpike.config.v1.Settings",
            Self::Checkpoint => "type.googleapis.com/turnpike.config.v1.Checkpoint",
        }
    }

    /// The kind of a type URL; `None` for one that is not ours.
    pub fn from_type_url(type_url: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.type_url() == type_url)
    }

    /// The word for one resource of this kind, as in `model gpt-x`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::VirtualKey => "virtual_key",
            Self::Team => "team",
            Self::Provider => "provider",
            Self::Credential => "credential",
            Self::Model => "model",
            Self::RuleSet => "rule_set",
            Self::PriceBook => "price_book",
            Self::Limit => "limit",
            Self::Settings => "settings",
            Self::Checkpoint => "checkpoint",
        }
    }

    /// The message's name without its package, as in `VirtualKey`.
    pub fn message_name(self) -> &'static str {
        self.type_url()
            .strip_prefix(TYPE_URL_PREFIX)
            .unwrap_or_default()
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
