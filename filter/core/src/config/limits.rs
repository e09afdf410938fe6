//! Limits: which of them a request falls under.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::config::v1::{
    self as wire, Enforcement, LimitSubject, LimitUnit, LimitWindow, OnExceed, OnUnavailable,
    OnUnbounded,
};

use super::compile::Faults;
use super::keys::{AllowList, Keys};
use super::providers::Provider;
use super::rules::Rules;
use super::{ResourceKind, Resources};
use crate::credit::{Kind, LimitTerms};

/// Amounts above lose precision in clients that read JSON numbers, and leave no room for sums.
const MAX_AMOUNT: u64 = 1 << 53;
const SECOND_US: u64 = 1_000_000;
const MINUTE_US: u64 = 60 * SECOND_US;
/// A burst that is not given is this part of the amount.
const BURST_PART: u64 = 4;
const KIND: ResourceKind = ResourceKind::Limit;

/// The enabled limits, and the index from a subject to those that name it.
#[derive(Default)]
pub(crate) struct Limits {
    /// Sorted by id.
    all: Vec<Limit>,
    /// Those that hold for every caller, in the order of `all`.
    of_any: Vec<usize>,
    of_team: BTreeMap<usize, Vec<usize>>,
    of_key: BTreeMap<usize, Vec<usize>>,
    of_end_user: BTreeMap<Box<str>, Vec<usize>>,
}

/// One limit.
pub(crate) struct Limit {
    pub(crate) terms: LimitTerms,
    pub(crate) subject: LimitSubject,
    pub(crate) unit: LimitUnit,
    pub(crate) enforcement: Enforcement,
    pub(crate) on_exceed: OnExceed,
    pub(crate) on_unbounded: OnUnbounded,
    /// `max_tokens` may be lowered to what is left.
    pub(crate) clamp: bool,
    models: AllowList,
    /// Indexes of providers and rules; `None`: all.
    providers: Option<Vec<usize>>,
    rules: Option<Vec<usize>>,
}

/// Who calls, as limits see it: indexes of key and team, and `<team>/<user>` if there is a user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subjects<'a> {
    pub(crate) key: usize,
    pub(crate) team: usize,
    pub(crate) end_user: Option<&'a str>,
}

/// What is about to be tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tried<'a> {
    /// Public name.
    pub(crate) model: &'a str,
    pub(crate) provider: usize,
    pub(crate) rule: Option<usize>,
}

impl Limits {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn limit(&self, index: usize) -> Option<&Limit> {
        self.all.get(index)
    }

    /// Indexes of the limits that hold for these subjects and this target, in the order of ids,
    /// each once.
    pub(crate) fn applying(&self, who: Subjects<'_>, to: Tried<'_>, into: &mut Vec<usize>) {
        into.clear();
        let of_end_user = who.end_user.and_then(|user| self.of_end_user.get(user));
        let named = [
            self.of_team.get(&who.team),
            self.of_key.get(&who.key),
            of_end_user,
        ];
        let named = named.into_iter().flatten().flatten();
        let all = self.of_any.iter().chain(named).copied();
        into.extend(all.filter(|&index| {
            self.limit(index).is_some_and(|limit| {
                let has_subject = limit.subject != LimitSubject::EndUser || who.end_user.is_some();
                has_subject && limit.selects(to)
            })
        }));
        into.sort_unstable();
    }
}

impl Limit {
    /// Whether it holds for a target, whoever asks.
    pub(crate) fn selects(&self, tried: Tried<'_>) -> bool {
        let selects = |selected: &Option<Vec<usize>>, index: Option<usize>| match selected {
            None => true,
            Some(indexes) => index.is_some_and(|index| indexes.contains(&index)),
        };
        self.models.admits(tried.model)
            && selects(&self.providers, Some(tried.provider))
            && selects(&self.rules, tried.rule)
    }

    /// Whether a request must be bounded before it is sent.
    pub(crate) fn needs_bound(&self) -> bool {
        self.enforcement == Enforcement::Strict && self.is_metered()
    }

    /// Whether what it counts is known only afterwards.
    pub(crate) fn is_metered(&self) -> bool {
        !matches!(self.unit, LimitUnit::Requests | LimitUnit::InFlight)
    }
}

/// What limits refer to.
pub(super) struct Joins<'a> {
    pub(super) keys: &'a Keys,
    pub(super) providers: &'a [Provider],
    pub(super) rules: &'a Rules,
}

/// A faulty limit is left out and told: the control plane publishes none that has faults.
pub(super) fn compile(resources: &Resources, joins: &Joins<'_>, faults: &mut Faults) -> Limits {
    let mut limits = Limits::default();
    for (name, wire) in &resources.limits {
        if !faults.check_id(KIND, name, &wire.id) || wire.disabled {
            continue;
        }
        let Some(limit) = compile_limit(wire, joins, faults) else {
            continue;
        };
        let index = limits.all.len();
        if limits.file(index, wire, &limit, joins) {
            limits.all.push(limit);
        } else {
            let reason = "there is no such subject";
            faults.add(KIND, name, "subject_id", reason);
        }
    }
    limits
}

impl Limits {
    /// Enters a limit into the index of its subject; false when that subject does not exist.
    fn file(&mut self, index: usize, wire: &wire::Limit, limit: &Limit, joins: &Joins<'_>) -> bool {
        let id = wire.subject_id.as_str();
        let entry = match limit.subject {
            _ if id.is_empty() => &mut self.of_any,
            LimitSubject::Team => match joins.keys.team_index(id) {
                Some(team) => self.of_team.entry(team).or_default(),
                None => return false,
            },
            LimitSubject::Key => match joins.keys.key_index(id) {
                Some(key) => self.of_key.entry(key).or_default(),
                None => return false,
            },
            LimitSubject::EndUser => self.of_end_user.entry(id.into()).or_default(),
            LimitSubject::Everything | LimitSubject::Unspecified => return false,
        };
        entry.push(index);
        true
    }
}

fn compile_limit(wire: &wire::Limit, joins: &Joins<'_>, faults: &mut Faults) -> Option<Limit> {
    let mut sound = true;
    let mut fault = |place: &str, reason: &str| {
        faults.add(KIND, &wire.id, place, reason);
        sound = false;
    };
    if wire.subject() == LimitSubject::Unspecified {
        fault("subject", "must be given");
    }
    if wire.unit() == LimitUnit::Unspecified {
        fault("unit", "must be given");
    }
    if wire.amount > MAX_AMOUNT {
        fault("amount", "must be at most 2^53");
    }
    let kind = kind_of(wire);
    if kind.is_none() {
        fault(
            "window",
            "must be none for in-flight, and a length of time otherwise",
        );
    }
    let models = AllowList::compile(KIND, &wire.id, &wire.models, faults);
    let providers = selected(&wire.providers, faults, wire, "providers", |id| {
        let found = joins.providers.binary_search_by(|one| (*one.id).cmp(id));
        found.ok()
    });
    let rules = selected(&wire.rules, faults, wire, "rules", |name| {
        joins.rules.index_of(name)
    });
    let kind = kind.filter(|_| sound)?;
    Some(Limit {
        terms: LimitTerms {
            id: Arc::from(wire.id.as_str()),
            kind,
            amount: wire.amount,
            on_unavailable_allowance: (wire.on_unavailable() == OnUnavailable::Allow)
                .then_some(wire.outage_allowance),
        },
        subject: wire.subject(),
        unit: wire.unit(),
        enforcement: match wire.enforcement() {
            Enforcement::Unspecified if wire.unit() == LimitUnit::Money => Enforcement::Guarded,
            Enforcement::Unspecified => Enforcement::Estimated,
            given => given,
        },
        on_exceed: match wire.on_exceed() {
            OnExceed::Unspecified => OnExceed::Reject,
            given => given,
        },
        on_unbounded: match wire.on_unbounded() {
            OnUnbounded::Unspecified => OnUnbounded::Reject,
            given => given,
        },
        clamp: wire.clamp,
        models,
        providers,
        rules,
    })
}

/// How the limit's credit is spent; `None`: unit and window do not go together.
fn kind_of(wire: &wire::Limit) -> Option<Kind> {
    let rate = |window_us| Kind::Rate {
        window_us,
        burst: match wire.burst {
            0 => (wire.amount / BURST_PART).max(1),
            burst => burst,
        },
        amount: wire.amount,
    };
    let is_in_flight = wire.unit() == LimitUnit::InFlight;
    match wire.window() {
        LimitWindow::None if is_in_flight => Some(Kind::InFlight),
        LimitWindow::Unspecified | LimitWindow::None => None,
        _ if is_in_flight => None,
        LimitWindow::Second => Some(rate(SECOND_US)),
        LimitWindow::Minute => Some(rate(MINUTE_US)),
        LimitWindow::Hour
        | LimitWindow::Day
        | LimitWindow::Week
        | LimitWindow::Month
        | LimitWindow::Lifetime => Some(Kind::Credit),
    }
}

/// A selector whose names are all unknown selects nothing, rather than everything.
fn selected(
    names: &[String],
    faults: &mut Faults,
    wire: &wire::Limit,
    field: &str,
    index_of: impl Fn(&str) -> Option<usize>,
) -> Option<Vec<usize>> {
    if names.is_empty() {
        return None;
    }
    let mut indexes = Vec::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        match index_of(name) {
            Some(index) => indexes.push(index),
            None => faults.add(KIND, &wire.id, format!("{field}[{at}]"), "there is none"),
        }
    }
    Some(indexes)
}

#[cfg(test)]
mod tests;
