//! What operators edit: one file a table group.

mod credential;
mod limit;
mod model;
mod price_book;
mod provider;
mod rule_set;
mod settings;
mod team;
mod virtual_key;

pub(crate) use credential::load as load_credential;
pub(crate) use limit::load as load_limit;
pub(crate) use model::load as load_model;
pub(crate) use price_book::load as load_price_book;
pub(crate) use provider::load as load_provider;
pub(crate) use rule_set::load as load_rule_set;
pub(crate) use settings::load as load_settings;
pub(crate) use team::load as load_team;
pub use virtual_key::KeyRecord;
pub(crate) use virtual_key::{load as load_virtual_key, load_secrets};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// The id of a resource of which there is one.
pub(crate) const SINGLETON: &str = "default";

/// Judges an update by the rows it changed.
fn updated(rows: u64, name: &str) -> Result<(), Error> {
    if rows == 0 {
        return Err(Error::NotFound(name.to_owned()));
    }
    Ok(())
}

/// Users of a resource that a refusal names; of more it tells how many there are.
const NAMED_USERS: usize = 10;

/// Judges a deletion by the resources that refer to the one deleted.
fn unused(mut by: Vec<String>, name: &str) -> Result<(), Error> {
    if by.is_empty() {
        return Ok(());
    }
    let more = by.len().saturating_sub(NAMED_USERS);
    by.truncate(NAMED_USERS);
    if more > 0 {
        by.push(format!("{more} more"));
    }
    Err(Error::InUse {
        resource: name.to_owned(),
        by: by.join(", "),
    })
}

/// The JSON that a column keeps.
pub(crate) fn to_json(value: &impl Serialize, name: &str) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| unreadable(name, &error))
}

/// Reads the JSON of a column, which may have been written by hand.
pub(crate) fn from_json<T: DeserializeOwned>(json: &str, name: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| unreadable(name, &error))
}

fn unreadable(name: &str, error: &serde_json::Error) -> Error {
    Error::Unreadable {
        resource: name.to_owned(),
        reason: error.to_string(),
    }
}
