//! What stands in the way of an attempt, and what becomes of the request for it.

use std::sync::Arc;

use proto::config::v1::{LimitUnit, OnExceed};

use super::{Patience, Standings};
use crate::config::Compiled;
use crate::config::limits::Limit;
use crate::credit::{Cause, Need};
use crate::error::{Exceeded, Refusal};
use crate::limits::Unbounded;

/// What stands in the way.
#[derive(Debug)]
pub(crate) struct Obstacle {
    /// Index of the limit.
    pub(crate) limit: Option<usize>,
    pub(crate) why: Why,
    /// How the limits of the target stand.
    pub(crate) standings: Standings,
    /// When it was found, in microseconds since the Unix epoch.
    pub(crate) unix_us: i64,
}

/// Why a limit does not let it through.
#[derive(Debug)]
pub(crate) enum Why {
    /// The request has no upper bound.
    Unbounded(Unbounded),
    /// What it needs can't be had.
    Short { cause: Cause, need: Option<Need> },
}

/// What becomes of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// It waits for the control plane.
    Wait,
    /// The next target may do.
    Next,
    /// It is refused.
    Refuse,
}

impl Obstacle {
    pub(crate) fn course(&self, config: &Compiled, patience: Patience) -> Course {
        match &self.why {
            // Another target may have a price, or a smaller window.
            Why::Unbounded(_) => Course::Next,
            Why::Short {
                cause: Cause::Lacking,
                need: Some(_),
            } if patience == Patience::Waits => Course::Wait,
            Why::Short { .. } => match self.limit(config).map(|limit| limit.on_exceed) {
                Some(OnExceed::SkipTarget) => Course::Next,
                _ => Course::Refuse,
            },
        }
    }

    pub(crate) fn limit<'a>(&self, config: &'a Compiled) -> Option<&'a Limit> {
        config.limits.limit(self.limit?)
    }

    pub(crate) fn refusal(&self, config: &Compiled) -> Refusal {
        let limit = self.limit(config);
        let id = limit.map_or_else(|| Arc::from(""), |limit| Arc::clone(&limit.terms.id));
        match &self.why {
            Why::Unbounded(unbounded) => Refusal::UnboundedRequest {
                limit: id,
                unbounded: *unbounded,
            },
            Why::Short { cause, need } => Refusal::LimitReached(Box::new(Exceeded {
                limit: id,
                unit: limit.map_or(LimitUnit::Unspecified, |limit| limit.unit),
                cause: *cause,
                need: need.as_ref().map_or(0, |need| need.amount),
                unix_us: self.unix_us,
            })),
        }
    }
}
