use proptest::prelude::*;

use super::*;

const RATES: Rates = Rates {
    input_pusd: Some(2_500_000),
    cached_input_pusd: Some(1_250_000),
    cache_write_pusd: Some(3_125_000),
    cache_write_1h_pusd: Some(5_000_000),
    input_audio_pusd: Some(40_000_000),
    output_pusd: Some(10_000_000),
    reasoning_pusd: Some(12_000_000),
    output_audio_pusd: Some(80_000_000),
};

const USAGE: Usage = Usage {
    input: 1_500,
    cached_input: 1_024,
    cache_write: 100,
    cache_write_1h: 40,
    input_audio: 76,
    output: 300,
    reasoning: 120,
    output_audio: 80,
};

const NOON: u64 = 12 * 3600;

fn plain(input: u64, output: u64) -> Rates {
    Rates {
        input_pusd: Some(input),
        output_pusd: Some(output),
        ..Rates::UNKNOWN
    }
}

fn own(input: u64, output: u64) -> Terms {
    Terms::Own(Box::new(RatesByLength {
        rates: plain(input, output),
        long_context: None,
    }))
}

fn total(usage: &Usage, price: &Price, tier: &str, unix_s: u64) -> Option<u64> {
    total_nusd(&cost(usage, &price.quote(usage.input, tier, unix_s)))
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage {
        input,
        output,
        ..Usage::default()
    }
}

#[test]
fn every_class_is_charged_at_its_own_rate() {
    let quote = Price::flat(RATES).quote(USAGE.input, "", 0);
    let costs = cost(&USAGE, &quote).map(|cost| (cost.class, cost.tokens, cost.cost_nusd));
    let expected = [
        (TokenClass::Input, 300, Some(750_000)),
        (TokenClass::CachedInput, 1_024, Some(1_280_000)),
        (TokenClass::CacheWrite, 60, Some(187_500)),
        (TokenClass::CacheWrite1h, 40, Some(200_000)),
        (TokenClass::AudioInput, 76, Some(3_040_000)),
        (TokenClass::Output, 100, Some(1_000_000)),
        (TokenClass::Reasoning, 120, Some(1_440_000)),
        (TokenClass::AudioOutput, 80, Some(6_400_000)),
    ];
    assert_eq!(costs, expected);
    assert_eq!(total_nusd(&cost(&USAGE, &quote)), Some(14_297_500));
}

#[test]
fn audio_that_was_read_from_a_cache_is_not_charged_twice() {
    let usage = Usage {
        input: 100,
        cached_input: 90,
        input_audio: 50,
        output: 10,
        reasoning: 8,
        output_audio: 5,
        ..Usage::default()
    };
    let costs = cost(&usage, &Price::flat(RATES).quote(100, "", 0));
    let of = |class| {
        costs
            .iter()
            .find(|cost| cost.class == class)
            .map(|cost| cost.tokens)
    };
    assert_eq!(of(TokenClass::AudioInput), Some(10));
    assert_eq!(of(TokenClass::Input), Some(0));
    assert_eq!(of(TokenClass::AudioOutput), Some(2));
    assert_eq!(costs.iter().map(|cost| cost.tokens).sum::<u64>(), 110);
}

#[test]
fn missing_rates_fall_back_to_those_of_input_and_output() {
    let price = Price::flat(plain(1_000, 4_000));
    assert_eq!(total(&USAGE, &price, "", 0), Some(1_500 + 4 * 300));
    let hour = Price::flat(Rates {
        cache_write_pusd: Some(2_000),
        ..plain(1_000, 4_000)
    });
    assert_eq!(total(&USAGE, &hour, "", 0), Some(1_500 + 100 + 4 * 300));
}

#[test]
fn an_unknown_price_is_none_and_never_zero() {
    let price = Price::flat(Rates {
        input_pusd: Some(1_000),
        ..Rates::UNKNOWN
    });
    assert!(!price.is_known());
    assert_eq!(total(&USAGE, &price, "", 0), None);
    let without_output = Usage {
        output: 0,
        reasoning: 0,
        output_audio: 0,
        ..USAGE
    };
    assert_eq!(total(&without_output, &price, "", 0), Some(1_500));
    assert_eq!(total_nusd(&cost(&USAGE, &Quote::UNKNOWN)), None);
}

#[test]
fn a_price_of_zero_is_free() {
    assert_eq!(total(&USAGE, &Price::flat(plain(0, 0)), "", 0), Some(0));
}

#[test]
fn halves_round_to_even_once_per_class() {
    let nusd = |tokens, pusd| {
        let quote = Price::flat(plain(pusd, 0)).quote(0, "", 0);
        quote.nusd(TokenClass::Input, tokens)
    };
    assert_eq!(nusd(1, 500), Some(0));
    assert_eq!(nusd(1, 501), Some(1));
    assert_eq!(nusd(3, 500), Some(2));
    assert_eq!(nusd(5, 500), Some(2));
    assert_eq!(nusd(7, 150), Some(1));
    assert_eq!(nusd(u64::MAX, u64::MAX), None);
}

#[test]
fn factors_are_applied_before_the_one_rounding() {
    let price = Price {
        tiers: vec![TierTerms {
            tier: "flex".into(),
            terms: Terms::Factor { permille: 500 },
        }],
        times_of_day: vec![TimeOfDayTerms {
            from_minute: 0,
            to_minute: 0,
            weekdays: Weekdays::ALL,
            terms: Terms::Factor { permille: 1_001 },
        }],
        ..Price::flat(plain(3, 0))
    };
    // 1,000 × 3 pico-USD × 0.5 × 1.001 = 1.5015 nano-USD; rounded in between it would be 1.
    assert_eq!(total(&tokens(1_000, 0), &price, "flex", 0), Some(2));
    assert_eq!(total(&tokens(1_000, 0), &price, "", 0), Some(3));
}

#[test]
fn a_long_prompt_makes_the_whole_request_dearer() {
    let mut price = Price::flat(plain(1_000, 4_000));
    price.standard.long_context = Some(LongContext {
        above_input_tokens: 200_000,
        rates: plain(2_000, 6_000),
    });
    assert_eq!(total(&tokens(200_000, 10), &price, "", 0), Some(200_040));
    assert_eq!(total(&tokens(200_001, 10), &price, "", 0), Some(400_062));
}

#[test]
fn a_tier_has_its_own_rates_or_a_factor_and_one_that_is_not_named_is_standard() {
    let tier = |tier: &str, terms| TierTerms {
        tier: tier.into(),
        terms,
    };
    let mut price = Price::flat(plain(1_000, 4_000));
    price.tiers = vec![
        tier("priority", own(3_000, 9_000)),
        tier("flex", Terms::Factor { permille: 500 }),
    ];
    price.standard.long_context = Some(LongContext {
        above_input_tokens: 5,
        rates: plain(2_000, 8_000),
    });
    assert_eq!(total(&tokens(4, 2), &price, "flex", 0), Some(2 + 4));
    assert_eq!(total(&tokens(10, 2), &price, "flex", 0), Some(10 + 8));
    // Own rates have no long context unless they say so.
    assert_eq!(total(&tokens(10, 2), &price, "priority", 0), Some(30 + 18));
    for standard in ["", "default", "scale"] {
        assert_eq!(total(&tokens(4, 2), &price, standard, 0), Some(4 + 8));
    }
}

#[test]
fn the_start_of_an_attempt_decides_between_peak_and_off_peak() {
    let times = |from_minute, to_minute, terms| TimeOfDayTerms {
        from_minute,
        to_minute,
        weekdays: Weekdays::ALL,
        terms,
    };
    let mut price = Price::flat(plain(1_000, 0));
    price.times_of_day = vec![
        times(23 * 60, 30, Terms::Factor { permille: 500 }),
        times(6 * 60, 10 * 60, own(2_000, 0)),
    ];
    let at = |hour: u64, minute: u64, second: u64| {
        let unix_s = 1_796_083_200 + hour * 3600 + minute * 60 + second;
        total(&tokens(10, 0), &price, "", unix_s)
    };
    assert_eq!(at(22, 59, 59), Some(10));
    assert_eq!(at(23, 0, 0), Some(5));
    assert_eq!(at(0, 29, 59), Some(5));
    assert_eq!(at(0, 30, 0), Some(10));
    assert_eq!(at(5, 59, 59), Some(10));
    assert_eq!(at(6, 0, 0), Some(20));
    assert_eq!(at(9, 59, 59), Some(20));
    assert_eq!(at(10, 0, 0), Some(10));
    // A tier's own rates go before those of the time of day, its factor does not.
    price.tiers = vec![
        TierTerms {
            tier: "priority".into(),
            terms: own(7_000, 0),
        },
        TierTerms {
            tier: "flex".into(),
            terms: Terms::Factor { permille: 500 },
        },
    ];
    let peak = 6 * 3600;
    assert_eq!(total(&tokens(10, 0), &price, "priority", peak), Some(70));
    assert_eq!(total(&tokens(10, 0), &price, "priority", 0), Some(35));
    assert_eq!(total(&tokens(10, 0), &price, "flex", peak), Some(10));
}

#[test]
fn a_time_of_day_may_hold_on_some_days_only() {
    let mut price = Price::flat(plain(1_000, 0));
    price.times_of_day = vec![TimeOfDayTerms {
        from_minute: 60,
        to_minute: 240,
        weekdays: Weekdays::of(&[1, 2, 3, 4, 5]),
        terms: Terms::Factor { permille: 2_000 },
    }];
    // Tuesday, 1 December 2026, 01:00.
    let tuesday = 1_796_083_200 + 3_600;
    let by_day = (0..7).map(|day| total(&tokens(10, 0), &price, "", tuesday + day * 86_400));
    let (peak, off_peak) = (Some(20), Some(10));
    assert_eq!(
        by_day.collect::<Vec<_>>(),
        [peak, peak, peak, peak, off_peak, off_peak, peak]
    );
    assert_eq!(Weekdays::of(&[]), Weekdays::ALL);
    assert_eq!(Weekdays::of(&[0, 8, u32::MAX]), Weekdays::ALL);
}

#[test]
fn the_dearest_rates_are_those_within_reach() {
    let mut price = Price::flat(RATES);
    price.standard.long_context = Some(LongContext {
        above_input_tokens: 1_000,
        rates: plain(90_000_000, 95_000_000),
    });
    let ppm = u128::from(ONE_PPM);
    let short = price.dearest(1_000, NOON);
    assert_eq!(
        (short.input, short.output),
        (40_000_000 * ppm, 80_000_000 * ppm)
    );
    let long = price.dearest(1_001, NOON);
    assert_eq!(
        (long.input, long.output),
        (90_000_000 * ppm, 95_000_000 * ppm)
    );
    // Half an hour before the peak it is not within reach, five minutes before it is.
    price.times_of_day = vec![TimeOfDayTerms {
        from_minute: 13 * 60,
        to_minute: 14 * 60,
        weekdays: Weekdays::ALL,
        terms: Terms::Factor { permille: 2_000 },
    }];
    assert_eq!(price.dearest(1, NOON + 1_800), short);
    let peak = price.dearest(1, NOON + 3_300);
    assert_eq!(
        (peak.input, peak.output),
        (2 * short.input, 2 * short.output)
    );
}

fn rates() -> impl Strategy<Value = Rates> {
    let pusd = 0..100_000_000_u64;
    let perhaps = || proptest::option::of(0..100_000_000_u64);
    let cached = (perhaps(), perhaps(), perhaps());
    (pusd.clone(), pusd, cached, perhaps(), perhaps(), perhaps()).prop_map(
        |(input, output, (read, write, write_1h), reasoning, heard, spoken)| Rates {
            input_pusd: Some(input),
            cached_input_pusd: read,
            cache_write_pusd: write,
            cache_write_1h_pusd: write_1h,
            input_audio_pusd: heard,
            output_pusd: Some(output),
            reasoning_pusd: reasoning,
            output_audio_pusd: spoken,
        },
    )
}

fn by_length() -> impl Strategy<Value = RatesByLength> {
    let long = (1..300_000_u64, rates()).prop_map(|(above_input_tokens, rates)| LongContext {
        above_input_tokens,
        rates,
    });
    let parts = (rates(), proptest::option::of(long));
    parts.prop_map(|(rates, long_context)| RatesByLength {
        rates,
        long_context,
    })
}

fn terms() -> impl Strategy<Value = Terms> {
    prop_oneof![
        (1..5_000_u32).prop_map(|permille| Terms::Factor { permille }),
        by_length().prop_map(|rates| Terms::Own(Box::new(rates))),
    ]
}

const TIERS: [&str; 3] = ["flex", "priority", "unheard-of"];

fn price() -> impl Strategy<Value = Price> {
    let tiers = proptest::collection::vec(terms(), 0..3).prop_map(|terms| {
        let named = TIERS.into_iter().zip(terms);
        let tiers = named.map(|(tier, terms)| TierTerms {
            tier: tier.to_owned(),
            terms,
        });
        tiers.collect()
    });
    let times = (0..1_440_u32, 0..1_440_u32, 0..9_u32, terms());
    let times = times.prop_map(|(from_minute, to_minute, day, terms)| TimeOfDayTerms {
        from_minute,
        to_minute,
        weekdays: Weekdays::of(&[day]),
        terms,
    });
    (by_length(), tiers, proptest::collection::vec(times, 0..4)).prop_map(
        |(standard, tiers, times_of_day)| Price {
            standard,
            tiers,
            times_of_day,
        },
    )
}

fn usage() -> impl Strategy<Value = Usage> {
    let input = (
        0..400_000_u64,
        0..400_000_u64,
        0..400_000_u64,
        0..400_000_u64,
        0..400_000_u64,
    );
    let output = (0..50_000_u64, 0..50_000_u64, 0..50_000_u64);
    (input, output).prop_map(|(input, output)| Usage {
        input: input.0,
        cached_input: input.1,
        cache_write: input.2,
        cache_write_1h: input.3,
        input_audio: input.4,
        output: output.0,
        reasoning: output.1,
        output_audio: output.2,
    })
}

proptest! {
    #[test]
    fn no_usage_costs_more_than_the_dearest_in_any_tier_at_any_time(
        price in price(), usage in usage(), tier in 0..4_usize,
        from_s in 0..200_000_u64, later_s in 0..600_u64, more in 0..1_000_u64,
    ) {
        let tier = TIERS.get(tier).copied().unwrap_or("");
        let paid = total(&usage, &price, tier, from_s + later_s).unwrap();
        let (input, output) = (usage.input + more, usage.output + more);
        let bound = price.dearest(input, from_s).nusd(input, output);
        prop_assert!(paid <= bound, "{paid} of {bound}");
    }

    #[test]
    fn the_tokens_of_the_classes_are_the_tokens(usage in usage()) {
        let costs = cost(&usage, &Quote::UNKNOWN);
        let sum = |is_input: bool| -> u64 {
            let of = costs.iter().filter(|cost| cost.class.is_input() == is_input);
            of.map(|cost| cost.tokens).sum()
        };
        prop_assert_eq!((sum(true), sum(false)), (usage.input, usage.output));
    }
}
