//! One try at one target, and what it costs.

use filter_llm::api::Api;
use filter_llm::estimate;
use filter_llm::reading::Finish;
use filter_llm::splice::Splices;
use filter_llm::usage::{PLAUSIBLE_TOKENS, Usage};
use proto::metering::v1::{UsageSource, Verdict};

use crate::error::Refusal;
use crate::exchange::settle::Tier;
use crate::health::Failure;
use crate::host::Now;
use crate::limits::Most;
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
    /// It is asked in another API than the client's.
    pub(crate) is_translated: bool,
    pub(crate) splices: Splices,
    /// What the client asked and the target can't be told.
    pub(crate) left_out: Vec<String>,
    /// Why the target could not be asked at all.
    pub(crate) fault: Option<Refusal>,
    pub(crate) expected: Expected,
    pub(crate) answer: Answer,
    /// What strict limits count on where nobody says what it used.
    pub(crate) most: Most,
}

/// What an attempt used, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metered {
    pub(crate) usage: Usage,
    pub(crate) source: UsageSource,
    /// How an estimate was made; empty for what was reported.
    pub(crate) method: &'static str,
    /// The sides that are the most there can have been.
    pub(crate) at_most: Most,
}

/// What is known of an attempt whose provider has not said everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Glimpse {
    /// Bytes of text in the prompt.
    pub(crate) text_bytes: u64,
    /// Bytes of output, reasoning included, and those that are reasoning.
    pub(crate) output_bytes: (u64, u64),
    /// As reported so far.
    pub(crate) reported: Option<Usage>,
    /// What was reported of the output is only its beginning.
    pub(crate) is_output_early: bool,
    /// What strict limits count on where nobody says it.
    pub(crate) most: Most,
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
        at_most: Most {
            input: None,
            output: None,
        },
    };

    const fn reported(usage: Usage) -> Self {
        Self {
            usage,
            source: UsageSource::Reported,
            ..Self::NOTHING
        }
    }
}

impl Glimpse {
    /// What the provider said, else an estimate if one is wanted; of a side that a strict limit
    /// counts, the most there can have been: the provider may have done more than was seen.
    pub(crate) fn metered(&self, verdict: Verdict, estimates: bool) -> Metered {
        let most = match verdict {
            Verdict::Unknown => self.most,
            _ => Most::default(),
        };
        match self.reported {
            Some(usage) if estimates && self.is_output_early => self.estimated(Some(usage), most),
            Some(usage) => Metered::reported(usage),
            None if !estimates || verdict == Verdict::NotBilled => Metered::NOTHING,
            None => self.estimated(None, most),
        }
    }

    /// With the prompts, and what strict limits count on, of so many further attempts.
    pub(crate) fn with_more(&self, metered: Metered, more: u64) -> Metered {
        let one = Self {
            reported: None,
            output_bytes: (0, 0),
            ..*self
        };
        let one = one.estimated(None, self.most);
        let sum = |tokens: u64, of_one: u64| {
            let more = of_one.saturating_mul(more);
            tokens.saturating_add(more).min(PLAUSIBLE_TOKENS)
        };
        Metered {
            usage: Usage {
                input: sum(metered.usage.input, one.usage.input),
                output: sum(metered.usage.output, one.usage.output),
                ..metered.usage
            },
            source: UsageSource::Estimated,
            method: "several attempts as one",
            at_most: one.at_most,
        }
    }

    fn estimated(&self, reported: Option<Usage>, most: Most) -> Metered {
        let (visible_bytes, reasoning_bytes) = self.output_bytes;
        let seen = estimate::usage(self.text_bytes, visible_bytes, reasoning_bytes);
        let at_least = reported.unwrap_or(Usage {
            input: seen.input,
            ..Usage::default()
        });
        let within = |most: u64, tokens: u64| most.min(PLAUSIBLE_TOKENS).max(tokens);
        let at_most = Most {
            input: most
                .input
                .filter(|_| reported.is_none())
                .map(|most| within(most, at_least.input)),
            output: most
                .output
                .map(|most| within(most, at_least.output.max(seen.output))),
        };
        let output = at_least.output.max(seen.output);
        let usage = Usage {
            input: at_most.input.unwrap_or(at_least.input),
            output: at_most.output.unwrap_or(output),
            reasoning: at_least.reasoning.max(seen.reasoning),
            ..at_least
        };
        Metered {
            usage: usage.clamped(),
            source: UsageSource::Estimated,
            method: method(reported.is_some(), at_most),
            at_most,
        }
    }
}

/// How an estimate was made, as usage records name it.
const fn method(is_input_reported: bool, at_most: Most) -> &'static str {
    match (is_input_reported, at_most.input, at_most.output) {
        (true, _, None) => estimate::OUTPUT_METHOD,
        (true, _, Some(_)) => "input reported, output bound",
        (false, None, None) => estimate::METHOD,
        (false, Some(_), None) => "input bound, output bytes/4",
        (false, None, Some(_)) => "input bytes/4, output bound",
        (false, Some(_), Some(_)) => "bound",
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

    /// The tier that served it, of a request that asks for one; a translated request asks for none.
    pub(crate) fn tier<'a>(&'a self, asked: &'a str) -> Tier<'a> {
        Tier {
            said: self.service_tier(),
            asked: if self.is_translated { "" } else { asked },
        }
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

    /// Why it failed, if others than the caller are at fault; one that has no answer has been left.
    pub(crate) fn failure(&self) -> Option<Failure> {
        if self.fault.is_some() {
            return None;
        }
        match self.answer.status {
            200..300 if self.is_success() => None,
            429 => Some(Failure::RateLimited {
                retry_after_s: self.answer.retry_after_s,
            }),
            401..=403 => Some(Failure::Rejected),
            ..=399 | 404 | 408 | 409 | 500.. => Some(Failure::Unwell),
            _ => None,
        }
    }

    /// Whether the provider will bill it.
    pub(crate) fn verdict(&self) -> Verdict {
        match self.answer.status {
            0 if self.is_unconnected || !self.is_sent => Verdict::NotBilled,
            // Another protocol that nobody asked for is no answer either.
            ..200 => Verdict::Unknown,
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

    /// What it used, being over: what the provider said, else an estimate if the settings want one.
    pub(crate) fn metered(&self, text_bytes: u64, estimates: bool) -> Metered {
        let glimpse = self.glimpse(text_bytes);
        glimpse.metered(self.verdict(), estimates)
    }

    /// What it has used up to now, as far as it can be seen.
    pub(crate) fn seen(&self, text_bytes: u64) -> Metered {
        let glimpse = Glimpse {
            most: Most::default(),
            ..self.glimpse(text_bytes)
        };
        glimpse.metered(self.verdict(), true)
    }

    fn glimpse(&self, text_bytes: u64) -> Glimpse {
        Glimpse {
            text_bytes,
            output_bytes: self.output_bytes(),
            reported: self.reported(),
            is_output_early: self.is_output_early(),
            most: self.most,
        }
    }

    /// What is reported counts the prompt, and only the beginning of the output.
    pub(crate) fn is_output_early(&self) -> bool {
        let reading = self.answer.reading();
        reading.is_some_and(|read| read.is_output_early)
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
