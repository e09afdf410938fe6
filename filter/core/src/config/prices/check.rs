//! What can be wrong with a price by itself.

use std::collections::BTreeSet;

use proto::config::v1::{LongContext, Price, Rates};

const MAX_VARIANTS: usize = 8;
const MAX_TIER_BYTES: usize = 64;
const MINUTES_PER_DAY: u32 = 24 * 60;
/// A hundred times: no tier or hour is as dear, so that a slip of a unit is refused.
const MAX_FACTOR_PERMILLE: u32 = 100_000;
/// One USD a token: a million times what any model costs, for the same reason.
const MAX_PRICE_PUSD: u64 = 1_000_000_000_000;

/// Why a price can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceFault {
    /// The field at fault, such as `tiers[0].rates.output_pusd`.
    pub place: String,
    /// What is wrong, in lower case.
    pub reason: &'static str,
}

/// Everything that is wrong with a price, but for the names of provider and model.
pub fn price_faults(price: &Price) -> Vec<PriceFault> {
    let mut faults = Found::default();
    let standard = Rates {
        input_pusd: price.input_pusd,
        cached_input_pusd: price.cached_input_pusd,
        cache_write_pusd: price.cache_write_pusd,
        output_pusd: price.output_pusd,
        reasoning_pusd: price.reasoning_pusd,
        cache_write_1h_pusd: price.cache_write_1h_pusd,
        input_audio_pusd: price.input_audio_pusd,
        output_audio_pusd: price.output_audio_pusd,
    };
    faults.in_range(&standard, "");
    faults.long_context(price.long_context.as_ref(), "");
    faults.require(price.tiers.len() <= MAX_VARIANTS, "tiers", TOO_MANY);
    let mut seen = BTreeSet::new();
    for (at, tier) in price.tiers.iter().enumerate() {
        let place = format!("tiers[{at}].");
        let length = 1..=MAX_TIER_BYTES;
        let is_named = length.contains(&tier.tier.len());
        faults.require(is_named, format!("{place}tier"), "must be 1-64 bytes");
        let is_new = seen.insert(&tier.tier);
        faults.require(is_new, format!("{place}tier"), "must not be named twice");
        let own = (tier.rates.as_ref(), tier.long_context.as_ref());
        faults.change(tier.factor_permille, own, &place);
    }
    let times = &price.times_of_day;
    faults.require(times.len() <= MAX_VARIANTS, "times_of_day", TOO_MANY);
    for (at, time) in times.iter().enumerate() {
        let place = format!("times_of_day[{at}].");
        for (field, minute) in [
            ("from_minute", time.from_minute),
            ("to_minute", time.to_minute),
        ] {
            let is_of_day = minute < MINUTES_PER_DAY;
            faults.require(is_of_day, format!("{place}{field}"), "must be 0-1439");
        }
        let are_days = time.weekdays.iter().all(|day| (1..=7).contains(day));
        faults.require(are_days, format!("{place}weekdays"), "must be 1-7");
        let own = (time.rates.as_ref(), time.long_context.as_ref());
        faults.change(time.factor_permille, own, &place);
    }
    faults.0
}

const TOO_MANY: &str = "must have at most 8 entries";

#[derive(Default)]
struct Found(Vec<PriceFault>);

impl Found {
    fn require(&mut self, holds: bool, place: impl Into<String>, reason: &'static str) {
        if !holds {
            let place = place.into();
            self.0.push(PriceFault { place, reason });
        }
    }

    fn change(
        &mut self,
        factor_permille: u32,
        (rates, long_context): (Option<&Rates>, Option<&LongContext>),
        place: &str,
    ) {
        let field = |name: &str| format!("{place}{name}");
        if factor_permille > 0 {
            self.require(
                factor_permille <= MAX_FACTOR_PERMILLE,
                field("factor_permille"),
                "must be at most 100,000, which is a hundred times",
            );
            self.require(
                rates.is_none() && long_context.is_none(),
                field("rates"),
                "must not stand beside a factor",
            );
            return;
        }
        self.known(rates, &field("rates"));
        self.long_context(long_context, place);
    }

    fn long_context(&mut self, long_context: Option<&LongContext>, place: &str) {
        let Some(long) = long_context else { return };
        self.require(
            long.above_input_tokens > 0,
            format!("{place}long_context.above_input_tokens"),
            "must not be 0",
        );
        self.known(long.rates.as_ref(), &format!("{place}long_context.rates"));
    }

    /// Rates that stand for themselves: nothing is looked up elsewhere.
    fn known(&mut self, rates: Option<&Rates>, place: &str) {
        let are_known =
            rates.is_some_and(|rates| rates.input_pusd.is_some() && rates.output_pusd.is_some());
        self.require(are_known, place, "must have the prices of input and output");
        if let Some(rates) = rates {
            self.in_range(rates, &format!("{place}."));
        }
    }

    fn in_range(&mut self, rates: &Rates, place: &str) {
        for (class, pusd) in [
            ("input_pusd", rates.input_pusd),
            ("cached_input_pusd", rates.cached_input_pusd),
            ("cache_write_pusd", rates.cache_write_pusd),
            ("cache_write_1h_pusd", rates.cache_write_1h_pusd),
            ("input_audio_pusd", rates.input_audio_pusd),
            ("output_pusd", rates.output_pusd),
            ("reasoning_pusd", rates.reasoning_pusd),
            ("output_audio_pusd", rates.output_audio_pusd),
        ] {
            self.require(
                pusd.is_none_or(|pusd| pusd <= MAX_PRICE_PUSD),
                format!("{place}{class}"),
                "must be at most 10^12 pico-USD (1 USD) per token",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::config::v1::{TierPrice, TimeOfDayPrice};

    use super::*;

    fn rates(input: u64, output: u64) -> Rates {
        Rates {
            input_pusd: Some(input),
            output_pusd: Some(output),
            ..Rates::default()
        }
    }

    #[test]
    fn every_fault_of_a_price_is_told_at_its_place() {
        let tier = |tier: &str, factor_permille, rates| TierPrice {
            tier: tier.into(),
            factor_permille,
            rates,
            long_context: None,
        };
        let price = Price {
            input_pusd: Some(MAX_PRICE_PUSD + 1),
            long_context: Some(LongContext {
                above_input_tokens: 0,
                rates: Some(Rates::default()),
            }),
            tiers: vec![
                tier("flex", 500, None),
                tier("flex", 0, None),
                tier("", 100_001, Some(rates(1, 1))),
                tier("priority", 0, Some(rates(1, MAX_PRICE_PUSD + 1))),
            ],
            times_of_day: vec![TimeOfDayPrice {
                from_minute: 1_439,
                to_minute: 1_440,
                factor_permille: 2_000,
                weekdays: vec![1, 8],
                ..TimeOfDayPrice::default()
            }],
            ..Price::default()
        };
        let places: Vec<_> = price_faults(&price)
            .into_iter()
            .map(|it| it.place)
            .collect();
        let expected = [
            "input_pusd",
            "long_context.above_input_tokens",
            "long_context.rates",
            "tiers[1].tier",
            "tiers[1].rates",
            "tiers[2].tier",
            "tiers[2].factor_permille",
            "tiers[2].rates",
            "tiers[3].rates.output_pusd",
            "times_of_day[0].to_minute",
            "times_of_day[0].weekdays",
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn variants_are_few() {
        let time = TimeOfDayPrice {
            factor_permille: 1,
            ..TimeOfDayPrice::default()
        };
        let price = Price {
            times_of_day: vec![time; 9],
            ..Price::default()
        };
        let faults = price_faults(&price);
        assert_eq!((faults.len(), &*faults[0].place), (1, "times_of_day"));
    }
}
