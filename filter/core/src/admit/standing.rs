//! How the tightest limits stand, for the headers that clients pace themselves by.

use std::time::Duration;

use proto::config::v1::LimitUnit;

use crate::config::Compiled;
use crate::credit::{Need, Status};
use crate::host::HeaderSink;
use crate::text::Decimal;

/// Of requests and of tokens, the limit that has the least left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standings {
    requests: Option<Status>,
    tokens: Option<Status>,
}

impl Standings {
    /// Takes limits in, parallel to what a request needs of them.
    pub(super) fn add(&mut self, config: &Compiled, limits: &[usize], needs: &[Need], now_us: u64) {
        for (&index, need) in limits.iter().zip(needs) {
            let unit = config.limits.limit(index).map(|limit| limit.unit);
            let tightest = match unit {
                Some(LimitUnit::Requests) => &mut self.requests,
                Some(
                    LimitUnit::Tokens
                    | LimitUnit::InputTokens
                    | LimitUnit::UncachedInputTokens
                    | LimitUnit::OutputTokens,
                ) => &mut self.tokens,
                Some(LimitUnit::InFlight | LimitUnit::Money | LimitUnit::Unspecified) | None => {
                    continue;
                }
            };
            let status = need.account.status(now_us);
            if tightest.is_none_or(|tightest| status.left < tightest.left) {
                *tightest = Some(status);
            }
        }
    }

    /// Sets OpenAI's headers.
    pub(crate) fn edit_head(&self, sink: &mut dyn HeaderSink) {
        self.each(|name, value| sink.set(name, value));
    }

    /// The same for a reply of ours.
    pub(crate) fn add_to(&self, headers: &mut Vec<(&'static str, std::borrow::Cow<'static, str>)>) {
        self.each(|name, value| {
            let value = String::from_utf8_lossy(value).into_owned();
            headers.push((name, value.into()));
        });
    }

    fn each(&self, mut set: impl FnMut(&'static str, &[u8])) {
        const REQUESTS: [&str; 3] = [
            "x-ratelimit-limit-requests",
            "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests",
        ];
        const TOKENS: [&str; 3] = [
            "x-ratelimit-limit-tokens",
            "x-ratelimit-remaining-tokens",
            "x-ratelimit-reset-tokens",
        ];
        for ([limit, remaining, reset], status) in
            [(REQUESTS, self.requests), (TOKENS, self.tokens)]
        {
            let Some(status) = status else { continue };
            set(limit, Decimal::new(status.amount).as_bytes());
            set(remaining, Decimal::new(status.left).as_bytes());
            if let Some(resets_in_us) = status.resets_in_us {
                set(reset, wait_text(resets_in_us).as_bytes());
            }
        }
    }
}

/// A wait in OpenAI's words: `120ms`, `1s`, `6m0s`, `2h0m0s`; rounded up.
pub(crate) fn wait_text(us: u64) -> String {
    let wait = Duration::from_micros(us);
    if wait < Duration::from_secs(1) {
        return format!("{}ms", us.div_ceil(1_000));
    }
    let seconds = us.div_ceil(1_000_000);
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::wait_text;

    #[test]
    fn a_wait_reads_as_openai_writes_it() {
        for (us, text) in [
            (0, "0ms"),
            (1, "1ms"),
            (999_999, "1000ms"),
            (1_000_000, "1s"),
            (1_000_001, "2s"),
            (360_000_000, "6m0s"),
            (7_200_000_000, "2h0m0s"),
            (90_061_000_000, "25h1m1s"),
        ] {
            assert_eq!(wait_text(us), text);
        }
    }
}
