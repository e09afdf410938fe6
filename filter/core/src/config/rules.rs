//! The rule set: which models answer `auto`, and which answer a public name that a rule claims.

use std::collections::BTreeSet;

use proto::config::v1::{self as wire, Effort};

use super::compile::Faults;
use super::models::{Efforts, Model};
use super::{ResourceKind, SINGLETON_NAME};

const DEFAULT_MAX_ATTEMPTS: usize = 3;
const MAX_ATTEMPTS: u32 = 10;
const MAX_NAME_BYTES: usize = 64;
const MAX_ATTRIBUTE_BYTES: usize = 256;
const KIND: ResourceKind = ResourceKind::RuleSet;

/// Attempts in a plan that no rule bounds.
pub(crate) const PLAN_ATTEMPTS: usize = DEFAULT_MAX_ATTEMPTS;

/// The enabled rules, highest priority first.
pub(crate) struct Rules(Vec<Rule>);

pub(crate) struct Rule {
    pub(crate) name: Box<str>,
    priority: i32,
    efforts: Efforts,
    /// Each must equal the request's attribute of that name.
    attributes: Vec<(Box<str>, Box<str>)>,
    /// The public name that the rule is for; `None`: it is for `auto`.
    match_model: Option<Box<str>>,
    /// Indexes of models, tried in this order.
    pub(crate) models: Vec<usize>,
    pub(crate) max_attempts: usize,
    /// Indexes of models that are tried for a prompt that was too long.
    pub(crate) context_length_models: Vec<usize>,
    /// The same, for content that was refused by a policy.
    pub(crate) content_policy_models: Vec<usize>,
    /// What providers say of a prompt that is too long, in lower case.
    pub(crate) context_length_patterns: Vec<Box<str>>,
}

impl Rules {
    /// The index of the first rule for this name (`None`: for `auto`), effort and attributes.
    pub(crate) fn find<'a>(
        &self,
        public_name: Option<&str>,
        effort: Effort,
        attribute: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<usize> {
        self.0.iter().position(|rule| {
            rule.match_model.as_deref() == public_name
                && rule.efforts.contains(effort)
                && rule
                    .attributes
                    .iter()
                    .all(|(name, value)| attribute(name) == Some(&**value))
        })
    }

    pub(crate) fn rule(&self, index: usize) -> Option<&Rule> {
        self.0.get(index)
    }

    /// The index of an enabled rule by its name.
    pub(super) fn index_of(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|rule| *rule.name == *name)
    }

    /// True when some rule is for `auto`.
    pub(crate) fn serve_auto(&self) -> bool {
        self.0.iter().any(|rule| rule.match_model.is_none())
    }
}

pub(super) fn compile(
    wire: Option<&wire::RuleSet>,
    models: &[Model],
    faults: &mut Faults,
) -> Rules {
    let mut rules = Vec::new();
    let mut names = BTreeSet::new();
    for (at, wire) in wire.iter().flat_map(|set| set.rules.iter()).enumerate() {
        let mut place = Place { at, faults };
        if !names.insert(wire.name.as_str()) {
            place.fault("name", "is another rule's name too");
            continue;
        }
        let rule = compile_rule(wire, models, &mut place);
        rules.extend(rule.filter(|_| !wire.disabled));
    }
    // Stable: within a priority the position decides.
    rules.sort_by_key(|rule: &Rule| std::cmp::Reverse(rule.priority));
    let rules = Rules(rules);
    for effort in Efforts::EACH {
        if rules.serve_auto() && rules.find(None, effort, |_| None).is_none() {
            let reason = format!("no rule without attributes serves {}", effort.as_str_name());
            faults.add(KIND, SINGLETON_NAME, "rules", reason);
        }
    }
    rules
}

/// A rule's place in the set, to name its faults by.
struct Place<'a> {
    at: usize,
    faults: &'a mut Faults,
}

impl Place<'_> {
    fn fault(&mut self, field: &str, reason: &str) {
        self.faults.add(
            KIND,
            SINGLETON_NAME,
            format!("rules[{}].{field}", self.at),
            reason,
        );
    }

    /// The indexes of models by their names; names of none are left out.
    fn indexes(
        &mut self,
        field: &str,
        names: &[String],
        index_of: impl Fn(&str) -> Option<usize>,
    ) -> Vec<usize> {
        let mut indexes = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            match index_of(name) {
                Some(index) => indexes.push(index),
                None => self.fault(&format!("{field}[{at}]"), "there is no such model"),
            }
        }
        indexes
    }
}

/// A rule that cannot mean what was written is left out; one that merely names a model that does
/// not exist serves the others.
fn compile_rule(wire: &wire::Rule, models: &[Model], place: &mut Place<'_>) -> Option<Rule> {
    let index_of = |name: &str| models.binary_search_by(|model| (*model.id).cmp(name)).ok();
    let mut sound = true;
    let mut fault = |field: &str, reason: &str| {
        place.fault(field, reason);
        sound = false;
    };
    if wire.name.is_empty()
        || wire.name.len() > MAX_NAME_BYTES
        || !wire
            .name
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
    {
        fault("name", "must be 1-64 printable ASCII characters");
    }
    let efforts = Efforts::compile(&wire.efforts, |at, reason| {
        fault(&format!("efforts[{at}]"), reason);
    });
    if wire.attributes.iter().any(|(name, value)| {
        name.is_empty() || name.len() > MAX_ATTRIBUTE_BYTES || value.len() > MAX_ATTRIBUTE_BYTES
    }) {
        fault(
            "attributes",
            "names must not be empty, names and values at most 256 bytes",
        );
    }
    if wire.max_attempts > MAX_ATTEMPTS {
        fault("max_attempts", "must be at most 10");
    }
    if !wire.match_model.is_empty() && index_of(&wire.match_model).is_none() {
        fault("match_model", "there is no such model");
    }
    let mut indexes = |field: &str, names: &[String]| place.indexes(field, names, index_of);
    let context_length_models = indexes("context_length_models", &wire.context_length_models);
    let content_policy_models = indexes("content_policy_models", &wire.content_policy_models);
    let models = indexes("models", &wire.models);
    if models.is_empty() {
        place.fault("models", "there is none to answer");
        return None;
    }
    sound.then(|| Rule {
        name: wire.name.as_str().into(),
        priority: wire.priority,
        efforts,
        attributes: wire
            .attributes
            .iter()
            .map(|(name, value)| (name.as_str().into(), value.as_str().into()))
            .collect(),
        match_model: Some(wire.match_model.as_str())
            .filter(|name| !name.is_empty())
            .map(Into::into),
        models,
        max_attempts: match wire.max_attempts {
            0 => DEFAULT_MAX_ATTEMPTS,
            attempts => usize::try_from(attempts).unwrap_or(DEFAULT_MAX_ATTEMPTS),
        },
        context_length_models,
        content_policy_models,
        context_length_patterns: wire
            .context_length_patterns
            .iter()
            .map(|pattern| pattern.to_ascii_lowercase().into())
            .collect(),
    })
}
