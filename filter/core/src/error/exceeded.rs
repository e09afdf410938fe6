//! A limit that does not let a request through, in words for its client.

use std::borrow::Cow;
use std::sync::Arc;

use filter_llm::models::rfc3339;
use proto::config::v1::LimitUnit;

use super::{Retry, SERVER, Terms};
use crate::admit::wait_text;
use crate::credit::{Cause, Refusal as Denied};
use crate::text::Decimal;

/// Why, as OpenAI's clients know it: they sleep on one and give up on the other.
const QUOTA: &str = "insufficient_quota";
const RATE: &str = "rate_limit_error";

/// Clients that come back by the clock wait no longer than that.
const LONGEST_RETRY_US: u64 = 3_600_000_000;
const UNAVAILABLE_RETRY_US: u64 = 2_000_000;
const LACKING_RETRY_US: u64 = 1_000_000;

/// A limit that stands in the way.
#[derive(Clone, Debug)]
pub(crate) struct Exceeded {
    /// Its id.
    pub(crate) limit: Arc<str>,
    pub(crate) unit: LimitUnit,
    pub(crate) cause: Cause,
    /// What the request was to reserve, in the unit; 0: not known.
    pub(crate) need: u64,
    /// When it was refused, in microseconds since the Unix epoch.
    pub(crate) unix_us: i64,
}

impl Exceeded {
    /// True when waiting within the window does not help.
    pub(crate) const fn is_spent(&self) -> bool {
        matches!(
            self.cause,
            Cause::Refused {
                kind: Denied::Spent,
                ..
            }
        )
    }

    /// How it stands in the way, for metrics.
    pub(super) const fn word(&self) -> &'static str {
        match self.cause {
            Cause::Refused {
                kind: Denied::Spent,
                ..
            } => "spent",
            Cause::Refused {
                kind: Denied::Reserved,
                ..
            } => "reserved",
            Cause::TooFast { .. } => "rate",
            Cause::Lacking => "unanswered",
            Cause::Unavailable => "unavailable",
        }
    }

    /// True when it is this node that has no credit at hand, and nobody has refused.
    pub(crate) const fn is_unanswered(&self) -> bool {
        matches!(self.cause, Cause::Lacking | Cause::Unavailable)
    }

    pub(super) fn terms(&self) -> Terms {
        let (status, kind, details, retry) = match self.cause {
            Cause::Refused {
                kind: Denied::Spent,
                ..
            } => (429, QUOTA, "turnpike_insufficient_quota", Retry::Never),
            Cause::Refused { .. } | Cause::TooFast { .. } | Cause::Lacking => (
                429,
                RATE,
                "turnpike_rate_limit_exceeded",
                self.retry_after(),
            ),
            Cause::Unavailable => (
                503,
                SERVER,
                "turnpike_limits_unavailable",
                self.retry_after(),
            ),
        };
        Terms {
            status,
            kind,
            details,
            retry,
        }
    }

    /// When to come again, in microseconds; `None`: not soon.
    fn retry_in_us(&self) -> Option<u64> {
        match self.cause {
            Cause::Refused {
                kind: Denied::Spent,
                resets_in_us,
                ..
            } => resets_in_us.filter(|&us| us <= LONGEST_RETRY_US),
            Cause::Refused { retry_in_us, .. } | Cause::TooFast { retry_in_us } => {
                Some(retry_in_us)
            }
            Cause::Lacking => Some(LACKING_RETRY_US),
            Cause::Unavailable => Some(UNAVAILABLE_RETRY_US),
        }
    }

    fn retry_after(&self) -> Retry {
        let seconds = self.retry_in_us().unwrap_or(0).div_ceil(1_000_000).max(1);
        Retry::AfterSeconds(u32::try_from(seconds).unwrap_or(u32::MAX))
    }

    /// What goes along with the first header of retry advice.
    pub(super) fn more_retry_headers(&self, headers: &mut Vec<(&'static str, Cow<'static, str>)>) {
        let Some(us) = self.retry_in_us() else { return };
        if self.is_spent() {
            let seconds = us.div_ceil(1_000_000).max(1).to_string();
            headers.push(("retry-after", Cow::Owned(seconds)));
        } else {
            let ms = us.div_ceil(1_000).max(1).to_string();
            headers.push(("retry-after-ms", Cow::Owned(ms)));
        }
    }

    /// What the request may need, where that explains the refusal.
    fn needs(&self, left: i64) -> String {
        if u64::try_from(left.max(0)).is_ok_and(|left| self.need > left) {
            let need = amount_text(self.unit, self.need);
            return format!("and this request may need {need}");
        }
        "which is less than this request may need".to_owned()
    }

    /// The end of the window, to the second that the control plane has it at.
    fn resets_text(&self, resets_in_us: u64) -> String {
        let now_us = u64::try_from(self.unix_us).unwrap_or(0);
        let at_us = now_us.saturating_add(resets_in_us);
        let at_s = at_us.saturating_add(500_000) / 1_000_000;
        format!(
            " It resets at {}, in {}.",
            rfc3339(at_s),
            wait_text(resets_in_us)
        )
    }

    pub(super) fn message(&self) -> String {
        let limit = &self.limit;
        match self.cause {
            Cause::Refused {
                kind: Denied::Spent,
                left,
                resets_in_us,
                ..
            } => {
                let needs = self.needs(left);
                let left = amount_text(self.unit, left.max(0).unsigned_abs());
                let resets = resets_in_us.map_or_else(String::new, |us| self.resets_text(us));
                format!("The limit `{limit}` has {left} left, {needs}.{resets}")
            }
            Cause::Refused { left, .. } => {
                let needs = self.needs(left);
                let left = amount_text(self.unit, left.max(0).unsigned_abs());
                format!(
                    "The limit `{limit}` has {left} free at the moment, {needs}; the rest is held by requests that are under way."
                )
            }
            Cause::TooFast { retry_in_us } => format!(
                "The limit `{limit}` allows this request in {}.",
                wait_text(retry_in_us)
            ),
            Cause::Lacking => {
                format!("What the limit `{limit}` still allows is not at hand at the moment.")
            }
            Cause::Unavailable => {
                format!("The gateway can't tell at the moment what the limit `{limit}` allows.")
            }
        }
    }
}

/// An amount with its unit.
fn amount_text(unit: LimitUnit, amount: u64) -> String {
    let thing = match unit {
        LimitUnit::Money => return usd_text(amount),
        LimitUnit::InFlight => "places",
        LimitUnit::Requests | LimitUnit::Unspecified => "requests",
        LimitUnit::Tokens => "tokens",
        LimitUnit::InputTokens => "input tokens",
        LimitUnit::UncachedInputTokens => "uncached input tokens",
        LimitUnit::OutputTokens => "output tokens",
    };
    let thing = match amount {
        1 => thing.strip_suffix('s').unwrap_or(thing),
        _ => thing,
    };
    format!("{} {thing}", grouped(amount))
}

/// In USD, to the nano-USD, without zeros at the end beyond cents.
fn usd_text(nusd: u64) -> String {
    const NANO: u64 = 1_000_000_000;
    let fraction = format!("{:09}", nusd % NANO);
    let (cents, rest) = fraction.split_at_checked(2).unwrap_or(("00", ""));
    let rest = rest.trim_end_matches('0');
    format!("${}.{cents}{rest}", grouped(nusd / NANO))
}

/// With a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = Decimal::new(number);
    let digits = digits.as_str();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        for (unit, amount, text) in [
            (LimitUnit::Money, 12_345_678_901, "$12.345678901"),
            (LimitUnit::Money, 1_234_500_000_000, "$1,234.50"),
            (LimitUnit::Money, 7, "$0.000000007"),
            (LimitUnit::Tokens, 1_234_567, "1,234,567 tokens"),
            (LimitUnit::Requests, 1, "1 request"),
            (LimitUnit::InFlight, 0, "0 places"),
        ] {
            assert_eq!(amount_text(unit, amount), text);
        }
    }
}
