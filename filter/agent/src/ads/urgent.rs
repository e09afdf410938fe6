//! Changes that do not wait for their checkpoint.

use proto::config::v1::{Credential, VirtualKey};

use super::{Kind, Resource, ResourceName, Resources, push::Staged, resources::Editable as _};

/// One resource of the current config that changed at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Urgent {
    /// What changed.
    pub resource: ResourceName,
    /// Its form from now on; `None`: it is gone.
    pub form: Option<Resource>,
}

impl Urgent {
    /// What of a staged change cannot wait. The form differs from the current one only where it
    /// must, so that it cannot refer to something that is staged still.
    pub(super) fn of(current: &Resources, name: &ResourceName, staged: &Staged) -> Option<Self> {
        let form = match (name.kind, staged) {
            (Kind::VirtualKey, Staged::Remove) => {
                current.virtual_keys.get(&name.name)?;
                None
            }
            (Kind::VirtualKey, Staged::Put(Resource::VirtualKey(new))) => {
                narrowed(current.virtual_keys.get(&name.name)?, new)?.map(Resource::VirtualKey)
            }
            (Kind::Team, Staged::Put(Resource::Team(new))) => {
                let mut team = current.teams.get(&name.name)?.clone();
                if team.disabled || !new.disabled {
                    return None;
                }
                team.disabled = true;
                Some(Resource::Team(team))
            }
            (Kind::Credential, Staged::Put(Resource::Credential(new))) => Some(
                Resource::Credential(rotated(current.credentials.get(&name.name)?, new)?),
            ),
            _ => return None,
        };
        Some(Self {
            resource: name.clone(),
            form,
        })
    }

    pub(super) fn apply(&self, set: &mut Resources) {
        match &self.form {
            Some(form) => set.put(form.clone()),
            None => drop(set.remove(&self.resource)),
        }
    }
}

/// The key without what the new form takes away: `None` if it takes nothing, `Some(None)` if it
/// takes every secret.
fn narrowed(key: &VirtualKey, new: &VirtualKey) -> Option<Option<VirtualKey>> {
    let mut form = key.clone();
    form.disabled |= new.disabled;
    form.secrets
        .retain(|held| new.secrets.iter().any(|kept| kept.sha256 == held.sha256));
    if form == *key {
        return None;
    }
    Some((!form.secrets.is_empty()).then_some(form))
}

/// The credential with its new secret. One that moves to another provider is not a rotation: its
/// secret must not reach the old provider.
fn rotated(credential: &Credential, new: &Credential) -> Option<Credential> {
    if new.secret == credential.secret || new.provider != credential.provider {
        return None;
    }
    Some(Credential {
        secret: new.secret.clone(),
        ..credential.clone()
    })
}
