//! The admin API: AIP-style resources over the store, one file a service.
//!
//! Services convert between wire messages and resources; what is right is checked by the resource
//! itself, and every mutation leaves its audit row in the store's own transaction.

mod config;
mod credentials;
mod limit_events;
mod limit_status;
mod limits;
mod models;
mod price_books;
mod providers;
mod rule_sets;
mod settings;
mod teams;
mod usage;
mod virtual_keys;
mod wait;

use control_plane_core::name::Collection;
use control_plane_store::{Actor, PageRequest, Store};
use prost_types::FieldMask;
use tonic::Status;

use crate::control_plane::Policy;
use crate::feed::Feed;
use crate::fleet::Fleet;
use crate::shutdown::Shutdown;
use crate::status;

/// Every admin service; each is one trait of it.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    pub(crate) store: Store,
    pub(crate) feed: Feed,
    pub(crate) fleet: Fleet,
    pub(crate) policy: Policy,
    pub(crate) shutdown: Shutdown,
}

/// Who every change is by, until there are users.
fn actor() -> Actor {
    Actor::new("admin-token")
}

fn page_request(size: i32, token: String) -> Result<PageRequest, Status> {
    if size < 0 {
        return Err(status::invalid("page_size", "must not be negative"));
    }
    Ok(PageRequest { size, token })
}

/// The message of a request that must be there.
fn required<T>(message: Option<T>, field: &str) -> Result<T, Status> {
    message.ok_or_else(|| status::invalid(field, "is required"))
}

/// Updates replace the whole resource in this release.
fn no_mask(mask: Option<FieldMask>) -> Result<(), Status> {
    match mask {
        None => Ok(()),
        Some(_) => Err(status::invalid(
            "update_mask",
            "must be absent: the whole resource is replaced",
        )),
    }
}

/// The id in a required resource name.
fn id<'a>(collection: Collection, name: &'a str, field: &'static str) -> Result<&'a str, Status> {
    collection.id(name).map_err(status::bad_name(field))
}

/// The id in a resource name that may be empty.
fn optional_id(
    collection: Collection,
    name: &str,
    field: &'static str,
) -> Result<Option<String>, Status> {
    if name.is_empty() {
        return Ok(None);
    }
    id(collection, name, field).map(|id| Some(id.to_owned()))
}
