//! Rates by class, and by the length of the prompt.

use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use crate::money::UsdPerMillion;

/// USD per million tokens that stand for themselves; an absent class costs as input or output do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct RatesSpec {
    pub(crate) input: Option<UsdPerMillion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached_input: Option<UsdPerMillion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write: Option<UsdPerMillion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write_1h: Option<UsdPerMillion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_audio: Option<UsdPerMillion>,
    pub(crate) output: Option<UsdPerMillion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning: Option<UsdPerMillion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_audio: Option<UsdPerMillion>,
}

/// What a whole request costs whose input is longer than a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LongContextSpec {
    pub(crate) above_input_tokens: u64,
    pub(crate) rates: RatesSpec,
}

pub(crate) fn pusd(price: Option<UsdPerMillion>) -> Option<u64> {
    price.map(|price| price.pusd_per_token)
}

pub(crate) fn usd(pusd: Option<u64>) -> Option<UsdPerMillion> {
    pusd.map(|pusd_per_token| UsdPerMillion { pusd_per_token })
}

// === impl RatesSpec ===

impl RatesSpec {
    pub(crate) fn encode(&self) -> config::Rates {
        config::Rates {
            input_pusd: pusd(self.input),
            cached_input_pusd: pusd(self.cached_input),
            cache_write_pusd: pusd(self.cache_write),
            cache_write_1h_pusd: pusd(self.cache_write_1h),
            input_audio_pusd: pusd(self.input_audio),
            output_pusd: pusd(self.output),
            reasoning_pusd: pusd(self.reasoning),
            output_audio_pusd: pusd(self.output_audio),
        }
    }

    pub(crate) fn decode(rates: &config::Rates) -> Self {
        Self {
            input: usd(rates.input_pusd),
            cached_input: usd(rates.cached_input_pusd),
            cache_write: usd(rates.cache_write_pusd),
            cache_write_1h: usd(rates.cache_write_1h_pusd),
            input_audio: usd(rates.input_audio_pusd),
            output: usd(rates.output_pusd),
            reasoning: usd(rates.reasoning_pusd),
            output_audio: usd(rates.output_audio_pusd),
        }
    }
}

// === impl LongContextSpec ===

impl LongContextSpec {
    pub(crate) fn encode(&self) -> config::LongContext {
        config::LongContext {
            above_input_tokens: self.above_input_tokens,
            rates: Some(self.rates.encode()),
        }
    }

    pub(crate) fn decode(long: &config::LongContext) -> Self {
        Self {
            above_input_tokens: long.above_input_tokens,
            rates: long
                .rates
                .as_ref()
                .map(RatesSpec::decode)
                .unwrap_or_default(),
        }
    }
}
