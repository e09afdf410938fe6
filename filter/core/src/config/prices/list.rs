//! Prices by themselves: what usage that is in the ledger costs by another book.

use std::fmt;
use std::ops::Range;

use filter_llm::price::{self, PriceAt, Quote, TokenClass};
use filter_llm::usage::Usage;
use proto::config::v1::{PriceBook, Settings};
use proto::metering::v1::{Attempt, Usage as WireUsage};

use super::{Prices, compile};
use crate::config::Fault;
use crate::config::compile::Faults;

const US_PER_S: i64 = 1_000_000;
const SECONDS_PER_MINUTE: usize = 60;

/// A price book with what the settings say of prices that are not in it.
pub struct PriceList(Prices);

impl fmt::Debug for PriceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PriceList")
            .field("version", &self.0.version)
            .finish_non_exhaustive()
    }
}

impl PriceList {
    /// What can't be used is left out and told.
    pub fn new(book: Option<&PriceBook>, settings: Option<&Settings>) -> (Self, Vec<Fault>) {
        let mut faults = Faults::default();
        let prices = compile(book, settings, &mut faults);
        (Self(prices), faults.into_vec())
    }

    /// Version of the book; 0: there is none.
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// Nano-USD that an attempt cost by this book, which began at a moment in Unix microseconds;
    /// computed as a node does. `None`: a class that has tokens has no price.
    pub fn cost_nusd(&self, attempt: &Attempt, started_at_us: i64) -> Option<u64> {
        let wire = attempt.usage.as_ref()?;
        let started_s = u64::try_from(started_at_us / US_PER_S).unwrap_or(0);
        let usage = usage_of(wire);
        let costs = match self.at(&attempt.provider, &attempt.upstream_model, started_s) {
            Some(price) => price.cost(&usage, &wire.service_tier),
            None => price::cost(&usage, &Quote::UNKNOWN),
        };
        price::total_nusd(&costs)
    }

    /// Nano-USD that the attempts of some span of time cost, of which no more than their sum is
    /// known; rounded once. `None`: a price is not known, or is another for some of what may be in
    /// the sum, by time, tier, length or class.
    pub fn cost_of_sum_nusd(
        &self,
        (provider, upstream_model): (&str, &str),
        span_s: Range<u64>,
        sum: &Usage,
    ) -> Option<u64> {
        let first = self.at(provider, upstream_model, span_s.start)?;
        if !first.price.tiers.is_empty() {
            return None;
        }
        let quote = first.price.quote(0, "", span_s.start);
        let knows_classes = quote.of(TokenClass::AudioInput) == quote.of(TokenClass::Input)
            && quote.of(TokenClass::AudioOutput) == quote.of(TokenClass::Output)
            && (sum.cache_write == 0
                || quote.of(TokenClass::CacheWrite1h) == quote.of(TokenClass::CacheWrite));
        let holds_at = |unix_s: u64| {
            let price = self.at(provider, upstream_model, unix_s);
            // An attempt has no more input than all of them.
            price.is_some_and(|it| {
                let longest = it.price.quote(sum.input, "", unix_s);
                it.price.tiers.is_empty()
                    && longest == quote
                    && it.price.quote(0, "", unix_s) == quote
            })
        };
        let last_s = span_s.end.saturating_sub(1);
        let mut moments = span_s.step_by(SECONDS_PER_MINUTE).chain([last_s]);
        if !knows_classes || !moments.all(holds_at) {
            return None;
        }
        price::total_nusd(&price::cost(sum, &quote))
    }

    fn at(&self, provider: &str, upstream_model: &str, unix_s: u64) -> Option<PriceAt<'_>> {
        let entries = self.0.entries_of(provider, upstream_model);
        self.0.at(&entries, unix_s)
    }
}

fn usage_of(usage: &WireUsage) -> Usage {
    Usage {
        input: usage.input,
        cached_input: usage.cached_input,
        cache_write: usage.cache_write,
        cache_write_1h: usage.cache_write_1h,
        input_audio: usage.input_audio,
        output: usage.output,
        reasoning: usage.reasoning,
        output_audio: usage.output_audio,
    }
}

#[cfg(test)]
mod tests {
    use proto::config::v1::{LongContext, Price, Rates, TierPrice, TimeOfDayPrice};

    use super::*;

    fn price(effective_from_s: u64, input_pusd: u64) -> Price {
        Price {
            provider: "p".into(),
            upstream_model: "m".into(),
            effective_from_s,
            input_pusd: Some(input_pusd),
            output_pusd: Some(4_000),
            ..Price::default()
        }
    }

    fn list(prices: Vec<Price>) -> PriceList {
        let (list, faults) = PriceList::new(Some(&PriceBook { version: 3, prices }), None);
        assert_eq!(faults, []);
        list
    }

    fn sum(input: u64, output: u64) -> Usage {
        Usage {
            input,
            output,
            ..Usage::default()
        }
    }

    #[test]
    fn an_attempt_costs_by_its_start_and_its_tier() {
        let mut dear = price(100, 2_000);
        dear.tiers.push(TierPrice {
            tier: "flex".into(),
            factor_permille: 500,
            ..TierPrice::default()
        });
        let list = list(vec![price(0, 1_000), dear]);
        let cost = |tier: &str, started_at_us| {
            let attempt = Attempt {
                provider: "p".into(),
                upstream_model: "m".into(),
                usage: Some(WireUsage {
                    input: 10,
                    service_tier: tier.into(),
                    ..WireUsage::default()
                }),
                ..Attempt::default()
            };
            list.cost_nusd(&attempt, started_at_us)
        };
        assert_eq!(list.version(), 3);
        assert_eq!(cost("flex", 99_999_999), Some(10));
        assert_eq!(cost("flex", 100_000_000), Some(10));
        assert_eq!(cost("", 100_000_000), Some(20));
        let unknown = Attempt {
            usage: Some(WireUsage {
                input: 1,
                ..WireUsage::default()
            }),
            ..Attempt::default()
        };
        assert_eq!(list.cost_nusd(&unknown, 0), None);
    }

    #[test]
    fn a_sum_costs_only_where_all_that_may_be_in_it_costs_the_same() {
        let cost = |prices: Vec<Price>, sum: &Usage| {
            list(prices).cost_of_sum_nusd(("p", "m"), 900..1_800, sum)
        };
        let plain = || price(0, 1_000);
        assert_eq!(cost(vec![plain()], &sum(10, 2)), Some(18));
        assert_eq!(cost(vec![], &sum(10, 2)), None);
        assert_eq!(cost(vec![plain(), price(1_799, 2_000)], &sum(10, 2)), None);
        assert_eq!(
            cost(vec![plain(), price(1_800, 2_000)], &sum(10, 2)),
            Some(18)
        );
        let mut long = plain();
        long.long_context = Some(LongContext {
            above_input_tokens: 10,
            rates: Some(Rates {
                input_pusd: Some(2_000),
                output_pusd: Some(1),
                ..Rates::default()
            }),
        });
        assert_eq!(cost(vec![long.clone()], &sum(10, 2)), Some(18));
        assert_eq!(cost(vec![long], &sum(11, 2)), None);
        let timed = |from_minute, to_minute| {
            let mut price = plain();
            price.times_of_day.push(TimeOfDayPrice {
                from_minute,
                to_minute,
                factor_permille: 500,
                ..TimeOfDayPrice::default()
            });
            vec![price]
        };
        assert_eq!(cost(timed(29, 30), &sum(10, 2)), None);
        assert_eq!(cost(timed(30, 40), &sum(10, 2)), Some(18));
        assert_eq!(cost(timed(15, 30), &sum(10, 2)), Some(9));
        let mut tiered = plain();
        tiered.tiers.push(TierPrice {
            tier: "flex".into(),
            factor_permille: 500,
            ..TierPrice::default()
        });
        assert_eq!(cost(vec![tiered], &sum(10, 2)), None);
        let mut audio = plain();
        audio.input_audio_pusd = Some(1);
        assert_eq!(cost(vec![audio], &sum(10, 2)), None);
        let mut hour = plain();
        hour.cache_write_1h_pusd = Some(1);
        assert_eq!(cost(vec![hour.clone()], &sum(10, 2)), Some(18));
        let written = Usage {
            cache_write: 1,
            ..sum(10, 2)
        };
        assert_eq!(cost(vec![hour], &written), None);
    }
}
