use filter_llm::price::{Price, Rates, Terms, TierTerms};
use proptest::prelude::*;

use super::*;
use crate::attempt::Glimpse;
use crate::limits::Most;
use proto::metering::v1::Verdict;

fn flat(input_pusd: u64, output_pusd: u64) -> Rates {
    Rates {
        input_pusd: Some(input_pusd),
        output_pusd: Some(output_pusd),
        ..Rates::default()
    }
}

fn tiers(permilles: &[(&str, u32)]) -> Vec<TierTerms> {
    let of = |&(tier, permille): &(&str, u32)| TierTerms {
        tier: tier.to_owned(),
        terms: Terms::Factor { permille },
    };
    permilles.iter().map(of).collect()
}

fn at(price: &Price) -> PriceAt<'_> {
    PriceAt {
        price,
        unix_s: 0,
        next: None,
    }
}

fn unknown(most: Most) -> Metered {
    let glimpse = Glimpse {
        text_bytes: 400,
        output_bytes: (80, 20),
        most,
        ..Glimpse::default()
    };
    glimpse.metered(Verdict::Unknown, true)
}

#[test]
fn an_estimate_is_priced_as_asked_or_as_the_dearest_tier_and_a_report_as_it_was_served() {
    let price = Price {
        tiers: tiers(&[("flex", 500), ("priority", 2_000), ("batch", 400)]),
        ..Price::flat(flat(1_000, 1_000))
    };
    let estimate = unknown(Most::default());
    let tier = |metered: &Metered, said, asked| {
        let (_, tier) = completed(metered, Tier { said, asked }, Some(at(&price)));
        tier.to_owned()
    };
    assert_eq!(tier(&estimate, "", ""), "priority");
    assert_eq!(tier(&estimate, "", "flex"), "flex");
    assert_eq!(tier(&estimate, "default", "flex"), "default");
    let reported = Glimpse {
        reported: Some(Usage::default()),
        ..Glimpse::default()
    };
    let reported = reported.metered(Verdict::Billed, true);
    assert_eq!(tier(&reported, "", "flex"), "");
    assert_eq!(tier(&reported, "batch", "flex"), "batch");
    let cheaper = Price {
        tiers: tiers(&[("flex", 500)]),
        ..Price::flat(flat(1_000, 1_000))
    };
    let (_, tier) = completed(&estimate, Tier::default(), Some(at(&cheaper)));
    assert_eq!(tier, "", "the standard tier is the dearest");
}

#[test]
fn without_a_price_the_tier_that_was_asked_for_is_kept_for_later_prices() {
    let tier = Tier {
        said: "",
        asked: "flex",
    };
    let (tokens, tier) = completed(&unknown(Most::default()), tier, None);
    assert_eq!((tokens.input, tokens.output, tier), (100, 20, "flex"));
}

#[test]
fn a_bound_takes_the_place_of_what_was_seen_and_says_so() {
    for (most, method, input, output) in [
        ((None, None), "bytes/4", 100, 20),
        ((Some(900), None), "input bound, output bytes/4", 900, 20),
        ((None, Some(50)), "input bytes/4, output bound", 100, 50),
        ((Some(900), Some(50)), "bound", 900, 50),
        ((Some(1), Some(1)), "bound", 100, 20),
    ] {
        let (most_input, most_output) = most;
        let metered = unknown(Most {
            input: most_input,
            output: most_output,
        });
        assert_eq!(metered.method, method);
        assert_eq!((metered.usage.input, metered.usage.output), (input, output));
    }
}

#[test]
fn what_is_billed_or_reported_needs_no_bound() {
    let most = Most {
        input: Some(900),
        output: Some(50),
    };
    let glimpse = Glimpse {
        text_bytes: 400,
        most,
        ..Glimpse::default()
    };
    assert_eq!(glimpse.metered(Verdict::Billed, true).method, "bytes/4");
    assert_eq!(glimpse.metered(Verdict::NotBilled, true), Metered::NOTHING);
    assert_eq!(glimpse.metered(Verdict::Unknown, false), Metered::NOTHING);
    let reported = Usage {
        input: 7,
        output: 3,
        ..Usage::default()
    };
    let said = Glimpse {
        reported: Some(reported),
        ..glimpse
    };
    assert_eq!(said.metered(Verdict::Unknown, true).usage, reported);
    // The prompt was counted, the answer is not over.
    let early = Glimpse {
        is_output_early: true,
        ..said
    };
    let metered = early.metered(Verdict::Unknown, true);
    assert_eq!((metered.usage.input, metered.usage.output), (7, 50));
    assert_eq!(metered.method, "input reported, output bound");
    assert_eq!(metered.source, UsageSource::Estimated);
}

fn rates() -> impl Strategy<Value = Rates> {
    let pusd = || 0..100_000_000_u64;
    let perhaps = || proptest::option::of(0..100_000_000_u64);
    (
        (pusd(), pusd()),
        (perhaps(), perhaps(), perhaps(), perhaps(), perhaps()),
    )
        .prop_map(
            |((input, output), (write, write_1h, audio, reasoning, said))| Rates {
                cache_write_pusd: write,
                cache_write_1h_pusd: write_1h,
                input_audio_pusd: audio,
                reasoning_pusd: reasoning,
                output_audio_pusd: said,
                ..flat(input, output)
            },
        )
}

proptest! {
    /// What a strict limit is charged for the unknown is no less than what may be billed.
    #[test]
    fn no_usage_within_a_bound_costs_more_than_its_record(
        rates in rates(),
        permille in 1..5_000_u32,
        (most_input, most_output) in (0..100_000_u64, 0..100_000_u64),
        parts in proptest::collection::vec(0..=1_000_u64, 7),
        is_special in any::<bool>(),
    ) {
        let price = Price { tiers: tiers(&[("special", permille)]), ..Price::flat(rates) };
        let bound = Glimpse { most: Most { input: Some(most_input), output: Some(most_output) }, ..Glimpse::default() };
        let metered = bound.metered(Verdict::Unknown, true);
        let (tokens, tier) = completed(&metered, Tier::default(), Some(at(&price)));
        prop_assert_eq!((tokens.input, tokens.output), (most_input, most_output));
        let booked = price::total_nusd(&at(&price).cost(&tokens, tier)).unwrap();
        let part = |of: u64, at: usize| of * parts[at] / 1_000;
        let (input, output) = (part(most_input, 0), part(most_output, 1));
        let usage = Usage {
            input, output,
            cache_write: part(input, 2), cache_write_1h: part(input, 3), input_audio: part(input, 4),
            reasoning: part(output, 5), output_audio: part(output, 6),
            ..Usage::default()
        };
        let tier = if is_special { "special" } else { "" };
        let billed = price::total_nusd(&at(&price).cost(&usage, tier)).unwrap();
        // Each class is rounded by itself.
        prop_assert!(billed <= booked + 8, "{} of {}", billed, booked);
    }
}
