//! What tokens cost: integer pico-USD per token, one rounding to nano-USD for each class.

use crate::usage::Usage;

/// Pico-USD in a nano-USD.
const PUSD_PER_NUSD: u128 = 1_000;

/// Prices of one upstream model in pico-USD (10^-12 USD) per token. `None` is unknown, which is
/// not zero; cache reads and writes then cost as input, and reasoning as output.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Price {
    pub input_pusd: Option<u64>,
    pub cached_input_pusd: Option<u64>,
    pub cache_write_pusd: Option<u64>,
    pub output_pusd: Option<u64>,
    pub reasoning_pusd: Option<u64>,
}

impl Price {
    /// Pico-USD per token of a class; `None`: unknown.
    pub fn of(&self, class: TokenClass) -> Option<u64> {
        match class {
            TokenClass::Input => self.input_pusd,
            TokenClass::CachedInput => self.cached_input_pusd.or(self.input_pusd),
            TokenClass::CacheWrite => self.cache_write_pusd.or(self.input_pusd),
            TokenClass::Output => self.output_pusd,
            TokenClass::Reasoning => self.reasoning_pusd.or(self.output_pusd),
        }
    }
}

/// Tokens that have a price of their own. The classes are disjoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum TokenClass {
    /// Input that is neither read from nor written to a cache.
    Input,
    CachedInput,
    CacheWrite,
    /// Output without reasoning.
    Output,
    Reasoning,
}

/// Tokens of one class and what they cost in nano-USD (10^-9 USD), rounded half to even.
/// `cost_nusd` is `None` when the price is unknown or the cost does not fit 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassCost {
    pub class: TokenClass,
    pub tokens: u64,
    pub cost_nusd: Option<u64>,
}

/// Every class of `usage` with its cost; their tokens add up to input and output.
pub fn cost(usage: &Usage, price: &Price) -> [ClassCost; 5] {
    let usage = usage.clamped();
    let plain_input = usage.input - usage.cached_input - usage.cache_write;
    [
        (TokenClass::Input, plain_input),
        (TokenClass::CachedInput, usage.cached_input),
        (TokenClass::CacheWrite, usage.cache_write),
        (TokenClass::Output, usage.output - usage.reasoning),
        (TokenClass::Reasoning, usage.reasoning),
    ]
    .map(|(class, tokens)| ClassCost {
        class,
        tokens,
        cost_nusd: price.of(class).and_then(|pusd| nusd(tokens, pusd)),
    })
}

/// The sum in nano-USD; `None` when a class that has tokens has no known cost.
pub fn total_nusd(costs: &[ClassCost]) -> Option<u64> {
    costs
        .iter()
        .filter(|cost| cost.tokens > 0)
        .try_fold(0_u64, |sum, cost| sum.checked_add(cost.cost_nusd?))
}

fn nusd(tokens: u64, pusd_per_token: u64) -> Option<u64> {
    let pusd = u128::from(tokens) * u128::from(pusd_per_token);
    let (whole, rest) = (pusd / PUSD_PER_NUSD, pusd % PUSD_PER_NUSD);
    let half = PUSD_PER_NUSD / 2;
    let rounds_up = rest > half || (rest == half && whole % 2 == 1);
    u64::try_from(whole + u128::from(rounds_up)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        input_pusd: Some(2_500_000),
        cached_input_pusd: Some(1_250_000),
        cache_write_pusd: Some(3_125_000),
        output_pusd: Some(10_000_000),
        reasoning_pusd: Some(12_000_000),
    };

    const USAGE: Usage = Usage {
        input: 1_500,
        cached_input: 1_024,
        cache_write: 100,
        input_audio: 0,
        output: 300,
        reasoning: 120,
        output_audio: 0,
    };

    #[test]
    fn every_class_is_charged_at_its_own_price() {
        let costs = cost(&USAGE, &PRICE).map(|cost| (cost.class, cost.tokens, cost.cost_nusd));
        let expected = [
            (TokenClass::Input, 376, Some(940_000)),
            (TokenClass::CachedInput, 1_024, Some(1_280_000)),
            (TokenClass::CacheWrite, 100, Some(312_500)),
            (TokenClass::Output, 180, Some(1_800_000)),
            (TokenClass::Reasoning, 120, Some(1_440_000)),
        ];
        assert_eq!(costs, expected);
        assert_eq!(total_nusd(&cost(&USAGE, &PRICE)), Some(5_772_500));
    }

    #[test]
    fn missing_cache_and_reasoning_prices_fall_back_to_input_and_output() {
        let price = Price {
            input_pusd: Some(1_000),
            output_pusd: Some(4_000),
            ..Price::default()
        };
        assert_eq!(total_nusd(&cost(&USAGE, &price)), Some(1_500 + 4 * 300));
    }

    #[test]
    fn an_unknown_price_is_none_and_never_zero() {
        let price = Price {
            input_pusd: Some(1_000),
            ..Price::default()
        };
        let costs = cost(&USAGE, &price);
        assert_eq!(costs.map(|cost| cost.cost_nusd)[3..], [None, None]);
        assert_eq!(total_nusd(&costs), None);
        let without_output = Usage {
            output: 0,
            reasoning: 0,
            ..USAGE
        };
        assert_eq!(total_nusd(&cost(&without_output, &price)), Some(1_500));
    }

    #[test]
    fn a_price_of_zero_is_free() {
        let free = Price {
            input_pusd: Some(0),
            output_pusd: Some(0),
            ..Price::default()
        };
        assert_eq!(total_nusd(&cost(&USAGE, &free)), Some(0));
    }

    #[test]
    fn halves_round_to_even_once_per_class() {
        assert_eq!(nusd(1, 500), Some(0));
        assert_eq!(nusd(1, 501), Some(1));
        assert_eq!(nusd(3, 500), Some(2));
        assert_eq!(nusd(5, 500), Some(2));
        assert_eq!(nusd(7, 150), Some(1));
        assert_eq!(nusd(u64::MAX, u64::MAX), None);
    }
}
