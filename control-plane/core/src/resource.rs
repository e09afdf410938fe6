//! What operators edit, one type a resource. Each checks itself whole (`validate`) and turns into
//! the message that nodes are sent (`to_config`); its JSON form is what the audit log keeps.

mod credential;
mod limit;
mod model;
mod price_book;
mod provider;
mod rule_set;
mod settings;
mod team;
mod virtual_key;
mod words;

pub use credential::{Credential, CredentialSource, NotASecret, clean_secret};
pub use limit::Limit;
pub use model::{Model, Target};
pub use price_book::{LongContext, Price, PriceBook, Rates, TierPrice, TimeOfDayPrice};
pub use provider::{ClusterBuilder, Endpoint, Provider};
pub use rule_set::{Rule, RuleSet};
pub use settings::Settings;
pub use team::Team;
pub use virtual_key::{KeySecret, VirtualKey};
pub use words::{
    Capability, CredentialPlace, Dialect, Effort, Enforcement, LimitSubject, LimitUnit,
    LimitWindow, OnExceed, OnUnavailable, OnUnbounded, OnUnknownPrice, OnUnknownUsage, Quirk,
};

use crate::fault::Faults;
use crate::name::{is_id, is_model_pattern};

/// Longest allow list.
const MAX_ALLOWED_MODELS: usize = 1000;

fn check_id(faults: &mut Faults, field: &str, id: &str) {
    faults.require(is_id(id), field, "must be 1-64 characters of [a-z0-9-]");
}

fn check_display_name(faults: &mut Faults, display_name: &str) {
    faults.require(
        display_name.chars().count() <= 128 && !display_name.chars().any(char::is_control),
        "display_name",
        "must be at most 128 characters without controls",
    );
}

fn check_allow_list(faults: &mut Faults, models: &[String]) {
    faults.require(
        models.len() <= MAX_ALLOWED_MODELS,
        "models",
        "must have at most 1000 entries",
    );
    for (position, pattern) in models.iter().enumerate() {
        if !is_model_pattern(pattern) {
            faults.push(
                format!("models[{position}]"),
                "must be a public model name or a prefix followed by `/*`",
            );
        }
    }
}
