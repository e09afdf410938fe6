//! One entry of the price book.

use filter_core::config::price_faults;
use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use crate::fault::Faults;

/// Prices of one upstream model at one provider from a moment on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    pub provider: String,
    pub upstream_model: String,
    /// Unix time in seconds.
    pub effective_from_s: u64,
    #[serde(flatten)]
    pub rates: Rates,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_context: Option<LongContext>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierPrice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times_of_day: Vec<TimeOfDayPrice>,
}

/// Integer pico-USD per token; a missing class is unknown, not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    pub input_pusd: Option<u64>,
    pub cached_input_pusd: Option<u64>,
    pub cache_write_pusd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h_pusd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_audio_pusd: Option<u64>,
    pub output_pusd: Option<u64>,
    pub reasoning_pusd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_audio_pusd: Option<u64>,
}

/// What a whole request costs whose input is longer than a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongContext {
    pub above_input_tokens: u64,
    pub rates: Rates,
}

/// What a service tier costs: by a factor in thousandths, or by rates of its own if that is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TierPrice {
    pub tier: String,
    pub factor_permille: u32,
    pub rates: Option<Rates>,
    pub long_context: Option<LongContext>,
}

/// What a time of day costs, in minutes of the UTC day; as [`TierPrice`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeOfDayPrice {
    pub from_minute: u32,
    pub to_minute: u32,
    /// 1 is Monday, 7 Sunday; empty: every day.
    pub weekdays: Vec<u32>,
    pub factor_permille: u32,
    pub rates: Option<Rates>,
    pub long_context: Option<LongContext>,
}

impl Price {
    /// What is wrong with it, but for the names of provider and model.
    pub(crate) fn check(&self, place: &str, faults: &mut Faults) {
        for fault in price_faults(&self.to_config()) {
            faults.push(format!("{place}.{}", fault.place), fault.reason);
        }
    }

    /// The wire form.
    pub fn to_config(&self) -> config::Price {
        let Rates {
            input_pusd,
            cached_input_pusd,
            cache_write_pusd,
            cache_write_1h_pusd,
            input_audio_pusd,
            output_pusd,
            reasoning_pusd,
            output_audio_pusd,
        } = self.rates;
        config::Price {
            provider: self.provider.clone(),
            upstream_model: self.upstream_model.clone(),
            effective_from_s: self.effective_from_s,
            input_pusd,
            cached_input_pusd,
            cache_write_pusd,
            output_pusd,
            reasoning_pusd,
            cache_write_1h_pusd,
            input_audio_pusd,
            output_audio_pusd,
            long_context: self.long_context.map(LongContext::to_config),
            tiers: self.tiers.iter().map(TierPrice::to_config).collect(),
            times_of_day: self
                .times_of_day
                .iter()
                .map(TimeOfDayPrice::to_config)
                .collect(),
        }
    }

    /// From the wire form.
    pub fn from_config(price: config::Price) -> Self {
        let tiers = price.tiers.into_iter().map(TierPrice::from_config);
        let times_of_day = price.times_of_day.into_iter();
        Self {
            provider: price.provider,
            upstream_model: price.upstream_model,
            effective_from_s: price.effective_from_s,
            rates: Rates {
                input_pusd: price.input_pusd,
                cached_input_pusd: price.cached_input_pusd,
                cache_write_pusd: price.cache_write_pusd,
                cache_write_1h_pusd: price.cache_write_1h_pusd,
                input_audio_pusd: price.input_audio_pusd,
                output_pusd: price.output_pusd,
                reasoning_pusd: price.reasoning_pusd,
                output_audio_pusd: price.output_audio_pusd,
            },
            long_context: price.long_context.map(LongContext::from_config),
            tiers: tiers.collect(),
            times_of_day: times_of_day.map(TimeOfDayPrice::from_config).collect(),
        }
    }
}

impl Rates {
    pub(crate) fn to_config(self) -> config::Rates {
        config::Rates {
            input_pusd: self.input_pusd,
            cached_input_pusd: self.cached_input_pusd,
            cache_write_pusd: self.cache_write_pusd,
            output_pusd: self.output_pusd,
            reasoning_pusd: self.reasoning_pusd,
            cache_write_1h_pusd: self.cache_write_1h_pusd,
            input_audio_pusd: self.input_audio_pusd,
            output_audio_pusd: self.output_audio_pusd,
        }
    }

    pub(crate) fn from_config(rates: config::Rates) -> Self {
        Self {
            input_pusd: rates.input_pusd,
            cached_input_pusd: rates.cached_input_pusd,
            cache_write_pusd: rates.cache_write_pusd,
            cache_write_1h_pusd: rates.cache_write_1h_pusd,
            input_audio_pusd: rates.input_audio_pusd,
            output_pusd: rates.output_pusd,
            reasoning_pusd: rates.reasoning_pusd,
            output_audio_pusd: rates.output_audio_pusd,
        }
    }
}

impl LongContext {
    fn to_config(self) -> config::LongContext {
        config::LongContext {
            above_input_tokens: self.above_input_tokens,
            rates: Some(self.rates.to_config()),
        }
    }

    fn from_config(long: config::LongContext) -> Self {
        Self {
            above_input_tokens: long.above_input_tokens,
            rates: long.rates.map(Rates::from_config).unwrap_or_default(),
        }
    }
}

impl TierPrice {
    fn to_config(&self) -> config::TierPrice {
        config::TierPrice {
            tier: self.tier.clone(),
            factor_permille: self.factor_permille,
            rates: self.rates.map(Rates::to_config),
            long_context: self.long_context.map(LongContext::to_config),
        }
    }

    fn from_config(tier: config::TierPrice) -> Self {
        Self {
            tier: tier.tier,
            factor_permille: tier.factor_permille,
            rates: tier.rates.map(Rates::from_config),
            long_context: tier.long_context.map(LongContext::from_config),
        }
    }
}

impl TimeOfDayPrice {
    fn to_config(&self) -> config::TimeOfDayPrice {
        config::TimeOfDayPrice {
            from_minute: self.from_minute,
            to_minute: self.to_minute,
            weekdays: self.weekdays.clone(),
            factor_permille: self.factor_permille,
            rates: self.rates.map(Rates::to_config),
            long_context: self.long_context.map(LongContext::to_config),
        }
    }

    fn from_config(time: config::TimeOfDayPrice) -> Self {
        Self {
            from_minute: time.from_minute,
            to_minute: time.to_minute,
            weekdays: time.weekdays,
            factor_permille: time.factor_permille,
            rates: time.rates.map(Rates::from_config),
            long_context: time.long_context.map(LongContext::from_config),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates {
        input_pusd: Some(1),
        cached_input_pusd: Some(2),
        cache_write_pusd: Some(3),
        cache_write_1h_pusd: Some(4),
        input_audio_pusd: Some(5),
        output_pusd: Some(6),
        reasoning_pusd: Some(7),
        output_audio_pusd: Some(8),
    };

    #[test]
    fn a_price_is_the_same_after_the_wire_and_after_storage() {
        let long_context = Some(LongContext {
            above_input_tokens: 200_000,
            rates: RATES,
        });
        let price = Price {
            provider: "p".into(),
            upstream_model: "m".into(),
            effective_from_s: 9,
            rates: RATES,
            long_context,
            tiers: vec![TierPrice {
                tier: "flex".into(),
                factor_permille: 0,
                rates: Some(RATES),
                long_context,
            }],
            times_of_day: vec![TimeOfDayPrice {
                from_minute: 60,
                to_minute: 240,
                weekdays: vec![1, 5],
                factor_permille: 2_000,
                ..TimeOfDayPrice::default()
            }],
        };
        assert_eq!(Price::from_config(price.to_config()), price);
        let stored = serde_json::to_string(&price).unwrap();
        assert_eq!(serde_json::from_str::<Price>(&stored).unwrap(), price);
    }

    #[test]
    fn an_entry_stored_before_there_were_tiers_is_read() {
        let stored = r#"{"provider":"p","upstream_model":"m","effective_from_s":0,
            "input_pusd":1,"cached_input_pusd":null,"cache_write_pusd":null,
            "output_pusd":2,"reasoning_pusd":null}"#;
        let price: Price = serde_json::from_str(stored).unwrap();
        assert_eq!(
            price.rates.input_pusd.zip(price.rates.output_pusd),
            Some((1, 2))
        );
        assert!(price.tiers.is_empty() && price.long_context.is_none());
    }
}
