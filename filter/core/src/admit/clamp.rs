//! How many tokens of output a limit still allows.

use super::{Applicant, Obstacle, Why};
use crate::config::limits::Limit;
use crate::credit::{Cause, Kind};
use crate::host::Now;
use crate::limits::Asked;
use crate::route::Planned;

/// An answer that may have fewer tokens is not worth its prompt.
const MIN_CLAMPED_TOKENS: u64 = 256;
/// Nobody's answers are longer.
const MAX_TOKENS: u64 = 1 << 24;

/// The most output that fits into what `obstacle`'s limit has left, for a request that is refused
/// by it; `None`: too little, or it would not help.
pub(crate) fn clamped(
    applicant: &Applicant<'_>,
    obstacle: &Obstacle,
    planned: Planned,
    now: Now,
) -> Option<u64> {
    let limit = obstacle
        .limit(applicant.config)
        .filter(|limit| limit.clamp && limit.is_metered())?;
    let Why::Short {
        cause: Cause::Refused { left, .. },
        need: Some(need),
    } = &obstacle.why
    else {
        return None;
    };
    let left = match limit.terms.kind {
        // Of a rate the refusal says how much it ever allows at once.
        Kind::Rate { .. } => left.max(&0).unsigned_abs(),
        Kind::Credit | Kind::InFlight => need.account.status(now.mono_us).left,
    };
    let fits = |tokens: u64| fits(applicant, limit, planned, now, tokens, left);
    let most = applicant.asked.max_output.unwrap_or(MAX_TOKENS);
    if most <= MIN_CLAMPED_TOKENS || !fits(MIN_CLAMPED_TOKENS) || fits(most) {
        return None;
    }
    // What is needed only rises with the tokens.
    let (mut low, mut high) = (MIN_CLAMPED_TOKENS, most);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

fn fits(
    applicant: &Applicant<'_>,
    limit: &Limit,
    planned: Planned,
    now: Now,
    tokens: u64,
    left: u64,
) -> bool {
    let asked = Asked {
        max_output: Some(tokens),
        ..*applicant.asked
    };
    let need = applicant.need_of(limit, &asked, planned, now);
    need.is_ok_and(|need| need <= left)
}
