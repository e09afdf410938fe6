//! A resource with what the store knows of it.

use time::OffsetDateTime;

/// A resource as it stands in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<T> {
    pub resource: T,
    pub created_at: OffsetDateTime,
    pub updated_at: OffsetDateTime,
    /// The config version that holds this state; 0: it is not published.
    pub config_version: u64,
}

/// Who changes something, as the audit log names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(String);

impl Actor {
    /// An actor by name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// A database number that is never negative.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A number as Postgres keeps it; numbers beyond its range stop at the largest.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A moment from Unix seconds; moments beyond the year 9999 stop there.
pub(crate) fn from_unix_s(seconds: u64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(signed(seconds))
        .unwrap_or(time::macros::datetime!(9999-12-31 23:59:59 UTC))
}

/// Unix seconds of a moment; moments before 1970 are 0.
pub(crate) fn to_unix_s(moment: OffsetDateTime) -> u64 {
    unsigned(moment.unix_timestamp())
}

/// A moment from Unix microseconds; moments that Postgres cannot hold become 1970.
pub(crate) fn from_unix_us(us: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(us) * 1000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// Unix microseconds of a moment.
pub(crate) fn to_unix_us(moment: OffsetDateTime) -> i64 {
    i64::try_from(moment.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}
