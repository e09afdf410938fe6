//! A team: the keys that are billed and limited together.

use proto::config::v1 as config;
use serde::Serialize;

use super::{check_allow_list, check_display_name, check_id};
use crate::fault::{Fault, Faults};

/// A team as edited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Team {
    pub id: String,
    pub display_name: String,
    pub disabled: bool,
    /// Public model names or `prefix/*`; empty: every model.
    pub models: Vec<String>,
}

impl Team {
    /// Checks every field.
    ///
    /// # Errors
    /// All faults at once.
    pub fn validate(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Faults::default();
        check_id(&mut faults, "team_id", &self.id);
        check_display_name(&mut faults, &self.display_name);
        check_allow_list(&mut faults, &self.models);
        faults.into_result()
    }

    /// The form nodes are sent.
    pub fn to_config(&self) -> config::Team {
        config::Team {
            id: self.id.clone(),
            disabled: self.disabled,
            models: self.models.clone(),
        }
    }
}
