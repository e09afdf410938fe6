//! A config that waits for its compilation.

use std::collections::BTreeMap;

use super::{
    Mode, Refused, Resource, ResourceName, Resources, Urgent,
    push::{Push, Staged},
    resources::Editable as _,
};

/// Why a resource is not in use as it was sent.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// The form that was sent, tried again with each push: what it lacked may have come. `None` if
    /// it could not be read.
    pub(super) newest: Option<Resource>,
    pub(super) reason: String,
}

pub(super) type Refusals = BTreeMap<ResourceName, Refusal>;

/// What asked for the compilation.
#[derive(Debug)]
pub(super) enum Cause {
    /// A push has ended.
    Push(Push),
    Urgent(Vec<Urgent>),
}

#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) set: Resources,
    pub(super) cause: Cause,
    /// What `set` does not hold in the form that was sent.
    pub(super) refused: Refusals,
}

impl Candidate {
    pub(super) fn of_push(current: &Resources, refused: &Refusals, mut push: Push) -> Self {
        let staged = std::mem::take(&mut push.staged);
        let (mut set, mut still_refused) = match push.name.mode {
            Mode::Full => (Resources::default(), Refusals::new()),
            Mode::Delta { .. } => desired(current, refused),
        };
        set.checkpoint = Some(push.name.checkpoint.clone());
        set.checkpoint = Some(push.name.checkpoint.clone());
        for (name, staged) in staged {
            still_refused.remove(&name);
            match staged {
                Staged::Put(resource) => set.put(resource),
                Staged::Remove => drop(set.remove(&name)),
                Staged::Unreadable(reason) => {
                    match current.resource(&name) {
                        Some(good) => set.put(good),
                        None => drop(set.remove(&name)),
                    }
                    still_refused.insert(
                        name,
                        Refusal {
                            newest: None,
                            reason,
                        },
                    );
                }
            }
        }
        Self {
            set,
            cause: Cause::Push(push),
            refused: still_refused,
        }
    }

    pub(super) fn of_urgent(current: &Resources, changes: Vec<Urgent>) -> Self {
        let mut set = current.clone();
        for change in &changes {
            change.apply(&mut set);
        }
        Self {
            set,
            cause: Cause::Urgent(changes),
            refused: Refusals::new(),
        }
    }

    /// Takes each rejected resource back to its form in `current`, or out if that is the form that
    /// was rejected. False if none of them is in the set, so that trying again is no use.
    pub(super) fn step_back(&mut self, current: &Resources, rejected: &[Refused]) -> bool {
        let mut stepped = false;
        for (name, reason) in by_name(rejected) {
            let Some(form) = self.set.remove(&name) else {
                continue;
            };
            stepped = true;
            if let Some(good) = current.resource(&name).filter(|good| *good != form) {
                self.set.put(good);
            }
            // The first rejection is of the newest form, later ones of what it was taken back to.
            self.refused.entry(name).or_insert(Refusal {
                newest: Some(form),
                reason,
            });
        }
        if let Cause::Urgent(changes) = &mut self.cause {
            changes.retain(|change| self.set.resource(&change.resource) == change.form);
        }
        stepped
    }
}

/// What the control plane wants the node to have: the current set with the refused forms in it.
/// What could not be read stays refused.
fn desired(current: &Resources, refused: &Refusals) -> (Resources, Refusals) {
    let mut set = current.clone();
    let mut unreadable = Refusals::new();
    for (name, refusal) in refused {
        match &refusal.newest {
            Some(newest) => set.put(newest.clone()),
            None => drop(unreadable.insert(name.clone(), refusal.clone())),
        }
    }
    (set, unreadable)
}

/// One entry a resource, whatever number of errors it had.
fn by_name(rejected: &[Refused]) -> BTreeMap<ResourceName, String> {
    let mut reasons: BTreeMap<ResourceName, String> = BTreeMap::new();
    for refused in rejected {
        let reason = reasons.entry(refused.resource.clone()).or_default();
        if !reason.is_empty() {
            reason.push_str("; ");
        }
        reason.push_str(&refused.reason);
    }
    reasons
}
