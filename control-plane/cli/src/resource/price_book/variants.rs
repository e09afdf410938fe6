//! What tiers and times of day change.

use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use super::rates::{LongContextSpec, RatesSpec};
use super::text::{Factor, TimeOfDay, Weekday};

/// A service tier, by a factor or rates of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TierSpec {
    pub(crate) tier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) factor: Option<Factor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rates: Option<RatesSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) long_context: Option<LongContextSpec>,
}

/// A time of day, UTC, by a factor or rates of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TimeOfDaySpec {
    pub(crate) from: TimeOfDay,
    pub(crate) to: TimeOfDay,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) weekdays: Vec<Weekday>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) factor: Option<Factor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rates: Option<RatesSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) long_context: Option<LongContextSpec>,
}

// === impl TierSpec ===

impl TierSpec {
    pub(crate) fn encode(&self) -> config::TierPrice {
        config::TierPrice {
            tier: self.tier.clone(),
            factor_permille: self.factor.map_or(0, |factor| factor.permille),
            rates: self.rates.as_ref().map(RatesSpec::encode),
            long_context: self.long_context.as_ref().map(LongContextSpec::encode),
        }
    }

    pub(crate) fn decode(tier: &config::TierPrice) -> Self {
        Self {
            tier: tier.tier.clone(),
            factor: Factor::of(tier.factor_permille),
            rates: tier.rates.as_ref().map(RatesSpec::decode),
            long_context: tier.long_context.as_ref().map(LongContextSpec::decode),
        }
    }
}

// === impl TimeOfDaySpec ===

impl TimeOfDaySpec {
    pub(crate) fn encode(&self) -> config::TimeOfDayPrice {
        config::TimeOfDayPrice {
            from_minute: self.from.minute,
            to_minute: self.to.minute,
            weekdays: self.weekdays.iter().map(|day| day.number()).collect(),
            factor_permille: self.factor.map_or(0, |factor| factor.permille),
            rates: self.rates.as_ref().map(RatesSpec::encode),
            long_context: self.long_context.as_ref().map(LongContextSpec::encode),
        }
    }

    pub(crate) fn decode(time: &config::TimeOfDayPrice) -> Self {
        let weekdays = time.weekdays.iter().copied();
        Self {
            from: TimeOfDay {
                minute: time.from_minute,
            },
            to: TimeOfDay {
                minute: time.to_minute,
            },
            weekdays: weekdays.filter_map(Weekday::of).collect(),
            factor: Factor::of(time.factor_permille),
            rates: time.rates.as_ref().map(RatesSpec::decode),
            long_context: time.long_context.as_ref().map(LongContextSpec::decode),
        }
    }
}
