//! Whether the control plane has what somebody names: before a change, or to tell a typo.

use std::collections::BTreeMap;

use crate::failure::CallError;
use crate::link::Link;
use crate::output::Output;
use crate::resource::{Collection, Kind, Limit, Model, Provider, Team, VirtualKey};

/// What was asked for, and whether it is there.
#[derive(Debug)]
pub(crate) struct Presence<'a> {
    link: &'a Link,
    known: BTreeMap<(Kind, String), bool>,
}

impl<'a> Presence<'a> {
    pub(crate) fn new(link: &'a Link) -> Self {
        let known = BTreeMap::new();
        Self { link, known }
    }

    /// Asks the control plane, once for each name.
    pub(crate) async fn has(&mut self, kind: Kind, id: &str) -> anyhow::Result<bool> {
        let key = (kind, id.to_owned());
        if let Some(&is_there) = self.known.get(&key) {
            return Ok(is_there);
        }
        let is_there = match look_up(self.link, kind, id).await {
            Ok(()) => true,
            Err(error) if error.is_not_found() => false,
            Err(error) => {
                let what = kind.sentence(id);
                return Err(self.link.explain(format_args!("get {what}"), error));
            }
        };
        self.known.insert(key, is_there);
        Ok(is_there)
    }

    /// Says on stderr which of these names nobody has. A name that has yet to be made is no
    /// fault, and neither is one that cannot be looked up.
    pub(crate) async fn note_absent(
        &mut self,
        output: &mut Output<'_>,
        kind: Kind,
        ids: impl IntoIterator<Item = &str>,
    ) -> anyhow::Result<()> {
        for id in ids {
            let is_pattern = id.is_empty() || id.ends_with('*');
            if !is_pattern && matches!(self.has(kind, id).await, Ok(false)) {
                output.note(format_args!("note: there is no {} `{id}` now", kind.noun()))?;
            }
        }
        Ok(())
    }
}

async fn look_up(link: &Link, kind: Kind, id: &str) -> Result<(), CallError> {
    match kind {
        Kind::Provider => Provider::get(link, id).await.map(drop),
        Kind::Team => Team::get(link, id).await.map(drop),
        Kind::VirtualKey => VirtualKey::get(link, id).await.map(drop),
        Kind::Model => Model::get(link, id).await.map(drop),
        Kind::Limit => Limit::get(link, id).await.map(drop),
        // Nothing names these by id.
        Kind::Credential | Kind::RuleSet | Kind::PriceBook | Kind::Settings => Ok(()),
    }
}
