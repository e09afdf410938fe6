//! Every error of the store, and the one place where SQLSTATE becomes one.

use control_plane_core::fault::{Fault, OneLine};
use control_plane_core::seal::SealError;

/// Why the store did not do what was asked. Holds no SQL values, so that neither `Display` nor
/// `Debug` can show a secret.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The resource is wrong; every fault with its place.
    #[error("{}", OneLine(.0))]
    Invalid(Vec<Fault>),
    /// There is no resource of this name.
    #[error("{0} does not exist")]
    NotFound(String),
    /// A resource of this name is there.
    #[error("{0} exists")]
    AlreadyExists(String),
    /// The resource cannot go while another refers to it.
    #[error("{resource} is in use by {by}")]
    InUse {
        resource: String,
        /// Their names, as far as a line holds them.
        by: String,
    },
    /// The page token is none of ours.
    #[error("page_token is not one that this method gave")]
    BadPageToken,
    /// Postgres cannot be reached, or is too busy; trying again later may help.
    #[error("postgres is not available: {0}")]
    Unavailable(String),
    /// The database was migrated by a newer release.
    #[error(
        "the database has schema version {found}, this release knows {newest} at most: run the release that migrated it"
    )]
    NewerSchema { found: i64, newest: i64 },
    /// A stored row that was changed past the API cannot be read.
    #[error("{resource} as stored cannot be read: {reason}")]
    Unreadable { resource: String, reason: String },
    /// A sealed secret does not open.
    #[error("{resource}: {source}")]
    Sealed { resource: String, source: SealError },
    /// The database URL, or another option, is wrong.
    #[error("{0}")]
    Options(String),
    /// A fault of ours, or of the database.
    #[error("database error {code}: {message}")]
    Internal { code: String, message: String },
}

impl Error {
    /// One fault at a field.
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Fault::new(field, message)])
    }

    /// Reads the error of a statement that writes the named resource.
    pub(crate) fn of_write(error: sqlx::Error, resource: &str) -> Self {
        let constraint = constraint_of(&error);
        let sqlstate = sqlstate_of(&error);
        match (sqlstate.as_deref(), constraint.as_deref()) {
            (Some("23505"), Some("key_secret_sha256_unique")) => {
                Self::invalid("import_secret", "is the secret of a virtual key already")
            }
            (Some("23505"), _) => Self::AlreadyExists(resource.to_owned()),
            (Some("23514"), Some(constraint)) if constraint.starts_with("limit_shape_") => {
                let field = constraint.trim_start_matches("limit_shape_");
                let message = "is fixed for the limits of this id, now and after it was deleted";
                Self::invalid(&format!("values.{field}"), message)
            }
            (Some("23503"), Some(constraint)) => match referring_field(constraint) {
                Some(field) => Self::invalid(field, "names something that does not exist"),
                None => error.into(),
            },
            _ => error.into(),
        }
    }

    /// Reads the error of a statement that deletes the named resource.
    pub(crate) fn of_delete(error: sqlx::Error, resource: &str) -> Self {
        let by = constraint_of(&error).as_deref().and_then(referring_kind);
        match (sqlstate_of(&error).as_deref(), by) {
            (Some("23503"), Some(by)) => Self::InUse {
                resource: resource.to_owned(),
                by: by.to_owned(),
            },
            _ => error.into(),
        }
    }

    /// Whether the transaction lost against another and may be run again.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Internal { code, .. } if matches!(code.as_str(), "40001" | "40P01"))
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(cause) => {
                let code = cause.code().unwrap_or_default().into_owned();
                let message = cause.message().to_owned();
                if is_outage(&code) {
                    Self::Unavailable(message)
                } else if code == "22021" {
                    // Postgres holds no NUL in a text.
                    Self::invalid("request", "must not hold a NUL character")
                } else {
                    Self::Internal { code, message }
                }
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Self::Unavailable(error.to_string()),
            _ => Self::Internal {
                code: "none".to_owned(),
                message: error.to_string(),
            },
        }
    }
}

fn sqlstate_of(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(Into::into)
}

fn constraint_of(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.constraint().map(Into::into)
}

/// Classes 08 (connection), 53 (resources), 57 (operator intervention, statement timeout), and
/// 55P03 (lock timeout), 25006 (read-only: a standby).
fn is_outage(code: &str) -> bool {
    ["08", "53", "57"]
        .iter()
        .any(|class| code.starts_with(class))
        || matches!(code, "55P03" | "25006")
}

fn referring_field(constraint: &str) -> Option<&'static str> {
    match constraint {
        "virtual_key_team_fkey" | "credential_team_fkey" => Some("team"),
        "credential_virtual_key_fkey" => Some("virtual_key"),
        "credential_provider_fkey" => Some("provider"),
        "model_target_provider_fkey" => Some("targets"),
        _ => None,
    }
}

fn referring_kind(constraint: &str) -> Option<&'static str> {
    match constraint {
        "virtual_key_team_fkey" => Some("virtual keys"),
        "credential_team_fkey" | "credential_virtual_key_fkey" | "credential_provider_fkey" => {
            Some("credentials")
        }
        "model_target_provider_fkey" => Some("models"),
        _ => None,
    }
}
