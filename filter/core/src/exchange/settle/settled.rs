//! What an exchange leaves behind. All of it can be refilled, so that a worker keeps one.

use proto::metering::v1::UsageRecord;

use crate::text::{Decimal, refill};

/// What an exchange leaves behind.
#[derive(Debug, Default)]
pub struct Settled {
    /// For the ledger; only when the exchange was admitted.
    pub record: Option<UsageRecord>,
    /// For the access log, written in one batch.
    pub log: LogFields,
    /// For the metrics.
    pub sample: Sample,
}

/// Names and values for the access log.
#[derive(Debug, Default)]
pub struct LogFields {
    /// Only the first `len` are in use; the others keep their memory.
    fields: Vec<(&'static str, String)>,
    len: usize,
}

impl LogFields {
    /// Every field that has a value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let used = self
            .fields
            .iter()
            .take(self.len)
            .map(|(name, value)| (*name, value.as_str()));
        used.filter(|(_, value)| !value.is_empty())
    }

    /// The value of a field; `None` when it has none.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|&(other, _)| other == name)
            .map(|(_, value)| value)
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn push(&mut self, name: &'static str, value: &str) {
        self.push_with(name, |field| refill(field, value));
    }

    pub(super) fn push_number(&mut self, name: &'static str, value: u64) {
        self.push(name, Decimal::new(value).as_str());
    }

    /// Adds a field whose value is appended to an empty string.
    pub(super) fn push_with(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        if self.fields.len() == self.len {
            self.fields.push((name, String::new()));
        }
        if let Some(field) = self.fields.get_mut(self.len) {
            field.0 = name;
            field.1.clear();
            write(&mut field.1);
        }
        self.len += 1;
    }
}

/// One exchange for the metrics. Its labels are bounded: names from the config, words of ours.
#[derive(Debug, Default)]
pub struct Sample {
    /// `openai.chat_completions`, `openai.models`, `health` or `unknown`.
    pub client_api: &'static str,
    /// The public model that was planned first; empty: none was.
    pub model: String,
    /// The provider of the last attempt; empty: there was none.
    pub provider: String,
    /// HTTP status the client got; 0: it left before one.
    pub status: u32,
    /// `ok`, `client_gone`, `shutdown`, `provider_error` (in the provider's own words), or the code
    /// of the error that the client got from the gateway.
    pub reason: &'static str,
    /// The client asked for a stream.
    pub is_stream: bool,
    /// Tokens of every attempt.
    pub tokens: TokenCounts,
    /// Some of the tokens are an estimate.
    pub is_estimated: bool,
    /// Microseconds from the request's head to the first content; for a plain answer, to its head.
    pub first_content_us: Option<u64>,
    /// Microseconds from the request's head to the end.
    pub duration_us: u64,
    /// Attempts that were selected.
    pub attempts: u32,
    /// `spent`, `reserved`, `rate`, `unanswered`, `unavailable` or `unbounded`: how a limit stood in
    /// the way of a request that was refused; empty: none did.
    pub limit_refusal: &'static str,
}

/// Tokens, inclusive: input covers cached and cache-write, output covers reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// All input.
    pub input: u64,
    /// Of it, read from the provider's cache.
    pub cached_input: u64,
    /// Of it, written to the provider's cache.
    pub cache_write: u64,
    /// All output.
    pub output: u64,
    /// Of it, reasoning.
    pub reasoning: u64,
}
