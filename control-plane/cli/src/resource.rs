//! What the control plane keeps: one file a kind, each with its form in YAML and JSON (`Spec`),
//! its form on the wire (converted once, here), and its columns.

mod credential;
mod limit;
mod model;
mod price_book;
mod provider;
mod rule_set;
mod settings;
mod team;
mod virtual_key;
mod words;

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use credential::{Credential, CredentialSpec};
pub(crate) use limit::{Limit, LimitSpec, PREFIX as LIMIT_PREFIX};
pub(crate) use model::{Model, ModelSpec, TargetSpec};
pub(crate) use price_book::{PriceBook, PriceBookSpec, defaults};
pub(crate) use provider::{Provider, ProviderSpec};
pub(crate) use rule_set::{RuleSet, RuleSetSpec};
pub(crate) use settings::{Settings, SettingsSpec};
pub(crate) use team::{Team, TeamSpec};
pub(crate) use virtual_key::{VirtualKey, VirtualKeySpec};
pub(crate) use words::{
    Capability, CredentialPlace, Dialect, Effort, Enforcement, LimitSubject, LimitUnit,
    LimitWindow, OnExceed, OnUnavailable, OnUnbounded, Quirk,
};

use crate::failure::CallError;
use crate::link::Link;
use crate::moment::Moment;
use crate::secret::Secret;
use crate::table::{Column, Table};

/// Kinds of resources, in the order in which one may name the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Kind {
    Provider,
    Team,
    VirtualKey,
    Credential,
    Model,
    RuleSet,
    PriceBook,
    Limit,
    Settings,
}

/// A resource as the control plane has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored<S> {
    /// Empty for a singleton.
    pub(crate) id: String,
    pub(crate) spec: S,
    pub(crate) status: Status,
}

/// What only the control plane sets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The config version that holds this state.
    pub(crate) config_version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) create_time: Option<Moment>,
    pub(crate) update_time: Option<Moment>,
    /// Keys only: the first characters of the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret_hint: Option<String>,
    /// Price books only: the version that usage records name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u64>,
}

/// A resource as `-o json` prints it and `apply` reads it.
#[derive(Debug, Serialize)]
pub(crate) struct View<'a, S> {
    kind: Kind,
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    spec: &'a S,
    status: &'a Status,
    /// The plaintext of a key that was just made.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
}

/// A page of a list, and the token of the next one (empty: none).
pub(crate) type Page<S> = (Vec<Stored<S>>, String);

/// A kind of which there are many, each with an id.
pub(crate) trait Collection {
    type Spec: Clone + PartialEq + Serialize + DeserializeOwned;
    const KIND: Kind;
    const COLUMNS: &'static [Column];

    fn row(stored: &Stored<Self::Spec>) -> Vec<String>;

    /// The local file of the secret that a document names, if the kind has one.
    fn secret_file(_spec: &Self::Spec) -> Option<&Path> {
        None
    }

    /// Whether a secret goes along with an update, too, and not with the creation only.
    const UPDATES_SECRET: bool = false;

    /// Creates it; the second value is the secret that the control plane made, if it made one.
    async fn create(
        link: &Link,
        id: &str,
        spec: &Self::Spec,
        secret: Option<&Secret>,
    ) -> Result<(Stored<Self::Spec>, Option<Secret>), CallError>;

    async fn get(link: &Link, id: &str) -> Result<Stored<Self::Spec>, CallError>;

    /// Those whose owner is `owner` (empty: all), for the kinds whose list can be narrowed so.
    async fn list(
        link: &Link,
        owner: &str,
        page_size: i32,
        page_token: String,
    ) -> Result<Page<Self::Spec>, CallError>;

    /// Replaces the whole spec.
    async fn update(
        link: &Link,
        id: &str,
        spec: &Self::Spec,
        secret: Option<&Secret>,
    ) -> Result<Stored<Self::Spec>, CallError>;

    /// Deletes it and answers with the config version without it.
    async fn delete(link: &Link, id: &str) -> Result<u64, CallError>;

    /// What holds where the spec sets nothing, by field, for the kinds that have such fields.
    fn defaults(_spec: &Self::Spec) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Whether applying `wanted` would change nothing.
    fn is_same(stored: &Self::Spec, wanted: &Self::Spec) -> bool;
}

/// A kind of which there is one.
pub(crate) trait Singleton {
    type Spec: PartialEq + Serialize + DeserializeOwned;
    const KIND: Kind;

    fn table(stored: &Stored<Self::Spec>) -> Table;

    async fn get(link: &Link) -> Result<Stored<Self::Spec>, CallError>;

    /// Replaces the whole spec.
    async fn replace(link: &Link, spec: &Self::Spec) -> Result<Stored<Self::Spec>, CallError>;

    /// Whether applying `wanted` would change nothing.
    fn is_same(stored: &Self::Spec, wanted: &Self::Spec) -> bool;
}

// === impl Kind ===

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Provider,
        Self::Team,
        Self::VirtualKey,
        Self::Credential,
        Self::Model,
        Self::RuleSet,
        Self::PriceBook,
        Self::Limit,
        Self::Settings,
    ];

    /// As documents write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Provider => "Provider",
            Self::Team => "Team",
            Self::VirtualKey => "VirtualKey",
            Self::Credential => "Credential",
            Self::Model => "Model",
            Self::RuleSet => "RuleSet",
            Self::PriceBook => "PriceBook",
            Self::Limit => "Limit",
            Self::Settings => "Settings",
        }
    }

    /// As sentences write it.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Team => "team",
            Self::VirtualKey => "virtual key",
            Self::Credential => "credential",
            Self::Model => "model",
            Self::RuleSet => "rule set",
            Self::PriceBook => "price book",
            Self::Limit => "limit",
            Self::Settings => "settings",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn is_singleton(self) -> bool {
        matches!(self, Self::RuleSet | Self::PriceBook | Self::Settings)
    }

    /// `team acme`, `rule set`.
    pub(crate) fn sentence(self, id: &str) -> String {
        match id {
            "" => self.noun().to_owned(),
            id => format!("{} {id}", self.noun()),
        }
    }
}

// === impl Stored ===

impl<S: Serialize> Stored<S> {
    pub(crate) fn view<'a>(&'a self, kind: Kind, secret: Option<&'a Secret>) -> View<'a, S> {
        View {
            kind,
            id: &self.id,
            spec: &self.spec,
            status: &self.status,
            secret: secret.map(Secret::expose),
        }
    }
}

/// The id in a resource name such as `teams/acme`.
fn id_of(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

/// A resource name, or nothing for no id.
fn name_of(prefix: &str, id: &str) -> String {
    match id {
        "" => String::new(),
        id => format!("{prefix}{id}"),
    }
}

fn joined<T: ToString>(items: &[T]) -> String {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    texts.join(",")
}

fn all_or(models: &[String]) -> String {
    match models {
        [] => "all".to_owned(),
        models => joined(models),
    }
}

fn yes(flag: bool) -> String {
    if flag {
        "yes".to_owned()
    } else {
        String::new()
    }
}

/// Equal as sets.
fn same_set<T: Ord + Clone>(left: &[T], right: &[T]) -> bool {
    let set = |items: &[T]| {
        items
            .iter()
            .cloned()
            .collect::<std::collections::BTreeSet<T>>()
    };
    set(left) == set(right)
}
