//! What targets cost, replaced as a whole under a new version.

use std::collections::BTreeSet;

use proto::config::v1 as config;
use serde::Serialize;

use crate::fault::{Fault, Faults};
use crate::name::is_id;

mod price;

pub use price::{LongContext, Price, Rates, TierPrice, TimeOfDayPrice};

/// A version of the price book.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PriceBook {
    /// Rises by one with each change; 0: there is no book yet.
    pub version: u64,
    pub prices: Vec<Price>,
}

const MAX_PRICES: usize = 10_000;

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
            check_target(price, &place, &mut faults);
            price.check(&place, &mut faults);
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

fn check_target(price: &Price, place: &str, faults: &mut Faults) {
    faults.require(
        is_id(&price.provider),
        &format!("{place}.provider"),
        "must be 1-64 characters of [a-z0-9-]",
    );
    faults.require(
        (1..=256).contains(&price.upstream_model.len()) && !price.upstream_model.contains('\0'),
        &format!("{place}.upstream_model"),
        "must be 1-256 bytes without NUL",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_off_by_a_million_is_refused_at_its_class() {
        let price = Price {
            provider: "demo".into(),
            upstream_model: "m".into(),
            rates: Rates {
                input_pusd: Some(2_500_000),
                output_pusd: Some(10_000_000_000_000),
                ..Rates::default()
            },
            ..Price::default()
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

    #[test]
    fn faults_of_tiers_and_times_are_told_at_their_place() {
        let price = Price {
            provider: "demo".into(),
            upstream_model: "m".into(),
            tiers: vec![TierPrice {
                tier: "flex".into(),
                ..TierPrice::default()
            }],
            times_of_day: vec![TimeOfDayPrice {
                to_minute: 1_440,
                factor_permille: 500,
                ..TimeOfDayPrice::default()
            }],
            ..Price::default()
        };
        let book = PriceBook {
            version: 1,
            prices: vec![price],
        };
        let fields: Vec<_> = book
            .validate()
            .unwrap_err()
            .into_iter()
            .map(|f| f.field)
            .collect();
        let expected = [
            "prices[0].tiers[0].rates",
            "prices[0].times_of_day[0].to_minute",
        ];
        assert_eq!(fields, expected);
    }
}
