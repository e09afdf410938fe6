//! Every error of the store as a gRPC status, in one place.

use control_plane_core::fault::{Fault, OneLine};
use control_plane_core::name::NotAName;
use control_plane_store::Error;
use tonic::Status;

/// The status of a store's error. What a client cannot act on is logged and not told.
pub(crate) fn from_store(error: Error) -> Status {
    match error {
        Error::Invalid(faults) => from_faults(&faults),
        Error::NotFound(_) => Status::not_found(error.to_string()),
        Error::AlreadyExists(_) => Status::already_exists(error.to_string()),
        Error::InUse { .. } => Status::failed_precondition(error.to_string()),
        Error::BadPageToken => Status::invalid_argument(error.to_string()),
        Error::Unavailable(reason) => {
            tracing::debug!(%reason, "a call failed since postgres is away");
            Status::unavailable("postgres is away; try again")
        }
        Error::NewerSchema { .. }
        | Error::Unreadable { .. }
        | Error::Sealed { .. }
        | Error::Options(_)
        | Error::Internal { .. } => {
            tracing::error!(%error, "a call failed");
            Status::internal("the control plane failed; its log says why")
        }
    }
}

/// INVALID_ARGUMENT with every fault and its place.
pub(crate) fn from_faults(faults: &[Fault]) -> Status {
    Status::invalid_argument(OneLine(faults).to_string())
}

/// INVALID_ARGUMENT at one field.
pub(crate) fn invalid(field: &str, message: &str) -> Status {
    from_faults(&[Fault::new(field, message)])
}

/// INVALID_ARGUMENT for a field that must be a resource name.
pub(crate) fn bad_name(field: &'static str) -> impl FnOnce(NotAName) -> Status {
    move |error| invalid(field, &error.to_string())
}
