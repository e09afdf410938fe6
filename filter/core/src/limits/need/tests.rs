use filter_llm::price::{LongContext, Price, Rates, Terms, TierTerms, TimeOfDayTerms, Weekdays};
use proptest::prelude::*;
use proto::config::v1::{self as wire, LimitSubject, LimitWindow};

use super::*;
use crate::config::{Compiled, Resources, compile};

const UNITS: [LimitUnit; 5] = [
    LimitUnit::Tokens,
    LimitUnit::InputTokens,
    LimitUnit::UncachedInputTokens,
    LimitUnit::OutputTokens,
    LimitUnit::Money,
];

fn with_limit(unit: LimitUnit, enforcement: Enforcement, on_unbounded: OnUnbounded) -> Compiled {
    let limit = wire::Limit {
        id: "l".into(),
        subject: LimitSubject::Everything.into(),
        unit: unit.into(),
        amount: 1_000,
        window: LimitWindow::Day.into(),
        enforcement: enforcement.into(),
        on_unbounded: on_unbounded.into(),
        ..wire::Limit::default()
    };
    let mut resources = Resources::default();
    resources.limits.insert(limit.id.clone(), limit);
    let (config, faults) = compile(&resources);
    assert_eq!(faults, []);
    config
}

fn needed(
    (unit, enforcement, on_unbounded): (LimitUnit, Enforcement, OnUnbounded),
    asked: &Asked,
    offer: &Offer<'_>,
) -> Result<u64, Unbounded> {
    let config = with_limit(unit, enforcement, on_unbounded);
    need(config.limits.limit(0).unwrap(), asked, offer)
}

fn strict(unit: LimitUnit, asked: &Asked, offer: &Offer<'_>) -> Result<u64, Unbounded> {
    needed(
        (unit, Enforcement::Strict, OnUnbounded::Reject),
        asked,
        offer,
    )
}

/// What an exchange is charged for a usage: each class rounded by itself.
fn settled(unit: LimitUnit, usage: Usage, price: PriceAt<'_>, tier: &str) -> u64 {
    let costs = price.cost(&usage, tier);
    let cost_nusd = costs.iter().filter_map(|cost| cost.cost_nusd).sum();
    used(unit, &Used { usage, cost_nusd })
}

fn rates() -> impl Strategy<Value = Rates> {
    let pusd = 0..100_000_000_u64;
    let perhaps = || proptest::option::of(0..100_000_000_u64);
    (pusd.clone(), perhaps(), perhaps(), pusd, perhaps()).prop_map(
        |(input, cached, write, output, reasoning)| Rates {
            input_pusd: Some(input),
            cached_input_pusd: cached,
            cache_write_pusd: write,
            output_pusd: Some(output),
            reasoning_pusd: reasoning,
            ..Rates::default()
        },
    )
}

fn price() -> impl Strategy<Value = Price> {
    let long = proptest::option::of((1..100_000_u64, rates()));
    (rates(), long, 1..3_000_u32, 0..1_440_u32, 1..3_000_u32).prop_map(
        |(rates, long, tier, from_minute, time)| {
            let mut price = Price::flat(rates);
            price.standard.long_context = long.map(|(above_input_tokens, rates)| LongContext {
                above_input_tokens,
                rates,
            });
            price.tiers.push(TierTerms {
                tier: TIER.into(),
                terms: Terms::Factor { permille: tier },
            });
            price.times_of_day.push(TimeOfDayTerms {
                from_minute,
                to_minute: (from_minute + 60) % 1_440,
                weekdays: Weekdays::ALL,
                terms: Terms::Factor { permille: time },
            });
            price
        },
    )
}

const TIER: &str = "priority";

fn at(price: &Price) -> PriceAt<'_> {
    PriceAt {
        price,
        unix_s: 0,
        next: None,
    }
}

prop_compose! {
    /// A usage that a provider may bill: no more input than bytes and the window allow, no more
    /// output for a choice than was asked for.
    fn usage_within(most_input: u64, most_output: u64)(
        input in 0..=most_input, output in 0..=most_output,
    )(
        cached_input in 0..=input, cache_write in 0..=input, reasoning in 0..=output,
        input in Just(input), output in Just(output),
    ) -> Usage {
        Usage { input, cached_input, cache_write, output, reasoning, ..Usage::default() }
    }
}

proptest! {
    #[test]
    fn no_usage_within_what_was_asked_settles_at_more_than_the_strict_bound(
        (price, later) in (price(), price()),
        body_bytes in 0..200_000_u64,
        max_output in 1..50_000_u64,
        choices in 1..4_u64,
        window in proptest::option::of(1..100_000_u64),
        has_tools: bool,
        parts in (0..=1_000_u64, 0..=1_000_u64, 0..=1_000_u64, 0..=1_000_u64),
        (now_s, later_s) in (0..100_000_u64, 0..600_u64),
    ) {
        let asked = Asked { body_bytes, text_bytes: body_bytes / 2, choices, max_output: Some(max_output),
            has_tools, has_media: false };
        let stats = TargetStats::default();
        let at = |unix_s| PriceAt { price: &price, unix_s, next: Some(&later) };
        let offer = Offer { context_window: window, price: Some(at(now_s)), stats: &stats };
        let tools = if has_tools { TOOLS_TOKENS } else { 0 };
        let most_input = (body_bytes + tools).min(window.unwrap_or(u64::MAX));
        let most_output = choices * max_output.min(window.unwrap_or(u64::MAX));
        let part = |of: u64, permille: u64| of * permille / 1_000;
        let (input, output) = (part(most_input, parts.0), part(most_output, parts.1));
        let usage = Usage { input, cached_input: part(input, parts.2), cache_write: part(input, parts.3),
            output, reasoning: part(output, parts.3), ..Usage::default() };
        for unit in UNITS {
            let bound = strict(unit, &asked, &offer).unwrap();
            let changed = PriceAt { price: &later, ..at(now_s + later_s) };
            for (price, tier) in [(at(now_s + later_s), ""), (at(now_s + later_s), TIER), (changed, TIER)] {
                let charged = settled(unit, usage, price, tier);
                prop_assert!(charged <= bound, "{unit:?}: {charged} of {bound}");
            }
        }
    }

    #[test]
    fn the_bound_covers_every_rounding(price in price(), usage in usage_within(40, 40)) {
        let asked = Asked { body_bytes: usage.input, choices: 1, max_output: Some(usage.output), ..Asked::default() };
        let stats = TargetStats::default();
        let offer = Offer { context_window: None, price: Some(at(&price)), stats: &stats };
        let bound = strict(LimitUnit::Money, &asked, &offer).unwrap();
        prop_assert!(settled(LimitUnit::Money, usage, at(&price), TIER) <= bound);
    }

    #[test]
    fn a_smaller_answer_never_needs_more(price in price(), max in 2..100_000_u64, less in 1..100_000_u64) {
        let stats = TargetStats::default();
        let offer = Offer { context_window: Some(50_000), price: Some(at(&price)), stats: &stats };
        let asked = |tokens| Asked { body_bytes: 500, text_bytes: 400, choices: 2, max_output: Some(tokens), ..Asked::default() };
        for unit in UNITS {
            for enforcement in [Enforcement::Strict, Enforcement::Guarded, Enforcement::Estimated] {
                let of = |tokens| needed((unit, enforcement, OnUnbounded::Reject), &asked(tokens), &offer).unwrap();
                prop_assert!(of(less.min(max)) <= of(max));
            }
        }
    }
}

fn flat(input_pusd: u64, output_pusd: Option<u64>) -> Price {
    Price::flat(Rates {
        input_pusd: Some(input_pusd),
        output_pusd,
        ..Rates::default()
    })
}

#[test]
fn what_has_no_bound_is_named() {
    let price = flat(1_000_000, Some(2_000_000));
    let stats = TargetStats::default();
    let open = Asked {
        body_bytes: 100,
        choices: 1,
        ..Asked::default()
    };
    let media = Asked {
        max_output: Some(10),
        has_media: true,
        ..open
    };
    let offer = Offer {
        context_window: None,
        price: Some(at(&price)),
        stats: &stats,
    };
    let unpriced = Offer {
        price: None,
        ..offer
    };
    let half_priced = flat(1_000_000, None);
    let half = Offer {
        price: Some(at(&half_priced)),
        ..offer
    };
    let bounded = Asked {
        max_output: Some(10),
        ..open
    };
    for (unit, asked, offer, unbounded) in [
        (LimitUnit::Tokens, open, offer, Unbounded::MaxTokens),
        (LimitUnit::OutputTokens, open, offer, Unbounded::MaxTokens),
        (LimitUnit::Money, open, offer, Unbounded::MaxTokens),
        (
            LimitUnit::InputTokens,
            media,
            offer,
            Unbounded::ContextWindow,
        ),
        (LimitUnit::Money, media, offer, Unbounded::ContextWindow),
        (LimitUnit::Money, bounded, unpriced, Unbounded::Price),
        (LimitUnit::Money, bounded, half, Unbounded::Price),
    ] {
        assert_eq!(strict(unit, &asked, &offer), Err(unbounded), "{unit:?}");
        let estimated = (unit, Enforcement::Strict, OnUnbounded::Estimate);
        assert!(needed(estimated, &asked, &offer).is_ok(), "{unit:?}");
    }
    // Output is no matter where input is counted, and the other way round.
    assert_eq!(strict(LimitUnit::InputTokens, &open, &offer), Ok(100));
    assert_eq!(strict(LimitUnit::OutputTokens, &media, &offer), Ok(10));
    let windowed = Offer {
        context_window: Some(1_000),
        ..offer
    };
    assert_eq!(strict(LimitUnit::Tokens, &open, &windowed), Ok(1_100));
    assert_eq!(strict(LimitUnit::InputTokens, &media, &windowed), Ok(1_000));
}

#[test]
fn a_guarded_limit_wants_a_price_and_an_estimated_one_does_without() {
    let stats = TargetStats::default();
    let asked = Asked {
        choices: 1,
        ..Asked::default()
    };
    let offer = Offer {
        context_window: None,
        price: None,
        stats: &stats,
    };
    let of = |enforcement, on_unbounded| {
        needed(
            (LimitUnit::Money, enforcement, on_unbounded),
            &asked,
            &offer,
        )
    };
    let (reject, estimate) = (OnUnbounded::Reject, OnUnbounded::Estimate);
    assert_eq!(of(Enforcement::Guarded, reject), Err(Unbounded::Price));
    assert_eq!(of(Enforcement::Guarded, estimate), Ok(0));
    assert_eq!(of(Enforcement::Estimated, reject), Ok(0));
}

#[test]
fn an_estimate_is_what_was_learned_within_what_was_asked_for() {
    let price = flat(1_000_000, Some(2_000_000));
    let stats = TargetStats::default();
    (0..20).for_each(|_| stats.observe(400, 100, 100));
    let asked = Asked {
        body_bytes: 1_000,
        text_bytes: 800,
        choices: 2,
        ..Asked::default()
    };
    let offer = Offer {
        context_window: None,
        price: Some(at(&price)),
        stats: &stats,
    };
    let of = |unit, asked: &Asked| {
        needed(
            (unit, Enforcement::Estimated, OnUnbounded::Reject),
            asked,
            &offer,
        )
    };
    assert_eq!(of(LimitUnit::OutputTokens, &asked), Ok(2 * 127));
    assert_eq!(of(LimitUnit::InputTokens, &asked), Ok(225));
    let short = Asked {
        max_output: Some(10),
        ..asked
    };
    assert_eq!(of(LimitUnit::OutputTokens, &short), Ok(20));
    assert_eq!(of(LimitUnit::Money, &short), Ok(225_000 + 40_000 + 8));
}

#[test]
fn requests_and_slots_count_one_each() {
    let stats = TargetStats::default();
    let offer = Offer {
        context_window: None,
        price: None,
        stats: &stats,
    };
    assert_eq!(
        strict(LimitUnit::Requests, &Asked::default(), &offer),
        Ok(1)
    );
    let nothing = Used::default();
    assert_eq!(used(LimitUnit::Requests, &nothing), 0);
    assert_eq!(used(LimitUnit::InFlight, &nothing), 0);
}
