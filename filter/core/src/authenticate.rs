//! From the key's text to the caller.

use crate::config::Compiled;
use crate::error::Refusal;
use crate::host::{NodeState, Now};
use crate::key::{self, KeyForm};

/// Who calls, by index into the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) key: usize,
    pub(crate) team: usize,
}

impl Caller {
    /// True when both the key's list and the team's admit the public name.
    pub(crate) fn may_use(self, config: &Compiled, public_name: &str) -> bool {
        let key = config.keys.key(self.key);
        let team = config.keys.team(self.team);
        key.is_some_and(|key| key.models.admits(public_name))
            && team.is_some_and(|team| team.models.admits(public_name))
    }
}

/// Looks the caller up.
///
/// A key that was never minted is 401 whatever this node knows. One that this node merely does not
/// know is 401 only while it would know: a client that gets 401 throws a good key away.
pub(crate) fn authenticate(
    config: &Compiled,
    secret: &[u8],
    node: NodeState,
    now: Now,
) -> Result<Caller, Refusal> {
    if key::check(secret) == KeyForm::BadChecksum {
        return Err(Refusal::InvalidApiKey);
    }
    if node.stale {
        return Err(Refusal::ConfigUnavailable);
    }
    let Some(found) = config.keys.find(&key::hash(secret)) else {
        return Err(if node.in_sync {
            Refusal::InvalidApiKey
        } else {
            Refusal::ConfigUnavailable
        });
    };
    let (Some(key), is_live) = (config.keys.key(found.key), |expires_at_s: u64| {
        expires_at_s == 0 || now.unix_s() < expires_at_s
    }) else {
        return Err(Refusal::InvalidApiKey);
    };
    let team_is_live = config
        .keys
        .team(key.team)
        .is_some_and(|team| !team.disabled);
    if key.disabled || !team_is_live || !is_live(key.expires_at_s) || !is_live(found.expires_at_s) {
        return Err(Refusal::InvalidApiKey);
    }
    Ok(Caller {
        key: found.key,
        team: key.team,
    })
}

#[cfg(test)]
mod tests;
