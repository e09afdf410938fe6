//! Amounts in a limit's unit: what a request may use at most, what it is likely to, what it did.
//!
//! The upper bound is sound for byte-level tokenizers, which make at most one token of a byte: a
//! body has more bytes than the prompt's text and the tokens that frame its messages. Tool
//! definitions are rewritten by providers, and get room for that. Content that is not text has no
//! bound but the context window.

use filter_llm::price::{Dearest, PriceAt};
use filter_llm::usage::Usage;
use proto::config::v1::{Enforcement, LimitUnit, OnUnbounded};

use super::TargetStats;
use crate::config::limits::Limit;

/// What providers may add to a prompt that has tools.
const TOOLS_TOKENS: u64 = 1024;

/// What a request says of its size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) body_bytes: u64,
    pub(crate) text_bytes: u64,
    /// `n`, at least 1.
    pub(crate) choices: u64,
    /// Tokens of one choice, if the client bounds them.
    pub(crate) max_output: Option<u64>,
    pub(crate) has_tools: bool,
    /// Images, audio or files, whose tokens do not follow from their bytes.
    pub(crate) has_media: bool,
}

/// What is known of the target that it is to be sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    pub(crate) context_window: Option<u64>,
    pub(crate) price: Option<PriceAt<'a>>,
    pub(crate) stats: &'a TargetStats,
}

/// Why a request has no upper bound: what it, or the config, would have to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unbounded {
    /// `max_tokens`, or the model's context window.
    MaxTokens,
    /// The model's context window, since the request has content that is not text.
    ContextWindow,
    /// The target's price.
    Price,
}

/// Tokens that one attempt has at most, as far as its strict limits count them; `None`: they do not,
/// or nothing bounds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Most {
    /// Of the prompt.
    pub input: Option<u64>,
    /// Of the answer, all choices together.
    pub output: Option<u64>,
}

/// Input and output tokens.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    input: u64,
    output: u64,
}

/// What to reserve of `limit` for one attempt.
pub(crate) fn need(limit: &Limit, asked: &Asked, offer: &Offer<'_>) -> Result<u64, Unbounded> {
    if !limit.is_metered() {
        return Ok(1);
    }
    let estimates = limit.on_unbounded == OnUnbounded::Estimate;
    let is_priced = offer.price.is_some_and(|it| it.price.is_known());
    if limit.unit == LimitUnit::Money && !is_priced {
        return match limit.enforcement {
            Enforcement::Strict | Enforcement::Guarded if !estimates => Err(Unbounded::Price),
            _ => Ok(0),
        };
    }
    let estimate = || {
        let tokens = likely(asked, offer);
        amount(limit.unit, tokens, || likely_price(tokens, offer))
    };
    if !limit.needs_bound() {
        return Ok(estimate());
    }
    match bound(limit.unit, asked, offer) {
        Ok(most) => Ok(most),
        Err(_) if estimates => Ok(estimate()),
        Err(unbounded) => Err(unbounded),
    }
}

fn likely(asked: &Asked, offer: &Offer<'_>) -> Tokens {
    let window = offer.context_window.unwrap_or(u64::MAX);
    let most = asked.max_output.unwrap_or(u64::MAX).min(window);
    let one = offer.stats.likely_output().min(most);
    Tokens {
        input: offer.stats.likely_input(asked.text_bytes).min(window),
        output: one.saturating_mul(asked.choices.max(1)),
    }
}

fn bound(unit: LimitUnit, asked: &Asked, offer: &Offer<'_>) -> Result<u64, Unbounded> {
    let most = most(asked, offer.context_window);
    let input = most.input.ok_or(Unbounded::ContextWindow);
    let output = most.output.ok_or(Unbounded::MaxTokens);
    let tokens = Tokens {
        input: if counts_input(unit) { input? } else { 0 },
        output: if counts_output(unit) { output? } else { 0 },
    };
    Ok(amount(unit, tokens, || dearest_price(tokens, offer)))
}

/// What strict limits in these units take an attempt to have at most.
pub(crate) fn most_of(
    units: impl Iterator<Item = LimitUnit>,
    asked: &Asked,
    context_window: Option<u64>,
) -> Most {
    let all = most(asked, context_window);
    units.fold(Most::default(), |counted, unit| Most {
        input: counted.input.or(all.input.filter(|_| counts_input(unit))),
        output: counted
            .output
            .or(all.output.filter(|_| counts_output(unit))),
    })
}

fn most(asked: &Asked, context_window: Option<u64>) -> Most {
    let tools = if asked.has_tools { TOOLS_TOKENS } else { 0 };
    let by_bytes = (!asked.has_media).then(|| asked.body_bytes.saturating_add(tools));
    let one = least(asked.max_output, context_window);
    Most {
        input: least(by_bytes, context_window),
        output: one.map(|tokens| tokens.saturating_mul(asked.choices.max(1))),
    }
}

fn counts_input(unit: LimitUnit) -> bool {
    unit != LimitUnit::OutputTokens
}

fn counts_output(unit: LimitUnit) -> bool {
    !matches!(
        unit,
        LimitUnit::InputTokens | LimitUnit::UncachedInputTokens
    )
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    [a, b].into_iter().flatten().min()
}

fn amount(unit: LimitUnit, tokens: Tokens, price: impl FnOnce() -> Dearest) -> u64 {
    match unit {
        LimitUnit::Unspecified | LimitUnit::Requests | LimitUnit::InFlight => 1,
        LimitUnit::Tokens => tokens.input.saturating_add(tokens.output),
        LimitUnit::InputTokens | LimitUnit::UncachedInputTokens => tokens.input,
        LimitUnit::OutputTokens => tokens.output,
        LimitUnit::Money => price().nusd(tokens.input, tokens.output),
    }
}

/// Whatever tier serves it, and whenever within some minutes it begins.
fn dearest_price(tokens: Tokens, offer: &Offer<'_>) -> Dearest {
    let price = offer.price.map(|price| price.dearest(tokens.input));
    price.unwrap_or_default()
}

fn likely_price(tokens: Tokens, offer: &Offer<'_>) -> Dearest {
    let price = offer.price.map(|price| price.likely(tokens.input));
    price.unwrap_or_default()
}

/// What one attempt used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) usage: Usage,
    /// Nano-USD over every class that has a price.
    pub(crate) cost_nusd: u64,
}

/// What an attempt used of a limit on tokens or money; 0 for what counts exchanges.
pub(crate) fn used(unit: LimitUnit, used: &Used) -> u64 {
    let usage = used.usage.clamped();
    match unit {
        LimitUnit::Unspecified | LimitUnit::Requests | LimitUnit::InFlight => 0,
        LimitUnit::Tokens => usage.input.saturating_add(usage.output),
        LimitUnit::InputTokens => usage.input,
        LimitUnit::UncachedInputTokens => usage.input.saturating_sub(usage.cached_input),
        LimitUnit::OutputTokens => usage.output,
        LimitUnit::Money => used.cost_nusd,
    }
}

#[cfg(test)]
mod tests;
