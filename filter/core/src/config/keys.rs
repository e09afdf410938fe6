//! Virtual keys, their teams, and the look-up from a secret's hash.

use super::compile::Faults;
use super::{ResourceKind, Resources};

const MAX_SECRETS: usize = 3;

/// Every key and team, and the index from a secret's hash to its key.
pub(crate) struct Keys {
    /// Sorted by id, as are the teams.
    keys: Vec<VirtualKey>,
    teams: Vec<Team>,
    /// Sorted by hash: a look-up is a binary search without any hasher's state.
    secrets: Vec<Secret>,
}

pub(crate) struct VirtualKey {
    pub(crate) id: Box<str>,
    pub(crate) team: usize,
    pub(crate) disabled: bool,
    pub(crate) expires_at_s: u64,
    pub(crate) models: AllowList,
}

pub(crate) struct Team {
    pub(crate) id: Box<str>,
    pub(crate) disabled: bool,
    pub(crate) models: AllowList,
}

pub(crate) struct Secret {
    sha256: [u8; 32],
    pub(crate) key: usize,
    pub(crate) expires_at_s: u64,
}

impl Keys {
    /// The secret with this SHA-256.
    pub(crate) fn find(&self, sha256: &[u8; 32]) -> Option<&Secret> {
        let at = self
            .secrets
            .binary_search_by(|secret| secret.sha256.cmp(sha256))
            .ok()?;
        self.secrets.get(at)
    }

    pub(crate) fn key(&self, index: usize) -> Option<&VirtualKey> {
        self.keys.get(index)
    }

    pub(crate) fn team(&self, index: usize) -> Option<&Team> {
        self.teams.get(index)
    }

    pub(super) fn key_index(&self, id: &str) -> Option<usize> {
        self.keys.binary_search_by(|key| (*key.id).cmp(id)).ok()
    }

    pub(super) fn team_index(&self, id: &str) -> Option<usize> {
        self.teams.binary_search_by(|team| (*team.id).cmp(id)).ok()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Which public names a key or a team may use.
pub(crate) struct AllowList(Option<Vec<Pattern>>);

enum Pattern {
    Exact(Box<str>),
    /// `prefix/*`, kept with its slash and without the star.
    Under(Box<str>),
}

impl AllowList {
    /// Admits a name by its exact bytes; an absent list admits all.
    pub(crate) fn admits(&self, public_name: &str) -> bool {
        let Some(patterns) = &self.0 else {
            return true;
        };
        patterns.iter().any(|pattern| match pattern {
            Pattern::Exact(name) => **name == *public_name,
            Pattern::Under(prefix) => public_name
                .strip_prefix(&**prefix)
                .is_some_and(|rest| !rest.is_empty()),
        })
    }

    /// A list whose patterns are all faulty still admits nothing rather than everything.
    pub(super) fn compile(
        kind: ResourceKind,
        id: &str,
        names: &[String],
        faults: &mut Faults,
    ) -> Self {
        if names.is_empty() {
            return Self(None);
        }
        let mut patterns = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            match Pattern::parse(name) {
                Some(pattern) => patterns.push(pattern),
                None => faults.add(
                    kind,
                    id,
                    format!("models[{at}]"),
                    "must be a model's public name, or a prefix that ends in /*",
                ),
            }
        }
        Self(Some(patterns))
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let (name, pattern) = match text.strip_suffix("/*") {
            Some(prefix) => (prefix, Self::Under(format!("{prefix}/").into())),
            None => (text, Self::Exact(text.into())),
        };
        let well_formed =
            !name.is_empty() && !name.contains('*') && !name.contains(char::is_control);
        well_formed.then_some(pattern)
    }
}

pub(super) fn compile(resources: &Resources, faults: &mut Faults) -> Keys {
    let mut keys = Keys {
        keys: Vec::new(),
        teams: Vec::new(),
        secrets: Vec::new(),
    };
    for (name, team) in &resources.teams {
        if faults.check_id(ResourceKind::Team, name, &team.id) {
            keys.teams.push(Team {
                id: team.id.as_str().into(),
                disabled: team.disabled,
                models: AllowList::compile(ResourceKind::Team, name, &team.models, faults),
            });
        }
    }
    for (name, key) in &resources.virtual_keys {
        const KIND: ResourceKind = ResourceKind::VirtualKey;
        if !faults.check_id(KIND, name, &key.id) {
            continue;
        }
        let Some(team) = keys.team_index(&key.team) else {
            faults.add(
                KIND,
                name,
                "team",
                format!("there is no team {:?}", key.team),
            );
            continue;
        };
        if key.secrets.is_empty() || key.secrets.len() > MAX_SECRETS {
            faults.add(KIND, name, "secrets", "must be one to three");
        }
        for (at, secret) in key.secrets.iter().enumerate().take(MAX_SECRETS) {
            let Ok(sha256) = <[u8; 32]>::try_from(secret.sha256.as_slice()) else {
                faults.add(
                    KIND,
                    name,
                    format!("secrets[{at}].sha256"),
                    "must be 32 bytes",
                );
                continue;
            };
            let expires_at_s = secret.expires_at_s;
            keys.secrets.push(Secret {
                sha256,
                key: keys.keys.len(),
                expires_at_s,
            });
        }
        keys.keys.push(VirtualKey {
            id: key.id.as_str().into(),
            team,
            disabled: key.disabled,
            expires_at_s: key.expires_at_s,
            models: AllowList::compile(KIND, name, &key.models, faults),
        });
    }
    keys.index_secrets(faults);
    keys
}

impl Keys {
    /// Sorts the secrets; of two keys with one secret the first by id keeps it.
    fn index_secrets(&mut self, faults: &mut Faults) {
        self.secrets
            .sort_by(|a, b| a.sha256.cmp(&b.sha256).then(a.key.cmp(&b.key)));
        let keys = &self.keys;
        self.secrets.dedup_by(|later, kept| {
            let same = later.sha256 == kept.sha256;
            if same && let Some(key) = keys.get(later.key) {
                faults.add(
                    ResourceKind::VirtualKey,
                    &key.id,
                    "secrets",
                    "is in use already",
                );
            }
            same
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> AllowList {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut faults = Faults::default();
        AllowList::compile(ResourceKind::Team, "t", &names, &mut faults)
    }

    #[test]
    fn a_wildcard_needs_its_slash_and_at_least_one_more_character() {
        let list = list(&["acme/*", "short-name"]);
        for (name, admitted) in [
            ("acme/small", true),
            ("acme/deep/er", true),
            ("short-name", true),
            ("acmez/small", false),
            ("acme", false),
            ("acme/", false),
            ("ACME/small", false),
            (" acme/small", false),
            ("other/big-model", false),
            ("short-name-2", false),
            ("", false),
        ] {
            assert_eq!(list.admits(name), admitted, "{name:?}");
        }
    }

    #[test]
    fn an_empty_list_admits_all_and_a_list_of_faults_admits_none() {
        assert!(list(&[]).admits("anything"));
        assert!(!list(&["*"]).admits("anything"));
        assert!(!list(&["a*/*", "/*", ""]).admits("a/b"));
    }
}
