//! The public models, and the targets that answer them.

use std::collections::BTreeMap;
use std::ops::Range;

use proto::config::v1::{self as wire, Capability, Effort};

use super::ResourceKind;
use super::compile::Faults;
use super::prices::Prices;
use super::providers::{Paths, Provider};

const DEFAULT_FIRST_TOKEN_TIMEOUT_MS: u32 = 120_000;
const MAX_NAME_CHARS: usize = 128;

/// `auto` and `auto:<effort>` ask for the rules; no model may go by such a name.
pub(crate) const AUTO: &str = "auto";

/// A public model.
pub(crate) struct Model {
    pub(crate) id: Box<str>,
    pub(crate) targets: Vec<Target>,
    pub(crate) capabilities: Capabilities,
    pub(crate) efforts: Efforts,
    /// Tokens; 0: unknown.
    pub(crate) context_window: u64,
    pub(crate) created_at_s: u64,
    pub(crate) disabled: bool,
}

/// A provider and the model's name there.
pub(crate) struct Target {
    pub(crate) provider: usize,
    pub(crate) upstream_model: Box<str>,
    pub(crate) paths: Paths,
    /// `provider/upstream-model`, as `x-turnpike-target` shows it.
    pub(crate) label: Box<str>,
    pub(crate) first_token_timeout_ms: u32,
    /// The target's entries in the price book.
    pub(crate) prices: Range<usize>,
}

/// A set of capabilities.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Capabilities(u32);

impl Capabilities {
    pub(crate) fn insert(&mut self, capability: Capability) {
        self.0 |= 1 << capability as u32;
    }

    pub(crate) fn contains_all(self, needed: Self) -> bool {
        self.0 & needed.0 == needed.0
    }
}

/// A set of efforts; the default one holds none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Efforts(u32);

impl Efforts {
    pub(crate) const EACH: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

    pub(crate) fn contains(self, effort: Effort) -> bool {
        self.0 & 1 << effort as u32 != 0
    }

    /// An empty list on the wire means all.
    pub(super) fn compile(wire: &[i32], mut fault: impl FnMut(usize, &'static str)) -> Self {
        let mut efforts = Self::default();
        for (at, &effort) in wire.iter().enumerate() {
            match Effort::try_from(effort) {
                Ok(Effort::Unspecified) | Err(_) => fault(at, "no such effort"),
                Ok(effort) => efforts.0 |= 1 << effort as u32,
            }
        }
        if wire.is_empty() {
            efforts.0 = Self::EACH
                .iter()
                .fold(0, |all, &effort| all | 1 << effort as u32);
        }
        efforts
    }
}

pub(super) fn compile(
    wire: &BTreeMap<String, wire::Model>,
    providers: &[Provider],
    prices: &Prices,
    faults: &mut Faults,
) -> Vec<Model> {
    const KIND: ResourceKind = ResourceKind::Model;
    let mut models = Vec::with_capacity(wire.len());
    for (name, model) in wire {
        if let Some(reason) = fault_of_name(name, &model.id) {
            faults.add(KIND, name, "id", reason);
            continue;
        }
        let targets = compile_targets(model, providers, prices, faults);
        if targets.is_empty() {
            faults.add(KIND, name, "targets", "there is none to answer");
            continue;
        }
        let mut capabilities = Capabilities::default();
        for (at, &capability) in model.capabilities.iter().enumerate() {
            match Capability::try_from(capability) {
                Ok(Capability::Unspecified) | Err(_) => {
                    faults.add(
                        KIND,
                        name,
                        format!("capabilities[{at}]"),
                        "no such capability",
                    );
                }
                Ok(capability) => capabilities.insert(capability),
            }
        }
        models.push(Model {
            id: name.as_str().into(),
            targets,
            capabilities,
            efforts: Efforts::compile(&model.efforts, |at, reason| {
                faults.add(KIND, name, format!("efforts[{at}]"), reason);
            }),
            context_window: model.context_window,
            created_at_s: model.created_at_s,
            disabled: model.disabled,
        });
    }
    models
}

fn fault_of_name(name: &str, id: &str) -> Option<&'static str> {
    if name != id {
        return Some("differs from the resource's name");
    }
    if !(1..=MAX_NAME_CHARS).contains(&name.chars().count())
        || name.contains(|c: char| c.is_control() || c == '*')
    {
        return Some("must be 1-128 characters without control characters and *");
    }
    if name == AUTO
        || name
            .strip_prefix(AUTO)
            .is_some_and(|rest| rest.starts_with(':'))
    {
        return Some("is reserved for the rules");
    }
    None
}

fn compile_targets(
    model: &wire::Model,
    providers: &[Provider],
    prices: &Prices,
    faults: &mut Faults,
) -> Vec<Target> {
    let mut targets = Vec::with_capacity(model.targets.len());
    for (at, target) in model.targets.iter().enumerate() {
        let Ok(provider) =
            providers.binary_search_by(|provider| (*provider.id).cmp(&target.provider))
        else {
            let place = format!("targets[{at}].provider");
            faults.add(
                ResourceKind::Model,
                &model.id,
                place,
                "there is no such provider",
            );
            continue;
        };
        if target.upstream_model.contains(char::is_control) {
            let place = format!("targets[{at}].upstream_model");
            faults.add(
                ResourceKind::Model,
                &model.id,
                place,
                "has a control character",
            );
            continue;
        }
        let upstream_model = if target.upstream_model.is_empty() {
            &model.id
        } else {
            &target.upstream_model
        };
        let paths = providers
            .get(provider)
            .map(|provider| provider.paths(upstream_model))
            .unwrap_or_default();
        targets.push(Target {
            provider,
            upstream_model: upstream_model.as_str().into(),
            paths,
            label: format!("{}/{upstream_model}", target.provider).into(),
            first_token_timeout_ms: match target.first_token_timeout_ms {
                0 => DEFAULT_FIRST_TOKEN_TIMEOUT_MS,
                timeout_ms => timeout_ms,
            },
            prices: prices.entries_of(&target.provider, upstream_model),
        });
    }
    targets
}
