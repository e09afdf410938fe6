//! Thinking and sampling as they are printed: the one decides what may be said of the other.

use serde::Serialize;

use super::model::Thinks;
use crate::conversation::{Effort, Reasoning, Request};
use crate::translate::Terms;

/// Sampling temperature goes up to this, which is what it is by itself.
const MOST_TEMPERATURE: f64 = 1.0;
/// While it thinks, only the least likely tokens may be left away.
const LEAST_THINKING_TOP_P: f64 = 0.95;
const LEAST_BUDGET_TOKENS: u64 = 1024;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ThinkingShown {
    Enabled {
        budget_tokens: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
    },
    Adaptive {
        display: &'static str,
    },
    Disabled,
}

/// How a request is to be thought about.
#[derive(Default)]
pub(crate) struct Thinking {
    pub(crate) shown: Option<ThinkingShown>,
    pub(crate) effort: Option<&'static str>,
}

impl Thinking {
    /// Thinking as the model takes it. `calls_are_thought`: the last calls of tools have the
    /// thinking that led to them.
    pub(crate) fn of(
        request: &Request<'_>,
        max_tokens: u64,
        calls_are_thought: bool,
        terms: &Terms<'_>,
        left_out: &mut Vec<String>,
    ) -> Self {
        let Some(asked) = request.reasoning else {
            return Self::default();
        };
        let is_none = asked.effort == Some(Effort::None) || asked.budget_tokens == Some(0);
        let thinks = Thinks::of(terms.upstream_model);
        let refusal = match thinks {
            _ if terms.quirks.no_reasoning && is_none => return Self::default(),
            _ if terms.quirks.no_reasoning => Some("reasoning"),
            Thinks::Always if is_none => Some("reasoning (the model always thinks)"),
            _ => None,
        };
        if let Some(refusal) = refusal {
            left_out.push(refusal.to_owned());
            return Self::default();
        }
        match thinks {
            _ if is_none => Self {
                shown: Some(ThinkingShown::Disabled),
                effort: None,
            },
            Thinks::WithinBudget => Self {
                shown: within_budget(asked, max_tokens, calls_are_thought, left_out),
                effort: None,
            },
            Thinks::Adaptively | Thinks::Always => adaptive(asked),
        }
    }

    pub(crate) const fn is_on(&self) -> bool {
        use ThinkingShown::{Adaptive, Enabled};
        matches!(self.shown, Some(Enabled { .. } | Adaptive { .. }))
    }
}

/// Newer models leave thoughts out of the answer unless they are asked for them.
fn adaptive(asked: Reasoning) -> Thinking {
    let is_shown = asked.is_shown != Some(false);
    Thinking {
        shown: Some(ThinkingShown::Adaptive {
            display: if is_shown { "summarized" } else { "omitted" },
        }),
        effort: asked.level().map(|effort| match effort {
            Effort::None | Effort::Minimal => Effort::Low.as_str(),
            effort => effort.as_str(),
        }),
    }
}

/// Older models think in a budget that lies within the output, and not after calls that they made
/// without thinking.
fn within_budget(
    asked: Reasoning,
    max_tokens: u64,
    calls_are_thought: bool,
    left_out: &mut Vec<String>,
) -> Option<ThinkingShown> {
    let wanted = asked.budget().unwrap_or(LEAST_BUDGET_TOKENS);
    let budget_tokens = wanted
        .max(LEAST_BUDGET_TOKENS)
        .min(max_tokens.saturating_sub(1));
    if budget_tokens < LEAST_BUDGET_TOKENS {
        left_out.push("reasoning (too few tokens of output for it)".to_owned());
        return None;
    }
    if !calls_are_thought {
        left_out.push("reasoning (the last calls were made without)".to_owned());
        return None;
    }
    Some(ThinkingShown::Enabled {
        budget_tokens,
        display: (asked.is_shown == Some(false)).then_some("omitted"),
    })
}

/// How tokens are chosen.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sampling {
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) top_k: Option<u64>,
}

impl Sampling {
    /// Sampling as the model takes it.
    pub(crate) fn of(
        request: &Request<'_>,
        is_thinking: bool,
        terms: &Terms<'_>,
        left_out: &mut Vec<String>,
    ) -> Self {
        let takes_sampling = Thinks::of(terms.upstream_model) == Thinks::WithinBudget;
        let refusal = |is_refused_while_thinking: bool| match is_thinking {
            _ if !takes_sampling => Some("this model takes none"),
            true if is_refused_while_thinking => Some("while thinking"),
            _ => None,
        };
        let temperature = keep(request.temperature, left_out, "temperature", |asked| {
            refusal(asked < MOST_TEMPERATURE)
        });
        // Models since Opus 4.1 refuse both at once.
        let top_p = keep(request.top_p, left_out, "top_p", |asked| {
            let beside = temperature.map(|_| "beside temperature");
            refusal(asked < LEAST_THINKING_TOP_P).or(beside)
        });
        let top_k = keep(request.top_k, left_out, "top_k", |_| refusal(true));
        Self {
            temperature: temperature.map(|asked| clamped(asked, left_out)),
            top_p,
            top_k,
        }
    }
}

/// What was asked for, unless it is refused.
fn keep<T: Copy>(
    asked: Option<T>,
    left_out: &mut Vec<String>,
    name: &str,
    refusal: impl FnOnce(T) -> Option<&'static str>,
) -> Option<T> {
    let asked = asked?;
    if let Some(why) = refusal(asked) {
        left_out.push(format!("{name} ({why})"));
        return None;
    }
    Some(asked)
}

fn clamped(asked: f64, left_out: &mut Vec<String>) -> f64 {
    let taken = asked.clamp(0.0, MOST_TEMPERATURE);
    if (taken - asked).abs() > f64::EPSILON {
        left_out.push("temperature (clamped)".to_owned());
    }
    taken
}

#[cfg(test)]
mod tests;
