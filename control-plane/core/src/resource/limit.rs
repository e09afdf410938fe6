//! A bound on what a subject may use.

use proto::config::v1 as config;
use serde::Serialize;

use super::{
    Enforcement, LimitSubject, LimitUnit, LimitWindow, OnExceed, OnUnavailable, OnUnbounded,
    check_allow_list, check_display_name, check_id,
};
use crate::fault::{Fault, Faults};
use crate::limit::{Calendar, MAX_AMOUNT};
use crate::name::is_id;

/// A limit as edited; see `turnpike.config.v1.Limit`. None means the default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    pub id: String,
    pub display_name: String,
    pub subject: LimitSubject,
    /// Team or key id, or `<team>/<user>`; empty: each one has a bucket of its own.
    pub subject_id: String,
    /// Public model names or `prefix/*`; empty: all.
    pub models: Vec<String>,
    /// Provider ids; empty: all.
    pub providers: Vec<String>,
    /// Rule names; empty: all, and requests that no rule matched.
    pub rules: Vec<String>,
    pub unit: LimitUnit,
    /// In the unit.
    pub amount: u64,
    pub window: LimitWindow,
    /// IANA name; empty: UTC.
    pub time_zone: String,
    pub enforcement: Option<Enforcement>,
    pub on_exceed: Option<OnExceed>,
    pub on_unavailable: Option<OnUnavailable>,
    /// In the unit, per node and outage.
    pub outage_allowance: u64,
    pub on_unbounded: Option<OnUnbounded>,
    /// Of rates; 0: a quarter of the amount, at least 1.
    pub burst: u64,
    pub clamp: bool,
    /// Percent of the amount.
    pub thresholds: Vec<u32>,
    pub disabled: bool,
}

const MAX_SELECTED: usize = 1000;
const MAX_THRESHOLDS: usize = 10;
const MAX_USER_BYTES: usize = 256;

impl Limit {
    /// Checks every field that can be judged without the rest of the config.
    ///
    /// # Errors
    /// All faults at once.
    pub fn validate(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Faults::default();
        check_id(&mut faults, "limit_id", &self.id);
        check_display_name(&mut faults, &self.display_name);
        self.check_subject(&mut faults);
        check_allow_list(&mut faults, &self.models);
        self.check_selectors(&mut faults);
        self.check_window(&mut faults);
        self.check_amounts(&mut faults);
        self.check_outcomes(&mut faults);
        faults.into_result()
    }

    fn check_subject(&self, faults: &mut Faults) {
        let id = self.subject_id.as_str();
        let (holds, message) = match self.subject {
            LimitSubject::Everything => (id.is_empty(), "must be empty: there is one subject"),
            LimitSubject::Team | LimitSubject::Key => (
                id.is_empty() || is_id(id),
                "must be empty or 1-64 characters of [a-z0-9-]",
            ),
            LimitSubject::EndUser => (
                id.is_empty() || is_end_user(id),
                "must be empty or a team id, a slash and a user of at most 256 bytes",
            ),
        };
        faults.require(holds, "values.subject_id", message);
    }

    fn check_selectors(&self, faults: &mut Faults) {
        let selectors = [
            ("values.providers", &self.providers),
            ("values.rules", &self.rules),
        ];
        for (field, names) in selectors {
            faults.require(
                names.len() <= MAX_SELECTED,
                field,
                "must have at most 1000 entries",
            );
        }
        for (position, provider) in self.providers.iter().enumerate() {
            check_id(faults, &format!("values.providers[{position}]"), provider);
        }
        for (position, rule) in self.rules.iter().enumerate() {
            faults.require(
                (1..=64).contains(&rule.chars().count()) && !rule.chars().any(char::is_control),
                &format!("values.rules[{position}]"),
                "must be 1-64 characters without controls",
            );
        }
    }

    fn check_window(&self, faults: &mut Faults) {
        let in_flight = self.unit == LimitUnit::InFlight;
        faults.require(
            in_flight == (self.window == LimitWindow::None),
            "values.window",
            "must be none for in_flight, and a length of time for every other unit",
        );
        if let Err(error) = Calendar::new(self.window, &self.time_zone) {
            faults.push("values.time_zone", error.to_string());
        }
        faults.require(
            self.is_calendar() || self.time_zone.is_empty(),
            "values.time_zone",
            "has a meaning for hours, days, weeks and months only",
        );
    }

    fn check_amounts(&self, faults: &mut Faults) {
        for (field, amount) in [
            ("values.amount", self.amount),
            ("values.outage_allowance", self.outage_allowance),
            ("values.burst", self.burst),
        ] {
            faults.require(amount <= MAX_AMOUNT, field, "must be at most 2^53");
        }
        let is_rate = matches!(self.window, LimitWindow::Second | LimitWindow::Minute);
        faults.require(
            is_rate || self.burst == 0,
            "values.burst",
            "has a meaning for seconds and minutes only",
        );
        let rising = self
            .thresholds
            .iter()
            .zip(self.thresholds.iter().skip(1))
            .all(|(lower, higher)| lower < higher);
        let within = self.thresholds.iter().all(|t| (1..=100).contains(t));
        faults.require(
            rising && within && self.thresholds.len() <= MAX_THRESHOLDS,
            "values.thresholds",
            "must be at most 10 rising percentages of 1-100",
        );
        faults.require(
            self.thresholds.is_empty() || self.is_calendar() || self.is_lifetime(),
            "values.thresholds",
            "have a meaning for hours, days, weeks, months and lifetimes only",
        );
    }

    fn check_outcomes(&self, faults: &mut Faults) {
        let is_exact = matches!(self.unit, LimitUnit::Requests | LimitUnit::InFlight);
        faults.require(
            !is_exact || matches!(self.enforcement, None | Some(Enforcement::Strict)),
            "values.enforcement",
            "must be strict or absent: requests and in_flight are always exact",
        );
        let allows = self.on_unavailable == Some(OnUnavailable::Allow);
        faults.require(
            allows == (self.outage_allowance > 0),
            "values.outage_allowance",
            "must be above 0 with on_unavailable allow, and 0 without it",
        );
        faults.require(
            !(self.clamp && is_exact),
            "values.clamp",
            "has a meaning for tokens and money only",
        );
    }

    fn is_calendar(&self) -> bool {
        matches!(
            self.window,
            LimitWindow::Hour | LimitWindow::Day | LimitWindow::Week | LimitWindow::Month
        )
    }

    fn is_lifetime(&self) -> bool {
        self.window == LimitWindow::Lifetime
    }

    /// The form nodes are sent. Defaults are filled in, but for `burst`.
    pub fn to_config(&self) -> config::Limit {
        let enforcement = self.enforcement.unwrap_or(match self.unit {
            LimitUnit::Requests | LimitUnit::InFlight => Enforcement::Strict,
            LimitUnit::Money => Enforcement::Guarded,
            LimitUnit::Tokens
            | LimitUnit::InputTokens
            | LimitUnit::UncachedInputTokens
            | LimitUnit::OutputTokens => Enforcement::Estimated,
        });
        config::Limit {
            enforcement: enforcement.to_wire(),
            on_exceed: self.on_exceed.unwrap_or(OnExceed::Reject).to_wire(),
            on_unavailable: self
                .on_unavailable
                .unwrap_or(OnUnavailable::Reject)
                .to_wire(),
            on_unbounded: self.on_unbounded.unwrap_or(OnUnbounded::Reject).to_wire(),
            ..self.to_wire()
        }
    }

    /// The wire form, with 0 where nothing was set.
    pub fn to_wire(&self) -> config::Limit {
        config::Limit {
            id: self.id.clone(),
            subject: self.subject.to_wire(),
            subject_id: self.subject_id.clone(),
            models: self.models.clone(),
            providers: self.providers.clone(),
            rules: self.rules.clone(),
            unit: self.unit.to_wire(),
            amount: self.amount,
            window: self.window.to_wire(),
            time_zone: self.time_zone.clone(),
            enforcement: self.enforcement.map_or(0, Enforcement::to_wire),
            on_exceed: self.on_exceed.map_or(0, OnExceed::to_wire),
            on_unavailable: self.on_unavailable.map_or(0, OnUnavailable::to_wire),
            outage_allowance: self.outage_allowance,
            on_unbounded: self.on_unbounded.map_or(0, OnUnbounded::to_wire),
            burst: self.burst,
            clamp: self.clamp,
            thresholds: self.thresholds.clone(),
            disabled: self.disabled,
        }
    }

    /// From the wire form; `limit.id` is the bare id.
    ///
    /// # Errors
    /// Every enum value that is missing or not known.
    pub fn from_wire(limit: config::Limit, display_name: String) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        let subject = LimitSubject::from_wire(limit.subject);
        let unit = LimitUnit::from_wire(limit.unit);
        let window = LimitWindow::from_wire(limit.window);
        let is_set = "must be set to a known value";
        faults.require(subject.is_some(), "values.subject", is_set);
        faults.require(unit.is_some(), "values.unit", is_set);
        faults.require(window.is_some(), "values.window", is_set);
        let enforcement = Enforcement::from_wire(limit.enforcement);
        let on_exceed = OnExceed::from_wire(limit.on_exceed);
        let on_unavailable = OnUnavailable::from_wire(limit.on_unavailable);
        let on_unbounded = OnUnbounded::from_wire(limit.on_unbounded);
        for (field, number, is_known) in [
            (
                "values.enforcement",
                limit.enforcement,
                enforcement.is_some(),
            ),
            ("values.on_exceed", limit.on_exceed, on_exceed.is_some()),
            (
                "values.on_unavailable",
                limit.on_unavailable,
                on_unavailable.is_some(),
            ),
            (
                "values.on_unbounded",
                limit.on_unbounded,
                on_unbounded.is_some(),
            ),
        ] {
            faults.require(number == 0 || is_known, field, "must be a known value");
        }
        faults.into_result()?;
        let (Some(subject), Some(unit), Some(window)) = (subject, unit, window) else {
            return Err(Vec::new());
        };
        Ok(Self {
            id: limit.id,
            display_name,
            subject,
            subject_id: limit.subject_id,
            models: limit.models,
            providers: limit.providers,
            rules: limit.rules,
            unit,
            amount: limit.amount,
            window,
            time_zone: limit.time_zone,
            enforcement,
            on_exceed,
            on_unavailable,
            outage_allowance: limit.outage_allowance,
            on_unbounded,
            burst: limit.burst,
            clamp: limit.clamp,
            thresholds: limit.thresholds,
            disabled: limit.disabled,
        })
    }
}

fn is_end_user(id: &str) -> bool {
    id.split_once('/').is_some_and(|(team, user)| {
        is_id(team)
            && (1..=MAX_USER_BYTES).contains(&user.len())
            && !user.chars().any(char::is_control)
    })
}

#[cfg(test)]
mod tests;
