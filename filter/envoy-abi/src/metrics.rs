//! Typed ids of Envoy metrics and the errors of using them.
//!
//! Metrics are defined while a configuration is being created, never later. Label values are
//! interned by Envoy for the life of the process: use bounded sets only.

use thiserror::Error;

/// A counter defined by one configuration; use it with that configuration's hosts only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId(pub(crate) usize);

/// A gauge (unsigned) defined by one configuration; pair every decrement with an increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GaugeId(pub(crate) usize);

/// A histogram of whole numbers defined by one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistogramId(pub(crate) usize);

/// Why Envoy refused a metric call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MetricsError {
    /// The id was not defined by this configuration.
    #[error("metric is not defined by this configuration")]
    NotFound,
    /// The number of label values differs from the number of label names.
    #[error("metric label values do not match its label names")]
    InvalidLabels,
    /// Definitions are closed once the configuration has been created.
    #[error("metrics can only be defined while the configuration is created")]
    Frozen,
    /// An answer that this ABI version does not have.
    #[error("envoy answered a metric call with unknown code {0}")]
    Unknown(u32),
}

/// Turns the ABI's answer into a result.
pub(crate) fn check(code: u32) -> Result<(), MetricsError> {
    match code {
        0 => Ok(()),
        1 => Err(MetricsError::NotFound),
        2 => Err(MetricsError::InvalidLabels),
        3 => Err(MetricsError::Frozen),
        other => Err(MetricsError::Unknown(other)),
    }
}
