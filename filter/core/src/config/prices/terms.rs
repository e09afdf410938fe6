//! From a price as it comes to one that is computed with.

use filter_llm::price::{self, RatesByLength, Terms, TierTerms, TimeOfDayTerms, Weekdays};
use proto::config::v1::{LongContext, Price, Rates};

/// What a price says. Parts that [`price_faults`](super::price_faults) finds fault with count as
/// far as they go.
pub(crate) fn terms_of(price: &Price) -> price::Price {
    let standard = price::Rates {
        input_pusd: price.input_pusd,
        cached_input_pusd: price.cached_input_pusd,
        cache_write_pusd: price.cache_write_pusd,
        cache_write_1h_pusd: price.cache_write_1h_pusd,
        input_audio_pusd: price.input_audio_pusd,
        output_pusd: price.output_pusd,
        reasoning_pusd: price.reasoning_pusd,
        output_audio_pusd: price.output_audio_pusd,
    };
    let tiers = price.tiers.iter().map(|it| TierTerms {
        tier: it.tier.clone(),
        terms: change(
            it.factor_permille,
            it.rates.as_ref(),
            it.long_context.as_ref(),
        ),
    });
    let times_of_day = price.times_of_day.iter().map(|it| TimeOfDayTerms {
        from_minute: it.from_minute,
        to_minute: it.to_minute,
        weekdays: Weekdays::of(&it.weekdays),
        terms: change(
            it.factor_permille,
            it.rates.as_ref(),
            it.long_context.as_ref(),
        ),
    });
    price::Price {
        standard: by_length(standard, price.long_context.as_ref()),
        tiers: tiers.collect(),
        times_of_day: times_of_day.collect(),
    }
}

fn change(
    factor_permille: u32,
    rates: Option<&Rates>,
    long_context: Option<&LongContext>,
) -> Terms {
    match factor_permille {
        0 => Terms::Own(Box::new(by_length(rates_of(rates), long_context))),
        permille => Terms::Factor { permille },
    }
}

fn by_length(rates: price::Rates, long_context: Option<&LongContext>) -> RatesByLength {
    let long_context = long_context.map(|long| price::LongContext {
        above_input_tokens: long.above_input_tokens,
        rates: rates_of(long.rates.as_ref()),
    });
    RatesByLength {
        rates,
        long_context,
    }
}

fn rates_of(rates: Option<&Rates>) -> price::Rates {
    rates.map_or(price::Rates::UNKNOWN, |rates| price::Rates {
        input_pusd: rates.input_pusd,
        cached_input_pusd: rates.cached_input_pusd,
        cache_write_pusd: rates.cache_write_pusd,
        cache_write_1h_pusd: rates.cache_write_1h_pusd,
        input_audio_pusd: rates.input_audio_pusd,
        output_pusd: rates.output_pusd,
        reasoning_pusd: rates.reasoning_pusd,
        output_audio_pusd: rates.output_audio_pusd,
    })
}
