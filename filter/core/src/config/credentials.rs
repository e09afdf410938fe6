//! Provider credentials, by provider and owner.

use std::fmt;
use std::ops::Range;

use proto::config::v1::CredentialPlace;

use super::compile::Faults;
use super::keys::Keys;
use super::providers::Provider;
use super::{ResourceKind, Resources};

const MAX_WEIGHT: u32 = 1000;

/// Every credential, sorted by provider and owner, so that those of one owner at one provider
/// stand together.
pub(crate) struct Credentials(Vec<Credential>);

pub(crate) struct Credential {
    pub(crate) id: Box<str>,
    pub(crate) secret: Secret,
    provider: usize,
    owner: Owner,
    weight: u32,
}

/// Whom a credential belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Key(usize),
    Team(usize),
    Everyone,
}

/// A provider secret and the header value that carries it.
pub(crate) struct Secret {
    pub(crate) plaintext: Box<str>,
    pub(crate) header_value: Box<str>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

impl Credentials {
    /// Chooses a credential for a caller at a provider: of the most specific kind that there is,
    /// by weight, of those that `is_well` if any is. `draw` is uniform over all of `u64`.
    pub(crate) fn choose(
        &self,
        provider: usize,
        key: usize,
        team: usize,
        draw: u64,
        is_well: &dyn Fn(usize) -> bool,
    ) -> Option<usize> {
        let owners = [Owner::Key(key), Owner::Team(team), Owner::Everyone];
        let group = owners
            .into_iter()
            .map(|owner| self.of_owner(provider, owner))
            .find(|group| !group.is_empty())?;
        self.choose_of(group.clone(), draw, is_well)
            .or_else(|| self.choose_of(group, draw, &|_| true))
    }

    /// Another that is well, of those that stand beside one, which failed.
    pub(crate) fn another(
        &self,
        than: usize,
        draw: u64,
        is_well: &dyn Fn(usize) -> bool,
    ) -> Option<usize> {
        let Credential {
            provider, owner, ..
        } = *self.0.get(than)?;
        let group = self.of_owner(provider, owner);
        if group.len() < 2 {
            return None;
        }
        self.choose_of(group, draw, &|index| index != than && is_well(index))
    }

    pub(crate) fn credential(&self, index: usize) -> Option<&Credential> {
        self.0.get(index)
    }

    /// Those of one owner at one provider.
    fn of_owner(&self, provider: usize, owner: Owner) -> Range<usize> {
        let name = |one: &Credential| (one.provider, one.owner);
        let first = self.0.partition_point(|one| name(one) < (provider, owner));
        // They are few.
        let from_first = self.0.iter().skip(first);
        let group = from_first.take_while(|one| name(one) == (provider, owner));
        first..first + group.count()
    }

    fn choose_of(
        &self,
        group: Range<usize>,
        draw: u64,
        may_be: &dyn Fn(usize) -> bool,
    ) -> Option<usize> {
        let weights = || {
            let group = group.clone().filter(|index| may_be(*index));
            group.filter_map(|index| Some((index, u64::from(self.0.get(index)?.weight))))
        };
        let total: u64 = weights().map(|(_, weight)| weight).sum();
        let mut point = draw.checked_rem(total)?;
        let mut weights = weights();
        let chosen = weights.find(|(_, weight)| {
            let is_chosen = point < *weight;
            point = point.saturating_sub(*weight);
            is_chosen
        });
        chosen.map(|(index, _)| index)
    }
}

pub(super) fn compile(
    resources: &Resources,
    keys: &Keys,
    providers: &[Provider],
    faults: &mut Faults,
) -> Credentials {
    let mut credentials = Vec::with_capacity(resources.credentials.len());
    for (name, wire) in &resources.credentials {
        if !faults.check_id(ResourceKind::Credential, name, &wire.id) {
            continue;
        }
        match compile_one(wire, keys, providers) {
            Ok(credential) => credentials.push(credential),
            Err((place, reason)) => faults.add(ResourceKind::Credential, name, place, reason),
        }
    }
    credentials.sort_by(|a, b| (a.provider, a.owner, &a.id).cmp(&(b.provider, b.owner, &b.id)));
    Credentials(credentials)
}

fn compile_one(
    wire: &proto::config::v1::Credential,
    keys: &Keys,
    providers: &[Provider],
) -> Result<Credential, (&'static str, &'static str)> {
    let provider = providers
        .binary_search_by(|provider| (*provider.id).cmp(&wire.provider))
        .map_err(|_| ("provider", "there is no such provider"))?;
    let owner = match (wire.team.as_str(), wire.key.as_str()) {
        ("", "") => Owner::Everyone,
        (team, "") => Owner::Team(
            keys.team_index(team)
                .ok_or(("team", "there is no such team"))?,
        ),
        ("", key) => Owner::Key(keys.key_index(key).ok_or(("key", "there is no such key"))?),
        _ => {
            return Err((
                "key",
                "a credential belongs to a team or to a key, not to both",
            ));
        }
    };
    if !(1..=MAX_WEIGHT).contains(&wire.weight) {
        return Err(("weight", "must be 1-1000"));
    }
    // A secret read from a file often ends in a newline.
    let plaintext = wire.secret.trim();
    if plaintext.is_empty() || !plaintext.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(("secret", "must be visible ASCII characters, at least one"));
    }
    let place = providers
        .get(provider)
        .map_or(CredentialPlace::None, |provider| provider.place);
    let header_value = match place {
        CredentialPlace::Bearer => format!("Bearer {plaintext}"),
        _ => plaintext.to_owned(),
    };
    Ok(Credential {
        id: wire.id.as_str().into(),
        secret: Secret {
            plaintext: plaintext.into(),
            header_value: header_value.into(),
        },
        provider,
        owner,
        weight: wire.weight,
    })
}
