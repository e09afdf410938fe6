//! Limits, over real Envoys, control plane and Postgres: what they let through is what they say,
//! whoever asks and whatever dies.

mod budget;
mod crowd;
mod far;
mod headers;
mod outage;
mod requests;
mod windows;

use proto::config::v1::{
    Enforcement, Limit, LimitSubject, LimitUnit, LimitWindow, OnExceed, OnUnavailable, OnUnbounded,
};
use serde_json::{Value, json};
use tests::http::Request;

/// Of everybody together, refusing what does not fit.
pub(crate) fn limit(unit: LimitUnit, window: LimitWindow, amount: u64) -> Limit {
    Limit {
        subject: LimitSubject::Everything.into(),
        unit: unit.into(),
        window: window.into(),
        amount,
        enforcement: Enforcement::Strict.into(),
        on_exceed: OnExceed::Reject.into(),
        on_unavailable: OnUnavailable::Reject.into(),
        on_unbounded: OnUnbounded::Reject.into(),
        ..Limit::default()
    }
}

/// Prices of the base config, in nano-USD.
const INPUT_NUSD: u64 = 2_500;
const OUTPUT_NUSD: u64 = 10_000;
const PROMPT_TOKENS: u64 = 60;
const COMPLETION_TOKENS: u64 = 50;

/// What each request of [`chat`] costs in the end.
pub(crate) const PRICE_NUSD: u64 = PROMPT_TOKENS * INPUT_NUSD + COMPLETION_TOKENS * OUTPUT_NUSD;

/// A request whose size and price are those of every other. `number` is below 10^8.
pub(crate) fn chat(key: &str, id: &str, number: usize) -> Request {
    Request::chat(key, &body(number))
        .header("x-request-id", id)
        .script(&json!({
            "delay_ms": 5,
            "tokens": {"prompt": PROMPT_TOKENS, "completion": COMPLETION_TOKENS},
        }))
}

fn body(number: usize) -> Value {
    json!({
        "model": "small", "max_tokens": COMPLETION_TOKENS,
        "messages": [{"role": "user", "content": format!("request {number:08}")}],
    })
}

/// What a strict limit on money reserves for one: a token a byte, and every token of output.
pub(crate) fn bound_nusd() -> u64 {
    let bytes = u64::try_from(body(0).to_string().len()).expect("fits");
    // One more for the rounding of each class.
    bytes * INPUT_NUSD + COMPLETION_TOKENS * OUTPUT_NUSD + 5
}
