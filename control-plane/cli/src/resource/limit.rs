//! Limits: how much a subject may use.

use proto::admin::v1 as pb;
use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use super::words::{
    Enforcement, LimitSubject, LimitUnit, LimitWindow, OnExceed, OnUnavailable, OnUnbounded,
};
use super::{Collection, Kind, Page, Status, Stored, all_or, id_of, name_of, same_set, yes};
use crate::amount::Amount;
use crate::failure::CallError;
use crate::link::Link;
use crate::moment::Moment;
use crate::secret::Secret;
use crate::table::Column;

pub(crate) const PREFIX: &str = "limits/";
/// A burst that is not given is this part of the amount.
const BURST_PART: u64 = 4;

#[derive(Debug)]
pub(crate) enum Limit {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LimitSpec {
    #[serde(default)]
    pub(crate) display_name: String,
    /// Fixed at creation, as are subject id, unit, window and time zone.
    pub(crate) subject: LimitSubject,
    /// Team or key id, or `<team>/<user>`. Empty: each one by itself.
    #[serde(default)]
    pub(crate) subject_id: String,
    /// Public model names, or `prefix/*`. Empty: all.
    #[serde(default)]
    pub(crate) models: Vec<String>,
    /// Provider ids. Empty: all.
    #[serde(default)]
    pub(crate) providers: Vec<String>,
    /// Rule names. Empty: all.
    #[serde(default)]
    pub(crate) rules: Vec<String>,
    pub(crate) unit: LimitUnit,
    pub(crate) amount: Amount,
    pub(crate) window: LimitWindow,
    /// IANA name. Empty: UTC.
    #[serde(default)]
    pub(crate) time_zone: String,
    #[serde(default)]
    pub(crate) enforcement: Option<Enforcement>,
    #[serde(default)]
    pub(crate) on_exceed: Option<OnExceed>,
    #[serde(default)]
    pub(crate) on_unavailable: Option<OnUnavailable>,
    /// Per node and outage.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) outage_allowance: Amount,
    #[serde(default)]
    pub(crate) on_unbounded: Option<OnUnbounded>,
    /// Of rates. Zero: a quarter of the amount.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) burst: Amount,
    #[serde(default)]
    pub(crate) clamp: bool,
    /// Percent of the amount.
    #[serde(default)]
    pub(crate) thresholds: Vec<u32>,
    #[serde(default)]
    pub(crate) disabled: bool,
}

impl Collection for Limit {
    type Spec = LimitSpec;
    const KIND: Kind = Kind::Limit;
    const COLUMNS: &'static [Column] = &[
        Column::text("ID"),
        Column::text("SUBJECT"),
        Column::text("UNIT"),
        Column::text("WINDOW"),
        Column::number("AMOUNT"),
        Column::text("MODELS"),
        Column::text("DISABLED"),
    ];

    fn row(stored: &Stored<LimitSpec>) -> Vec<String> {
        let Stored { id, spec, .. } = stored;
        vec![
            id.clone(),
            spec.subjects(&spec.subject_id),
            spec.unit.to_string(),
            spec.window.to_string(),
            spec.amount.to_string(),
            all_or(&spec.models),
            yes(spec.disabled),
        ]
    }

    async fn create(
        link: &Link,
        id: &str,
        spec: &LimitSpec,
        _secret: Option<&Secret>,
    ) -> Result<(Stored<LimitSpec>, Option<Secret>), CallError> {
        let request = pb::CreateLimitRequest {
            limit_id: id.to_owned(),
            limit: Some(encode("", spec)?),
        };
        let limit = link.limits().create_limit(request).await?.into_inner();
        Ok((decode(limit)?, None))
    }

    async fn get(link: &Link, id: &str) -> Result<Stored<LimitSpec>, CallError> {
        let name = name_of(PREFIX, id);
        let request = pb::GetLimitRequest { name };
        decode(link.limits().get_limit(request).await?.into_inner())
    }

    async fn list(
        link: &Link,
        _owner: &str,
        page_size: i32,
        page_token: String,
    ) -> Result<Page<LimitSpec>, CallError> {
        let request = pb::ListLimitsRequest {
            page_size,
            page_token,
        };
        let page = link.limits().list_limits(request).await?.into_inner();
        let limits: Result<_, _> = page.limits.into_iter().map(decode).collect();
        Ok((limits?, page.next_page_token))
    }

    async fn update(
        link: &Link,
        id: &str,
        spec: &LimitSpec,
        _secret: Option<&Secret>,
    ) -> Result<Stored<LimitSpec>, CallError> {
        let request = pb::UpdateLimitRequest {
            limit: Some(encode(id, spec)?),
            update_mask: None,
        };
        decode(link.limits().update_limit(request).await?.into_inner())
    }

    async fn delete(link: &Link, id: &str) -> Result<u64, CallError> {
        let name = name_of(PREFIX, id);
        let request = pb::DeleteLimitRequest { name };
        let answer = link.limits().delete_limit(request).await?;
        Ok(answer.into_inner().config_version)
    }

    fn defaults(spec: &LimitSpec) -> Vec<(&'static str, String)> {
        spec.filled()
    }

    fn is_same(stored: &LimitSpec, wanted: &LimitSpec) -> bool {
        let aligned = LimitSpec {
            models: wanted.models.clone(),
            providers: wanted.providers.clone(),
            rules: wanted.rules.clone(),
            ..stored.clone()
        };
        aligned == *wanted
            && same_set(&stored.models, &wanted.models)
            && same_set(&stored.providers, &wanted.providers)
            && same_set(&stored.rules, &wanted.rules)
    }
}

// === impl LimitSpec ===

impl LimitSpec {
    /// Why an amount is none of the unit, if so.
    pub(crate) fn unfit(&self) -> Option<CallError> {
        encode("", self).err()
    }

    /// What holds where nothing is set, by field; `burst` is told for rates only.
    fn filled(&self) -> Vec<(&'static str, String)> {
        let enforcement = match self.unit {
            LimitUnit::Requests | LimitUnit::InFlight => Enforcement::Strict,
            LimitUnit::Money => Enforcement::Guarded,
            LimitUnit::Tokens
            | LimitUnit::InputTokens
            | LimitUnit::UncachedInputTokens
            | LimitUnit::OutputTokens => Enforcement::Estimated,
        };
        let is_set = |list: &[String]| !list.is_empty();
        let each = match self.subject {
            LimitSubject::Everything => String::new(),
            subject => format!("each {subject}"),
        };
        let rows = [
            ("subjectId", !self.subject_id.is_empty(), each),
            ("models", is_set(&self.models), "all".to_owned()),
            ("providers", is_set(&self.providers), "all".to_owned()),
            (
                "rules",
                is_set(&self.rules),
                "all, and requests without one".to_owned(),
            ),
            ("timeZone", !self.time_zone.is_empty(), self.zone()),
            (
                "enforcement",
                self.enforcement.is_some(),
                enforcement.to_string(),
            ),
            (
                "onExceed",
                self.on_exceed.is_some(),
                OnExceed::Reject.to_string(),
            ),
            (
                "onUnavailable",
                self.on_unavailable.is_some(),
                OnUnavailable::Reject.to_string(),
            ),
            (
                "onUnbounded",
                self.on_unbounded.is_some(),
                OnUnbounded::Reject.to_string(),
            ),
            ("burst", !self.burst.is_zero(), self.usual_burst()),
        ];
        let rows = rows
            .into_iter()
            .filter(|(_, is_set, default)| !is_set && !default.is_empty());
        rows.map(|(field, _, default)| (field, default)).collect()
    }

    fn zone(&self) -> String {
        match self.window {
            LimitWindow::Hour | LimitWindow::Day | LimitWindow::Week | LimitWindow::Month => {
                "UTC".to_owned()
            }
            LimitWindow::None
            | LimitWindow::Second
            | LimitWindow::Minute
            | LimitWindow::Lifetime => String::new(),
        }
    }

    /// A quarter of the amount, at least 1; empty where there is no burst.
    fn usual_burst(&self) -> String {
        if !matches!(self.window, LimitWindow::Second | LimitWindow::Minute) {
            return String::new();
        }
        let amount = self.amount.in_unit(self.unit).unwrap_or_default();
        Amount::from_wire(self.unit, (amount / BURST_PART).max(1)).to_string()
    }

    /// `everything`, `team acme`, `each key`.
    pub(crate) fn subjects(&self, id: &str) -> String {
        match (self.subject, id) {
            (LimitSubject::Everything, _) => self.subject.to_string(),
            (subject, "") => format!("each {subject}"),
            (subject, id) => format!("{subject} {id}"),
        }
    }
}

fn is_zero(amount: &Amount) -> bool {
    amount.is_zero()
}

fn encode(id: &str, spec: &LimitSpec) -> Result<pb::Limit, CallError> {
    let in_unit = |field: &str, amount: Amount| {
        let value = amount.in_unit(spec.unit);
        value.map_err(|error| CallError::Unfit(format!("{field}: {error}")))
    };
    let values = config::Limit {
        id: id.to_owned(),
        subject: spec.subject.to_wire(),
        subject_id: spec.subject_id.clone(),
        models: spec.models.clone(),
        providers: spec.providers.clone(),
        rules: spec.rules.clone(),
        unit: spec.unit.to_wire(),
        amount: in_unit("amount", spec.amount)?,
        window: spec.window.to_wire(),
        time_zone: spec.time_zone.clone(),
        enforcement: spec.enforcement.map_or(0, Enforcement::to_wire),
        on_exceed: spec.on_exceed.map_or(0, OnExceed::to_wire),
        on_unavailable: spec.on_unavailable.map_or(0, OnUnavailable::to_wire),
        outage_allowance: in_unit("outageAllowance", spec.outage_allowance)?,
        on_unbounded: spec.on_unbounded.map_or(0, OnUnbounded::to_wire),
        burst: in_unit("burst", spec.burst)?,
        clamp: spec.clamp,
        thresholds: spec.thresholds.clone(),
        disabled: spec.disabled,
    };
    Ok(pb::Limit {
        name: name_of(PREFIX, id),
        values: Some(values),
        display_name: spec.display_name.clone(),
        ..Default::default()
    })
}

fn decode(limit: pb::Limit) -> Result<Stored<LimitSpec>, CallError> {
    let values = limit.values.ok_or(CallError::Missing("limit's values"))?;
    let unit = LimitUnit::from_wire(values.unit)?;
    Ok(Stored {
        id: id_of(&limit.name, PREFIX),
        status: Status {
            config_version: limit.config_version,
            create_time: Moment::from_wire(limit.create_time.as_ref()),
            update_time: Moment::from_wire(limit.update_time.as_ref()),
            ..Default::default()
        },
        spec: LimitSpec {
            display_name: limit.display_name,
            subject: LimitSubject::from_wire(values.subject)?,
            subject_id: values.subject_id,
            models: values.models,
            providers: values.providers,
            rules: values.rules,
            unit,
            amount: Amount::from_wire(unit, values.amount),
            window: LimitWindow::from_wire(values.window)?,
            time_zone: values.time_zone,
            enforcement: set(values.enforcement, Enforcement::from_wire)?,
            on_exceed: set(values.on_exceed, OnExceed::from_wire)?,
            on_unavailable: set(values.on_unavailable, OnUnavailable::from_wire)?,
            outage_allowance: optional(unit, values.outage_allowance),
            on_unbounded: set(values.on_unbounded, OnUnbounded::from_wire)?,
            burst: optional(unit, values.burst),
            clamp: values.clamp,
            thresholds: values.thresholds,
            disabled: values.disabled,
        },
    })
}

/// A word that may be absent.
fn set<T>(value: i32, word: fn(i32) -> Result<T, CallError>) -> Result<Option<T>, CallError> {
    match value {
        0 => Ok(None),
        value => word(value).map(Some),
    }
}

/// Zero is the same in every unit when nothing was set.
fn optional(unit: LimitUnit, value: u64) -> Amount {
    match value {
        0 => Amount::default(),
        value => Amount::from_wire(unit, value),
    }
}
