//! What tokens cost: integer pico-USD per token, one rounding to nano-USD for each class.
//!
//! A [`Price`] is everything that is known of a target at one date. [`Price::quote`] finds the rates
//! that hold for one request, [`cost`] applies them; [`Price::dearest`] bounds what any request
//! could be quoted.

use crate::usage::Usage;

mod rates;

pub use rates::{LongContext, Rates, RatesByLength, TokenClass};

/// Thousandths of thousandths: a tier's factor times one of the time of day.
const ONE_PPM: u64 = 1_000_000;
const ONE_PERMILLE: u64 = 1_000;
/// Millionths of a pico-USD in a nano-USD.
const PARTS_PER_NUSD: u128 = 1_000 * ONE_PPM as u128;
const SECONDS_PER_MINUTE: u64 = 60;
const MINUTES_PER_DAY: u64 = 24 * 60;
const DAYS_PER_WEEK: u64 = 7;
/// 1 January 1970, with Monday as 0.
const THURSDAY: u64 = 3;
/// An attempt begins this soon after it was let through, or was let through anew: its time of day
/// is one of these minutes.
const OUTLOOK_MINUTES: u64 = 10;

/// Prices of one upstream model from one date on.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Price {
    /// What holds unless a tier or the time of day has it otherwise.
    pub standard: RatesByLength,
    pub tiers: Vec<TierTerms>,
    /// Of several that hold, the first counts.
    pub times_of_day: Vec<TimeOfDayTerms>,
}

/// What a tier or a time of day changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Terms {
    /// The rates that hold otherwise, by so many thousandths.
    Factor { permille: u32 },
    /// Rates instead of them.
    Own(Box<RatesByLength>),
}

/// What a service tier costs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TierTerms {
    /// As the provider names it in its answers.
    pub tier: String,
    pub terms: Terms,
}

/// What a time of day costs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimeOfDayTerms {
    /// Minutes of the UTC day, from inclusive, to exclusive; over midnight if `from` is the later
    /// one, all day if they are the same.
    pub from_minute: u32,
    pub to_minute: u32,
    pub weekdays: Weekdays,
    pub terms: Terms,
}

/// Days of the week, UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weekdays(u8);

/// A price, and when the attempt that it is for began.
#[derive(Clone, Copy, Debug)]
pub struct PriceAt<'a> {
    pub price: &'a Price,
    pub unix_s: u64,
    /// What takes its place so soon that an attempt which is let through now may cost it.
    pub next: Option<&'a Price>,
}

/// The rates of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quote {
    rates: Rates,
    factor_ppm: u64,
}

/// At least what requests are quoted, in millionths of a pico-USD per token. 0 where nothing is
/// known.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Dearest {
    pub input: u128,
    pub output: u128,
}

/// Tokens of one class and what they cost in nano-USD (10^-9 USD), rounded half to even.
/// `cost_nusd` is `None` when the price is unknown or the cost does not fit 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassCost {
    pub class: TokenClass,
    pub tokens: u64,
    pub cost_nusd: Option<u64>,
}

impl Price {
    /// A price that depends on neither length nor tier nor time.
    pub fn flat(rates: Rates) -> Self {
        Self {
            standard: RatesByLength {
                rates,
                long_context: None,
            },
            ..Self::default()
        }
    }

    /// True when the rates of input and output are known.
    pub fn is_known(&self) -> bool {
        self.standard.rates.are_known()
    }

    /// What holds for a request of so many input tokens that began at a moment and was served in a
    /// tier. The tier's own rates go before those of the time of day, factors of both count.
    pub fn quote(&self, input_tokens: u64, tier: &str, unix_s: u64) -> Quote {
        let tier = self.tiers.iter().find(|it| it.tier == tier);
        let time = self.time_at(unix_s);
        let (rates, factor_ppm) = self.terms(tier.map(|it| &it.terms), time);
        Quote {
            rates: *rates.of_length(input_tokens),
            factor_ppm,
        }
    }

    /// The dearest that any request is quoted which has at most so many input tokens and begins
    /// within ten minutes from a moment on, in whatever tier.
    pub fn dearest(&self, most_input_tokens: u64, unix_s: u64) -> Dearest {
        let minutes = if self.times_of_day.is_empty() {
            0..=0
        } else {
            0..=OUTLOOK_MINUTES
        };
        let mut dearest = Dearest::default();
        for minute in minutes {
            let time = self.time_at(unix_s.saturating_add(minute * SECONDS_PER_MINUTE));
            let tiers = self.tiers.iter().map(|it| Some(&it.terms));
            for tier in tiers.chain([None]) {
                let (rates, factor_ppm) = self.terms(tier, time);
                dearest.cover(rates, most_input_tokens, factor_ppm);
            }
        }
        dearest
    }

    fn time_at(&self, unix_s: u64) -> Option<&Terms> {
        let minute = unix_s / SECONDS_PER_MINUTE;
        let holds = self.times_of_day.iter().find(|it| it.holds_at(minute));
        holds.map(|it| &it.terms)
    }

    fn terms<'a>(
        &'a self,
        tier: Option<&'a Terms>,
        time: Option<&'a Terms>,
    ) -> (&'a RatesByLength, u64) {
        let own = [tier, time].into_iter().flatten().find_map(Terms::own);
        let factors = [tier, time].map(|terms| terms.map_or(ONE_PERMILLE, Terms::permille));
        let [of_tier, of_time] = factors;
        (own.unwrap_or(&self.standard), of_tier * of_time)
    }
}

impl PriceAt<'_> {
    /// How soon an attempt begins after it was let through, in seconds: [`next`](Self::next) is
    /// what takes effect within it.
    pub const OUTLOOK_S: u64 = OUTLOOK_MINUTES * SECONDS_PER_MINUTE;

    /// Every class of `usage` with its cost, served in a tier.
    pub fn cost(&self, usage: &Usage, tier: &str) -> [ClassCost; TokenClass::ALL.len()] {
        cost(usage, &self.price.quote(usage.input, tier, self.unix_s))
    }

    /// As [`Price::dearest`], of this price and the next.
    pub fn dearest(&self, most_input_tokens: u64) -> Dearest {
        let of = |price: &Price| price.dearest(most_input_tokens, self.unix_s);
        let dearest = of(self.price);
        let next = self.next.map(of).unwrap_or_default();
        Dearest {
            input: dearest.input.max(next.input),
            output: dearest.output.max(next.output),
        }
    }

    /// What output and fresh input cost a request in no tier, as a bound for those classes alone.
    pub fn likely(&self, input_tokens: u64) -> Dearest {
        let quote = self.price.quote(input_tokens, "", self.unix_s);
        let of = |class| quote.of(class).unwrap_or(0);
        Dearest {
            input: of(TokenClass::Input),
            output: of(TokenClass::Output).max(of(TokenClass::Reasoning)),
        }
    }
}

impl Terms {
    fn own(&self) -> Option<&RatesByLength> {
        match self {
            Self::Own(rates) => Some(rates),
            Self::Factor { .. } => None,
        }
    }

    fn permille(&self) -> u64 {
        match self {
            Self::Factor { permille } => u64::from(*permille),
            Self::Own(_) => ONE_PERMILLE,
        }
    }
}

impl TimeOfDayTerms {
    /// At a minute since the epoch.
    fn holds_at(&self, minute: u64) -> bool {
        let weekday = (minute / MINUTES_PER_DAY + THURSDAY) % DAYS_PER_WEEK;
        if self.weekdays.0 & (1 << weekday) == 0 {
            return false;
        }
        let minute = minute % MINUTES_PER_DAY;
        let (from, to) = (u64::from(self.from_minute), u64::from(self.to_minute));
        if from < to {
            (from..to).contains(&minute)
        } else {
            minute >= from || minute < to
        }
    }
}

impl Weekdays {
    /// Every day.
    pub const ALL: Self = Self(0b111_1111);

    /// Of numbers from 1, Monday, to 7, Sunday; others are ignored. None of them: every day.
    pub fn of(numbers: &[u32]) -> Self {
        let known = numbers.iter().filter(|number| (1..=7).contains(*number));
        match known.fold(0, |days, number| days | 1 << (number - 1)) {
            0 => Self::ALL,
            days => Self(days),
        }
    }
}

impl Quote {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        rates: Rates::UNKNOWN,
        factor_ppm: ONE_PPM,
    };

    /// Millionths of a pico-USD for one token of a class; `None`: unknown.
    pub fn of(&self, class: TokenClass) -> Option<u128> {
        let pusd = self.rates.of(class)?;
        Some(u128::from(pusd) * u128::from(self.factor_ppm))
    }

    fn nusd(&self, class: TokenClass, tokens: u64) -> Option<u64> {
        let parts = self.of(class)?.checked_mul(u128::from(tokens))?;
        let (whole, rest) = (parts / PARTS_PER_NUSD, parts % PARTS_PER_NUSD);
        let half = PARTS_PER_NUSD / 2;
        let rounds_up = rest > half || (rest == half && whole % 2 == 1);
        u64::try_from(whole + u128::from(rounds_up)).ok()
    }
}

impl Dearest {
    fn cover(&mut self, rates: &RatesByLength, most_input_tokens: u64, factor_ppm: u64) {
        for rates in rates.up_to_length(most_input_tokens) {
            let quote = Quote {
                rates: *rates,
                factor_ppm,
            };
            for class in TokenClass::ALL {
                let dearest = if class.is_input() {
                    &mut self.input
                } else {
                    &mut self.output
                };
                *dearest = (*dearest).max(quote.of(class).unwrap_or(0));
            }
        }
    }

    /// At least what any usage of so many tokens costs, in nano-USD.
    pub fn nusd(&self, input_tokens: u64, output_tokens: u64) -> u64 {
        bound_nusd(
            self.input.saturating_mul(u128::from(input_tokens)),
            self.output.saturating_mul(u128::from(output_tokens)),
        )
    }
}

/// Nano-USD, in which as many classes as there are may each have been rounded up.
fn bound_nusd(input_parts: u128, output_parts: u128) -> u64 {
    let nusd = input_parts
        .saturating_add(output_parts)
        .div_ceil(PARTS_PER_NUSD);
    let classes = TokenClass::ALL.len() as u128;
    u64::try_from(nusd.saturating_add(classes)).unwrap_or(u64::MAX)
}

/// Every class of `usage` with its cost; their tokens add up to input and output.
pub fn cost(usage: &Usage, quote: &Quote) -> [ClassCost; TokenClass::ALL.len()] {
    let usage = usage.clamped();
    let fresh_input = usage.input - usage.cached_input - usage.cache_write;
    let input_audio = usage.input_audio.min(fresh_input);
    let said_output = usage.output - usage.reasoning;
    let output_audio = usage.output_audio.min(said_output);
    TokenClass::ALL.map(|class| {
        let tokens = match class {
            TokenClass::Input => fresh_input - input_audio,
            TokenClass::CachedInput => usage.cached_input,
            TokenClass::CacheWrite => usage.cache_write - usage.cache_write_1h,
            TokenClass::CacheWrite1h => usage.cache_write_1h,
            TokenClass::AudioInput => input_audio,
            TokenClass::Output => said_output - output_audio,
            TokenClass::Reasoning => usage.reasoning,
            TokenClass::AudioOutput => output_audio,
        };
        ClassCost {
            class,
            tokens,
            cost_nusd: quote.nusd(class, tokens),
        }
    })
}

/// The sum in nano-USD; `None` when a class that has tokens has no known cost.
pub fn total_nusd(costs: &[ClassCost]) -> Option<u64> {
    costs
        .iter()
        .filter(|cost| cost.tokens > 0)
        .try_fold(0_u64, |sum, cost| sum.checked_add(cost.cost_nusd?))
}

#[cfg(test)]
mod tests;
