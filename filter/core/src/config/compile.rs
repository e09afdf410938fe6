//! From resources to a compiled config: what is faulty is left out and told.

use std::fmt::Display;

use super::limits::{self, Joins};
use super::{Compiled, Fault, ResourceKind, Resources};
use super::{credentials, keys, models, prices, providers, rules, settings};

/// Builds the indexes. A faulty rule, model, key or other part is left out and named in the
/// faults: a node serves the rest, the control plane refuses a change that has any.
pub fn compile(resources: &Resources) -> (Compiled, Vec<Fault>) {
    let mut faults = Faults::default();
    let settings = settings::compile(resources.settings.as_ref(), &mut faults);
    let keys = keys::compile(resources, &mut faults);
    let providers = providers::compile(&resources.providers, &mut faults);
    let credentials = credentials::compile(resources, &keys, &providers, &mut faults);
    let prices = prices::compile(
        resources.price_book.as_ref(),
        resources.settings.as_ref(),
        &mut faults,
    );
    let models = models::compile(&resources.models, &providers, &prices, &mut faults);
    let rules = rules::compile(resources.rule_set.as_ref(), &models, &mut faults);
    let joins = Joins {
        keys: &keys,
        providers: &providers,
        rules: &rules,
    };
    let limits = limits::compile(resources, &joins, &mut faults);
    let version = resources
        .checkpoint
        .as_ref()
        .map_or(0, |checkpoint| checkpoint.version);
    let compiled = Compiled {
        version,
        settings,
        keys,
        providers,
        credentials,
        models,
        rules,
        prices,
        limits,
    };
    (compiled, faults.into_vec())
}

#[derive(Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn into_vec(self) -> Vec<Fault> {
        self.0
    }

    pub(super) fn add(
        &mut self,
        kind: ResourceKind,
        name: &str,
        place: impl Into<String>,
        reason: impl Display,
    ) {
        self.0.push(Fault {
            kind,
            name: name.to_owned(),
            place: place.into(),
            reason: reason.to_string(),
        });
    }

    /// True when the resource's id has the form of an id and is the name it goes by.
    pub(super) fn check_id(&mut self, kind: ResourceKind, name: &str, id: &str) -> bool {
        if name != id {
            self.add(kind, name, "id", "differs from the resource's name");
            return false;
        }
        let well_formed = (1..=64).contains(&id.len())
            && id
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if !well_formed {
            self.add(kind, name, "id", "must be 1-64 characters of [a-z0-9-]");
        }
        well_formed
    }
}

#[cfg(test)]
mod tests;
