//! A stream whose head waits for the first content, so that another target can still answer.

use filter_llm::mask::mask;
use filter_llm::provider_error::ProviderError;
use filter_llm::reading::Reading;

use super::{Beside, Expected, Stream};
use crate::error::Refusal;
use crate::host::Clock;

/// A stream whose head waits for the first content.
pub(super) struct HeldStream {
    pub(super) stream: Box<Stream>,
    expected: Expected,
    /// What the client gets once the head goes.
    pub(super) kept: Vec<u8>,
    first_event_us: Option<u64>,
}

/// What becomes of the head.
pub(super) enum HoldVerdict {
    Wait,
    Release,
    Fail(Refusal),
}

impl HeldStream {
    pub(super) const fn new(stream: Box<Stream>, expected: Expected) -> Self {
        Self {
            stream,
            expected,
            kept: Vec::new(),
            first_event_us: None,
        }
    }

    pub(super) fn reading(&self) -> &Reading {
        self.stream.meter.reading()
    }

    pub(super) fn take(&mut self, chunk: &[u8], beside: Beside<'_>) -> HoldVerdict {
        self.stream.transform(chunk, beside.secret, &mut self.kept);
        let verdict = self.judge(beside.secret);
        if !matches!(verdict, HoldVerdict::Wait) {
            return verdict;
        }
        let is_full = self.kept.len() as u64 > self.expected.hold_bytes;
        if is_full || self.has_waited_too_long(beside.clock) {
            HoldVerdict::Release
        } else {
            verdict
        }
    }

    pub(super) fn end(&mut self, beside: Beside<'_>) -> HoldVerdict {
        self.stream.finish(beside, &mut self.kept);
        match self.judge(beside.secret) {
            HoldVerdict::Wait => HoldVerdict::Fail(Refusal::ProviderEmptyAnswer),
            verdict => verdict,
        }
    }

    /// A finish without content is an answer too: `content_filter`, or a tiny `max_tokens`.
    fn judge(&self, secret: &[u8]) -> HoldVerdict {
        let reading = self.reading();
        match &reading.error {
            Some(error) if !reading.has_content => {
                HoldVerdict::Fail(Refusal::ProviderErrorEvent(masked(error, secret)))
            }
            _ if reading.has_content || reading.finish.is_some() => HoldVerdict::Release,
            _ => HoldVerdict::Wait,
        }
    }

    fn has_waited_too_long(&mut self, clock: &dyn Clock) -> bool {
        if self.reading().events == 0 {
            return false;
        }
        let now_us = clock.now().mono_us;
        let first_event_us = *self.first_event_us.get_or_insert(now_us);
        now_us.saturating_sub(first_event_us) > self.expected.hold_us
    }
}

fn masked(error: &ProviderError, secret: &[u8]) -> ProviderError {
    let mask = |text: &str| String::from_utf8_lossy(&mask(text.as_bytes(), secret)).into_owned();
    ProviderError {
        message: mask(&error.message),
        kind: mask(&error.kind),
        code: mask(&error.code),
    }
}
