//! What no provider said of an attempt: the tier that served it, and the classes of its tokens.
//!
//! An estimate is priced as the request asked for, or as the dearest that it can have got. So a
//! strict limit that is charged what the record says is charged no less than the provider bills.

use filter_llm::price::{self, PriceAt, TokenClass};
use filter_llm::usage::Usage;
use proto::metering::v1::UsageSource;

use crate::attempt::Metered;

/// The tier of an attempt, and who says so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tier<'a> {
    /// By the provider; empty: it says none.
    pub(crate) said: &'a str,
    /// By the request, if it leaves no choice; empty: it does.
    pub(crate) asked: &'a str,
}

/// Usage as it goes into the ledger, and the tier that it is priced as.
pub(crate) fn completed<'a>(
    metered: &Metered,
    tier: Tier<'a>,
    price: Option<PriceAt<'a>>,
) -> (Usage, &'a str) {
    let is_open = metered.source == UsageSource::Estimated && tier.said.is_empty();
    let Some(price) = price else {
        let known = if is_open { tier.asked } else { tier.said };
        return (metered.usage, known);
    };
    if !is_open {
        return (dearest_classes(metered, tier.said, price), tier.said);
    }
    if !tier.asked.is_empty() {
        return (dearest_classes(metered, tier.asked, price), tier.asked);
    }
    let named = price.price.tiers.iter().map(|terms| terms.tier.as_str());
    let of = |tier| {
        let usage = dearest_classes(metered, tier, price);
        let cost_nusd = price::total_nusd(&price.cost(&usage, tier));
        (cost_nusd, (usage, tier))
    };
    // Of equals the standard tier, which has no name.
    let dearest = named.map(of).fold(
        of(""),
        |dearest, other| {
            if other.0 > dearest.0 { other } else { dearest }
        },
    );
    dearest.1
}

/// A side of which no more is known than a bound has the dearest class.
fn dearest_classes(metered: &Metered, tier: &str, price: PriceAt<'_>) -> Usage {
    let mut usage = metered.usage;
    let quote = price.price.quote(usage.input, tier, price.unix_s);
    let dearer = |a: TokenClass, b: TokenClass| quote.of(a) > quote.of(b);
    if metered.at_most.input.is_some() {
        usage.cached_input = 0;
        let dearest = dearest_of(
            [
                TokenClass::Input,
                TokenClass::CacheWrite,
                TokenClass::CacheWrite1h,
                TokenClass::AudioInput,
            ],
            dearer,
        );
        let of = |classes: &[TokenClass]| classes.contains(&dearest).then_some(usage.input);
        let writes = of(&[TokenClass::CacheWrite, TokenClass::CacheWrite1h]);
        usage.cache_write = writes.unwrap_or(0);
        usage.cache_write_1h = of(&[TokenClass::CacheWrite1h]).unwrap_or(0);
        usage.input_audio = of(&[TokenClass::AudioInput]).unwrap_or(0);
    }
    if metered.at_most.output.is_some() {
        let classes = [
            TokenClass::Output,
            TokenClass::Reasoning,
            TokenClass::AudioOutput,
        ];
        match dearest_of(classes, dearer) {
            TokenClass::Reasoning => usage.reasoning = usage.output,
            TokenClass::AudioOutput => {
                usage.reasoning = 0;
                usage.output_audio = usage.output;
            }
            _ if dearer(TokenClass::Output, TokenClass::Reasoning) => usage.reasoning = 0,
            _ => {}
        }
    }
    usage
}

/// The first of those that cost the most.
fn dearest_of<const N: usize>(
    classes: [TokenClass; N],
    dearer: impl Fn(TokenClass, TokenClass) -> bool,
) -> TokenClass {
    let plainest = classes.first().copied().unwrap_or(TokenClass::Input);
    classes.into_iter().fold(plainest, |dearest, class| {
        if dearer(class, dearest) {
            class
        } else {
            dearest
        }
    })
}

#[cfg(test)]
mod tests;
