//! What targets cost, replaced as a whole under a new version.

use std::collections::BTreeSet;

use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use crate::fault::{Fault, Faults};
use crate::name::is_id;

/// A version of the price book.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PriceBook {
    /// Rises by one with each change; 0: there is no book yet.
    pub version: u64,
    pub prices: Vec<Price>,
}

/// Prices of one upstream model at one provider, in integer pico-USD per token; a missing class
/// is unknown, not zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub provider: String,
    pub upstream_model: String,
    /// Unix time in seconds.
    #[serde(default)]
    pub effective_from_s: u64,
    pub input_pusd: Option<u64>,
    pub cached_input_pusd: Option<u64>,
    pub cache_write_pusd: Option<u64>,
    pub output_pusd: Option<u64>,
    pub reasoning_pusd: Option<u64>,
}

const MAX_PRICES: usize = 10_000;
/// One USD a token: a million times what any model costs, so that a slip of a unit is refused.
const MAX_PRICE_PUSD: u64 = 1_000_000_000_000;

impl PriceBook {
    /// Checks what can be judged without the rest of the config.
    ///
    /// # Errors
    /// All faults at once.
    pub fn validate(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Faults::default();
        faults.require(
            self.prices.len() <= MAX_PRICES,
            "prices",
            "must have at most 10,000 entries",
        );
        let mut seen = BTreeSet::new();
        for (position, price) in self.prices.iter().enumerate() {
            let place = format!("prices[{position}]");
            price.validate(&place, &mut faults);
            let same = (
                &price.provider,
                &price.upstream_model,
                price.effective_from_s,
            );
            if !seen.insert(same) {
                faults.push(
                    place,
                    "must not repeat a provider, model and effective_from_s",
                );
            }
        }
        faults.into_result()
    }

    /// The form nodes are sent.
    pub fn to_config(&self) -> config::PriceBook {
        config::PriceBook {
            version: self.version,
            prices: self.prices.iter().map(Price::to_config).collect(),
        }
    }
}

impl Price {
    fn validate(&self, place: &str, faults: &mut Faults) {
        faults.require(
            is_id(&self.provider),
            &format!("{place}.provider"),
            "must be 1-64 characters of [a-z0-9-]",
        );
        faults.require(
            (1..=256).contains(&self.upstream_model.len()) && !self.upstream_model.contains('\0'),
            &format!("{place}.upstream_model"),
            "must be 1-256 bytes without NUL",
        );
        for (class, price) in [
            ("input_pusd", self.input_pusd),
            ("cached_input_pusd", self.cached_input_pusd),
            ("cache_write_pusd", self.cache_write_pusd),
            ("output_pusd", self.output_pusd),
            ("reasoning_pusd", self.reasoning_pusd),
        ] {
            faults.require(
                price.is_none_or(|pusd| pusd <= MAX_PRICE_PUSD),
                &format!("{place}.{class}"),
                "must be at most 10^12 pico-USD (1 USD) per token",
            );
        }
    }

    /// The wire form.
    pub fn to_config(&self) -> config::Price {
        config::Price {
            provider: self.provider.clone(),
            upstream_model: self.upstream_model.clone(),
            effective_from_s: self.effective_from_s,
            input_pusd: self.input_pusd,
            cached_input_pusd: self.cached_input_pusd,
            cache_write_pusd: self.cache_write_pusd,
            output_pusd: self.output_pusd,
            reasoning_pusd: self.reasoning_pusd,
        }
    }

    /// From the wire form.
    pub fn from_config(price: config::Price) -> Self {
        Self {
            provider: price.provider,
            upstream_model: price.upstream_model,
            effective_from_s: price.effective_from_s,
            input_pusd: price.input_pusd,
            cached_input_pusd: price.cached_input_pusd,
            cache_write_pusd: price.cache_write_pusd,
            output_pusd: price.output_pusd,
            reasoning_pusd: price.reasoning_pusd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_off_by_a_million_is_refused_at_its_class() {
        let price = Price {
            provider: "demo".into(),
            upstream_model: "m".into(),
            effective_from_s: 0,
            input_pusd: Some(2_500_000),
            cached_input_pusd: None,
            cache_write_pusd: None,
            output_pusd: Some(10_000_000_000_000),
            reasoning_pusd: None,
        };
        let book = PriceBook {
            version: 1,
            prices: vec![price.clone(), price],
        };
        let fields: Vec<_> = book
            .validate()
            .unwrap_err()
            .into_iter()
            .map(|f| f.field)
            .collect();
        assert_eq!(
            fields,
            [
                "prices[0].output_pusd",
                "prices[1].output_pusd",
                "prices[1]"
            ]
        );
    }
}
