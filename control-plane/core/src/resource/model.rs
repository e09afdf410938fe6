//! A public model name and the targets that answer it.

use proto::config::v1 as config;
use serde::Serialize;

use super::{Capability, Effort, check_id};
use crate::fault::{Fault, Faults};
use crate::name::is_model_name;

/// A model as edited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Model {
    /// The public name.
    pub id: String,
    /// Tried in this order.
    pub targets: Vec<Target>,
    pub capabilities: Vec<Capability>,
    /// Efforts it serves; empty: all.
    pub efforts: Vec<Effort>,
    /// Tokens of input and output together; 0: unknown.
    pub context_window: u64,
    pub disabled: bool,
}

/// A provider and the model's name there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Id of a provider.
    pub provider: String,
    /// The name sent to the provider; empty: the public name.
    pub upstream_model: String,
    /// In milliseconds; 0: the default.
    pub first_token_timeout_ms: u32,
}

const MAX_TARGETS: usize = 32;

impl Model {
    /// Checks every field that can be judged without the rest of the config.
    ///
    /// # Errors
    /// All faults at once.
    pub fn validate(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Faults::default();
        faults.require(
            is_model_name(&self.id),
            "model_id",
            "must be 1-128 characters without controls or `*`, and not auto or auto:…",
        );
        faults.require(
            (1..=MAX_TARGETS).contains(&self.targets.len()),
            "targets",
            "must have 1-32 entries",
        );
        for (position, target) in self.targets.iter().enumerate() {
            let place = format!("targets[{position}]");
            check_id(&mut faults, &format!("{place}.provider"), &target.provider);
            faults.require(
                target.upstream_model.len() <= 256
                    && !target.upstream_model.chars().any(char::is_control),
                &format!("{place}.upstream_model"),
                "must be at most 256 bytes without controls",
            );
        }
        // Postgres keeps it as a signed number.
        faults.require(
            i64::try_from(self.context_window).is_ok(),
            "context_window",
            "must be below 2^63",
        );
        faults.into_result()
    }

    /// The form nodes are sent; `created_at_s` is Unix time in seconds.
    pub fn to_config(&self, created_at_s: u64) -> config::Model {
        config::Model {
            id: self.id.clone(),
            targets: self.targets.iter().map(Target::to_config).collect(),
            capabilities: self.capabilities.iter().map(|c| c.to_wire()).collect(),
            efforts: self.efforts.iter().map(|e| e.to_wire()).collect(),
            context_window: self.context_window,
            created_at_s,
            disabled: self.disabled,
        }
    }
}

impl Target {
    /// The wire form.
    pub fn to_config(&self) -> config::Target {
        config::Target {
            provider: self.provider.clone(),
            upstream_model: self.upstream_model.clone(),
            first_token_timeout_ms: self.first_token_timeout_ms,
        }
    }

    /// From the wire form.
    pub fn from_config(target: config::Target) -> Self {
        Self {
            provider: target.provider,
            upstream_model: target.upstream_model,
            first_token_timeout_ms: target.first_token_timeout_ms,
        }
    }
}
