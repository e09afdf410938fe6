//! A virtual key and the secrets that are accepted for it.

use std::fmt;

use proto::config::v1 as config;
use serde::Serialize;

use super::{check_allow_list, check_display_name, check_id};
use crate::fault::{Fault, Faults};

/// A virtual key as edited. Its secrets are apart: changing a key never touches them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VirtualKey {
    pub id: String,
    /// Id of the team; fixed at creation.
    pub team: String,
    pub display_name: String,
    pub disabled: bool,
    /// Public model names or `prefix/*`; empty: whatever the team may use.
    pub models: Vec<String>,
    /// Unix time in seconds after which it is refused; none: never.
    pub expires_at_s: Option<u64>,
}

/// One accepted secret of a key, as a hash.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret {
    /// SHA-256 over the whole secret as the client sends it.
    pub sha256: [u8; 32],
    /// First characters of the secret, enough to recognise it and no more.
    pub hint: String,
    /// Unix time in seconds after which this secret is refused; none: with its key.
    pub expires_at_s: Option<u64>,
}

/// Latest moment a key may expire: 9999-12-31T23:59:59Z.
const MAX_EXPIRY_S: u64 = 253_402_300_799;

impl VirtualKey {
    /// Checks every field.
    ///
    /// # Errors
    /// All faults at once.
    pub fn validate(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Faults::default();
        check_id(&mut faults, "virtual_key_id", &self.id);
        check_id(&mut faults, "team", &self.team);
        check_display_name(&mut faults, &self.display_name);
        check_allow_list(&mut faults, &self.models);
        faults.require(
            self.expires_at_s
                .is_none_or(|at| (1..=MAX_EXPIRY_S).contains(&at)),
            "expire_time",
            "must lie after 1970 and before the year 10000",
        );
        faults.into_result()
    }

    /// The form nodes are sent.
    pub fn to_config(&self, secrets: &[KeySecret]) -> config::VirtualKey {
        config::VirtualKey {
            id: self.id.clone(),
            team: self.team.clone(),
            secrets: secrets.iter().map(KeySecret::to_config).collect(),
            disabled: self.disabled,
            models: self.models.clone(),
            expires_at_s: self.expires_at_s.unwrap_or(0),
        }
    }
}

impl KeySecret {
    fn to_config(&self) -> config::KeySecret {
        config::KeySecret {
            sha256: self.sha256.to_vec(),
            expires_at_s: self.expires_at_s.unwrap_or(0),
        }
    }
}

// Even a hash is kept out of logs: a weak imported secret could be guessed from it.
impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySecret")
            .field("hint", &self.hint)
            .field("expires_at_s", &self.expires_at_s)
            .finish_non_exhaustive()
    }
}
