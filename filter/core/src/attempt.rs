//! One try at one target, and what it costs.

use filter_llm::api::Api;
use filter_llm::estimate;
use filter_llm::reading::Finish;
use filter_llm::splice::Splices;
use filter_llm::usage::Usage;
use proto::metering::v1::{UsageSource, Verdict};

use crate::error::Refusal;
use crate::host::Now;
use crate::respond::{Answer, Expected};
use crate::route::Planned;

/// One try at one target.
pub(crate) struct Attempt {
    /// 1 for the first.
    pub(crate) number: u32,
    pub(crate) planned: Planned,
    pub(crate) started: Now,
    /// When it was left, by the monotonic clock; `None`: it is the current one.
    pub(crate) left_us: Option<u64>,
    /// Why it was left; empty: it is the last.
    pub(crate) left_for: &'static str,
    /// The upstream filter saw it: bytes may have gone out from here on.
    pub(crate) has_begun: bool,
    /// The whole request was handed on.
    pub(crate) is_sent: bool,
    /// No connection was made, so that nothing reached the provider.
    pub(crate) is_unconnected: bool,
    pub(crate) splices: Splices,
    /// What the client asked and the target can't be told.
    pub(crate) left_out: Vec<String>,
    /// Why the target could not be asked at all.
    pub(crate) fault: Option<Refusal>,
    pub(crate) expected: Expected,
    pub(crate) answer: Answer,
}

/// What an attempt used, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metered {
    pub(crate) usage: Usage,
    pub(crate) source: UsageSource,
    /// How an estimate was made; empty for what was reported.
    pub(crate) method: &'static str,
}

impl Metered {
    /// Nothing to count.
    pub(crate) const NOTHING: Self = Self {
        usage: Usage {
            input: 0,
            cached_input: 0,
            cache_write: 0,
            cache_write_1h: 0,
            input_audio: 0,
            output: 0,
            reasoning: 0,
            output_audio: 0,
        },
        source: UsageSource::None,
        method: "",
    };

    pub(crate) const fn reported(usage: Usage) -> Self {
        Self {
            usage,
            source: UsageSource::Reported,
            method: "",
        }
    }

    pub(crate) fn estimated(text_bytes: u64, visible_bytes: u64, reasoning_bytes: u64) -> Self {
        Self {
            usage: estimate::usage(text_bytes, visible_bytes, reasoning_bytes),
            source: UsageSource::Estimated,
            method: estimate::METHOD,
        }
    }
}

impl Attempt {
    /// Microseconds from the attempt's start to a moment.
    pub(crate) const fn since_start(&self, mono_us: u64) -> u64 {
        mono_us.saturating_sub(self.started.mono_us)
    }

    /// The body is another one than the client's.
    pub(crate) fn changes_body(&self, client: Api) -> bool {
        self.expected.api != client || !self.splices.is_empty()
    }

    /// True from its begin until it is left or answered.
    pub(crate) const fn is_under_way(&self) -> bool {
        self.has_begun && self.left_us.is_none() && self.answer.status == 0
    }

    /// The tier that the provider says it served; empty: it says none.
    pub(crate) fn service_tier(&self) -> &str {
        let reading = self.answer.reading();
        let tier = reading.and_then(|read| read.service_tier.as_deref());
        tier.unwrap_or_default()
    }

    /// True when the provider's whole answer went to the client.
    pub(crate) fn is_complete(&self) -> bool {
        let is_done =
            self.answer.has_ended || self.answer.reading().is_some_and(|read| read.is_done);
        self.is_success() && is_done
    }

    /// True when the answer is one that a client can use, whole or not.
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.answer.status)
            && self.answer.replacement().is_none()
            && !self.is_error_without_content()
    }

    /// Whether the provider will bill it.
    pub(crate) fn verdict(&self) -> Verdict {
        match self.answer.status {
            0 if self.is_unconnected || !self.is_sent => Verdict::NotBilled,
            0 => Verdict::Unknown,
            200..300 if self.is_error_without_content() => match self.reported() {
                Some(_) => Verdict::Billed,
                None => Verdict::NotBilled,
            },
            200..300 if self.is_complete() => Verdict::Billed,
            // A stream that ended before any content may have been thought about, and so billed.
            200..300 => Verdict::Unknown,
            _ => Verdict::NotBilled,
        }
    }

    /// What it used: what the provider said, else an estimate if the settings want one.
    pub(crate) fn metered(&self, text_bytes: u64, estimates: bool) -> Metered {
        if let Some(usage) = self.reported() {
            return match estimates && self.is_output_early() {
                true => self.with_output(usage),
                false => Metered::reported(usage),
            };
        }
        if !estimates || self.verdict() == Verdict::NotBilled {
            return Metered::NOTHING;
        }
        let (visible_bytes, reasoning_bytes) = self.output_bytes();
        Metered::estimated(text_bytes, visible_bytes, reasoning_bytes)
    }

    /// What is reported counts the prompt, and only the beginning of the output.
    fn is_output_early(&self) -> bool {
        let reading = self.answer.reading();
        reading.is_some_and(|read| read.is_output_early)
    }

    /// A reported prompt, with an estimate of the output that was seen.
    fn with_output(&self, reported: Usage) -> Metered {
        let (visible_bytes, reasoning_bytes) = self.output_bytes();
        let seen = estimate::usage(0, visible_bytes, reasoning_bytes);
        let usage = Usage {
            output: reported.output.max(seen.output),
            reasoning: reported.reasoning.max(seen.reasoning),
            ..reported
        };
        Metered {
            usage: usage.clamped(),
            source: UsageSource::Estimated,
            method: estimate::OUTPUT_METHOD,
        }
    }

    /// Bytes of output so far, and those of them that are reasoning.
    pub(crate) fn output_bytes(&self) -> (u64, u64) {
        self.answer
            .reading()
            .map_or((self.answer.opaque_bytes(), 0), |read| {
                (read.visible_bytes, read.reasoning_bytes)
            })
    }

    /// Microseconds from its start to the first content; 0: never came.
    pub(crate) fn first_content_after_us(&self) -> u64 {
        self.answer
            .first_content_us
            .map_or(0, |at_us| self.since_start(at_us).max(1))
    }

    pub(crate) fn finish(&self) -> &'static str {
        self.answer
            .reading()
            .and_then(|read| read.finish)
            .map_or("", Finish::as_str)
    }

    pub(crate) fn reported(&self) -> Option<Usage> {
        self.answer.reading().and_then(|read| read.usage)
    }

    /// A 200 that carries an error is a failure, whatever its status says.
    pub(crate) fn is_error_without_content(&self) -> bool {
        self.answer
            .reading()
            .is_some_and(|read| read.error.is_some() && !read.has_content)
    }
}
