//! By how much a limit can be exceeded at worst.
//!
//! A strict limit reserves what a request can use at most and is not exceeded. The others reserve
//! what such requests usually use, so that each request that is open when the amount is reached
//! may use more: at most what fits into its model's context window, at the dearest price of its
//! targets. What a limit allows beyond its amount by its own terms comes on top: a burst, an
//! allowance while no control plane can be asked.
//!
//! The bound counts what providers report. One that does not keep to `max_tokens`, or to the
//! context window that its model is given here, is outside of what a gateway can bound.

mod most;

use prost::Message as _;
use proto::config::v1::{
    Enforcement, Limit, LimitSubject, LimitUnit, LimitWindow, Model, OnExceed, OnUnavailable,
    OnUnbounded, PriceBook, Settings,
};

use crate::published::{Kind, Published};

/// What makes a limit exceed its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is disabled.
    Disabled,
    /// It only warns.
    Warning,
    /// Requests use more than they reserve.
    Estimates,
    /// Targets without a price cost nothing that is counted.
    Unpriced,
    /// Nodes let requests through while no control plane can be asked.
    Outage,
    /// A rate lets some come at once.
    Burst,
}

/// One cause with its part of the bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub cause: Cause,
    /// In the limit's unit; none: no number bounds it.
    pub each: Option<u64>,
    /// Requests or nodes; none: no number bounds it.
    pub count: Option<u64>,
    /// What has no context window, as `models/{model}`, or no price, as
    /// `<provider>/<upstream model>`; empty: nothing.
    pub missing: String,
}

impl Part {
    fn unbounded(cause: Cause) -> Self {
        Self {
            cause,
            each: None,
            count: None,
            missing: String::new(),
        }
    }

    /// In the limit's unit; none: no number bounds it.
    pub fn amount(&self) -> Option<u64> {
        Some(self.each?.saturating_mul(self.count?))
    }
}

/// The worst case of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overshoot {
    pub parts: Vec<Part>,
}

impl Overshoot {
    /// Beyond the amount, in the limit's unit; none: no number bounds it.
    pub fn amount(&self) -> Option<u64> {
        let mut amounts = self.parts.iter().map(Part::amount);
        amounts.try_fold(0_u64, |sum, part| Some(sum.saturating_add(part?)))
    }
}

/// The published config, as far as it bounds what requests use, and who runs it.
#[derive(Clone, Debug, Default)]
pub struct Deployment {
    pub limits: Vec<Limit>,
    pub models: Vec<Model>,
    pub prices: PriceBook,
    pub settings: Settings,
    /// Nodes that serve, or may serve while no control plane can be asked.
    pub nodes: u64,
    /// Now, in Unix seconds.
    pub now_s: u64,
}

impl Deployment {
    /// Reads what is published. What does not decode is not there for nodes either.
    pub fn new(published: &Published, nodes: u64, now_s: u64) -> Self {
        let mut deployment = Self {
            nodes,
            now_s,
            ..Self::default()
        };
        for change in published.full().changes {
            let Some(body) = &change.body else {
                continue;
            };
            match change.kind {
                Kind::Limit => deployment.limits.extend(Limit::decode(body.bytes())),
                Kind::Model => deployment.models.extend(Model::decode(body.bytes())),
                Kind::PriceBook => {
                    deployment.prices = PriceBook::decode(body.bytes()).unwrap_or_default();
                }
                Kind::Settings => {
                    deployment.settings = Settings::decode(body.bytes()).unwrap_or_default();
                }
                Kind::Team
                | Kind::VirtualKey
                | Kind::Provider
                | Kind::Credential
                | Kind::RuleSet
                | Kind::Checkpoint => {}
            }
        }
        deployment
    }

    /// The worst case of a limit's bucket for a subject, which is empty for everything, or for each
    /// subject that the limit may have. None: no such limit is published.
    pub fn overshoot(&self, limit_id: &str, subject: &str) -> Option<Overshoot> {
        let limit = self.limits.iter().find(|limit| limit.id == limit_id)?;
        let always = [
            (limit.disabled, Cause::Disabled),
            (limit.on_exceed() == OnExceed::Warn, Cause::Warning),
        ];
        for (holds, cause) in always {
            if holds {
                let parts = vec![Part::unbounded(cause)];
                return Some(Overshoot { parts });
            }
        }
        let parts = [
            self.of_estimates(limit, subject),
            self.of_unpriced(limit),
            self.of_outage(limit),
            of_burst(limit),
        ];
        Some(Overshoot {
            parts: parts.into_iter().flatten().collect(),
        })
    }

    fn of_estimates(&self, limit: &Limit, subject: &str) -> Option<Part> {
        if matches!(limit.unit(), LimitUnit::Requests | LimitUnit::InFlight) {
            return None;
        }
        let most = self.most_of_a_request(limit);
        // Where every request has a bound, strict limits reserve it.
        let is_strict = limit.enforcement() == Enforcement::Strict
            && (limit.on_unbounded() != OnUnbounded::Estimate || most.is_ok());
        if is_strict {
            return None;
        }
        let (each, missing) = match most {
            Ok(each) => (Some(each), String::new()),
            Err(missing) => (None, missing),
        };
        Some(Part {
            cause: Cause::Estimates,
            each,
            count: self.most_open(limit, subject),
            missing,
        })
    }

    /// Strict and guarded limits leave out what has no price, unless they are told to estimate.
    fn of_unpriced(&self, limit: &Limit) -> Option<Part> {
        let counts_unpriced = limit.unit() == LimitUnit::Money
            && (limit.enforcement() == Enforcement::Estimated
                || limit.on_unbounded() == OnUnbounded::Estimate);
        let missing = self
            .first_unpriced(limit)
            .filter(|_| counts_unpriced && self.lets_unpriced_through())?;
        Some(Part {
            missing,
            ..Part::unbounded(Cause::Unpriced)
        })
    }

    fn of_outage(&self, limit: &Limit) -> Option<Part> {
        (limit.on_unavailable() == OnUnavailable::Allow).then(|| Part {
            cause: Cause::Outage,
            each: Some(limit.outage_allowance),
            count: Some(self.nodes),
            missing: String::new(),
        })
    }

    /// Requests of a bucket that may be open at a time, by the tightest in-flight limit that holds
    /// for all of them.
    fn most_open(&self, limit: &Limit, subject: &str) -> Option<u64> {
        let slots = self.limits.iter().filter(|it| {
            it.unit() == LimitUnit::InFlight
                && !it.disabled
                && it.on_exceed() != OnExceed::Warn
                && covers_selection(it, limit)
                && covers_subject(it, limit.subject(), subject)
        });
        let open = |it: &Limit| match it.on_unavailable() {
            OnUnavailable::Allow => it
                .amount
                .saturating_add(it.outage_allowance.saturating_mul(self.nodes)),
            OnUnavailable::Unspecified | OnUnavailable::Reject => it.amount,
        };
        slots.map(open).min()
    }
}

/// A rate of A with a burst of B lets A + B through in one window.
fn of_burst(limit: &Limit) -> Option<Part> {
    /// A burst that is not given is this part of the amount.
    const BURST_PART: u64 = 4;

    let is_rate = matches!(limit.window(), LimitWindow::Second | LimitWindow::Minute);
    is_rate.then(|| Part {
        cause: Cause::Burst,
        each: Some(match limit.burst {
            0 => (limit.amount / BURST_PART).max(1),
            burst => burst,
        }),
        count: Some(1),
        missing: String::new(),
    })
}

fn covers_selection(outer: &Limit, inner: &Limit) -> bool {
    [
        (&outer.models, &inner.models),
        (&outer.providers, &inner.providers),
        (&outer.rules, &inner.rules),
    ]
    .into_iter()
    .all(|(outer, inner)| outer.is_empty() || outer == inner)
}

/// Whether one bucket of `outer` counts every request of the bucket of `subject`.
fn covers_subject(outer: &Limit, kind: LimitSubject, subject: &str) -> bool {
    let is_one_of = |id: &str| outer.subject_id.is_empty() || outer.subject_id == id;
    match (outer.subject(), kind) {
        (LimitSubject::Everything, _) => true,
        (of, kind) if of == kind => is_one_of(subject),
        (LimitSubject::Team, LimitSubject::EndUser) => {
            is_one_of(subject.split('/').next().unwrap_or(subject))
        }
        // Every key is one of a team, but whose it is is not known here.
        (LimitSubject::Team, LimitSubject::Key) => outer.subject_id.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
