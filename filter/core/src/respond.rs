//! A provider's answer on its way to the client: metered, held until the first content, masked.
//!
//! What becomes of an answer:
//!
//! | answer | to the client |
//! |---|---|
//! | 2xx, JSON | untouched, metered |
//! | 2xx, event stream | held until the first content; then untouched, or without the usage that we asked for |
//! | 2xx, event stream, an error or nothing before content | a status of ours, which Envoy may retry |
//! | 2xx, compressed or of another type | untouched, estimated: asked for uncompressed, it came otherwise |
//! | 401, 402, 403 | 502 of ours: the gateway's credential is at fault |
//! | 404 | 502 of ours: the config is at fault, for the caller's model exists |
//! | 3xx | 502 of ours: a redirect is not followed with a credential |
//! | other 4xx and 5xx | the provider's words, masked, in OpenAI's shape |

use filter_llm::api::Api;
use filter_llm::mask::mask;
use filter_llm::meter::{PlainMeter, StreamMeter, UsageMembers};
use filter_llm::provider_error::ProviderError;
use filter_llm::reading::Reading;

use crate::error::Refusal;
use crate::host::{Clock, HeaderSink};
use crate::text::Decimal;

mod error_body;
mod head;

use error_body::ErrorAnswer;
use head::{AnswerHead, BodyKind, Leaks};

/// What is known of an answer before it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The client asked for a stream.
    pub(crate) stream: bool,
    /// Usage in the stream was asked for by us, not by the client.
    pub(crate) strips_usage: bool,
    /// The plan has another target after this one.
    pub(crate) may_be_followed: bool,
    pub(crate) max_event_bytes: u64,
    pub(crate) hold_bytes: u64,
    pub(crate) hold_us: u64,
}

/// Whether the shell lets an answer's head go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseStep {
    /// Let the head go now.
    Pass,
    /// Keep it back until [`releases_head`](crate::exchange::Exchange::releases_head).
    Hold,
}

/// One attempt's answer.
#[derive(Default)]
pub(crate) struct Answer {
    /// The provider's status; 0: none came.
    pub(crate) status: u16,
    pub(crate) retry_after_s: Option<u32>,
    /// By the monotonic clock.
    pub(crate) first_content_us: Option<u64>,
    /// The provider sent all of it.
    pub(crate) has_ended: bool,
    body: Body,
    leaks: Leaks,
    releases_head: bool,
}

#[derive(Default)]
enum Body {
    #[default]
    NoneYet,
    Plain(PlainMeter),
    Stream {
        meter: StreamMeter,
        strips_usage: bool,
    },
    Held(HeldStream),
    /// Bytes that can't be read.
    Opaque {
        bytes: u64,
    },
    Error(ErrorAnswer),
    Replaced {
        refusal: Refusal,
        reading: Option<Box<Reading>>,
        is_given: bool,
    },
}

/// A stream whose head waits for the first content.
struct HeldStream {
    meter: StreamMeter,
    expected: Expected,
    /// What the client gets once the head goes.
    kept: Vec<u8>,
    first_event_us: Option<u64>,
}

enum HoldVerdict {
    Wait,
    Release,
    Fail(Refusal),
}

impl Answer {
    pub(crate) fn begin(
        &mut self,
        headers: &[(&[u8], &[u8])],
        expected: Expected,
        clock: &dyn Clock,
    ) -> ResponseStep {
        let head = AnswerHead::read(headers);
        if head.status < 200 {
            return ResponseStep::Pass;
        }
        self.status = head.status;
        self.retry_after_s = head.retry_after_s;
        self.body = match head.status {
            200..300 => successful_body(&head, expected),
            300..=399 => replaced(Refusal::ProviderRedirected),
            401..=403 => replaced(Refusal::ProviderCredentialRejected),
            404 => replaced(Refusal::ProviderModelNotFound),
            status if head.is_compressed => replaced(Refusal::ProviderErrorUnreadable { status }),
            status => Body::Error(ErrorAnswer::new(status)),
        };
        self.leaks = head.leaks;
        if matches!(self.body, Body::Plain(_) | Body::Opaque { .. }) {
            self.first_content_us = Some(clock.now().mono_us);
        }
        match self.body {
            Body::Held(_) => ResponseStep::Hold,
            // The router leaves an answer as soon as it has seen its head. Should no other target
            // be left, the client gets these words, so they are read first.
            Body::Error(_) if expected.may_be_followed => ResponseStep::Hold,
            _ => ResponseStep::Pass,
        }
    }

    /// Changes the head that goes to the client, once what it says is settled.
    pub(crate) fn edit_head(&self, sink: &mut dyn HeaderSink) {
        self.leaks.remove(sink);
        match &self.body {
            Body::Stream { .. } | Body::Held(_) => sink.remove("content-length"),
            Body::Error(_) => {
                sink.remove("content-length");
                sink.set("content-type", b"application/json");
            }
            Body::Replaced { refusal, .. } => {
                for name in [
                    "content-length",
                    "content-encoding",
                    "location",
                    "retry-after",
                ] {
                    sink.remove(name);
                }
                sink.set(":status", Decimal::new(refusal.status().into()).as_bytes());
                sink.set("content-type", b"application/json");
                let (name, value) = refusal.retry_headers();
                sink.set(name, value.as_bytes());
            }
            Body::NoneYet | Body::Plain(_) | Body::Opaque { .. } => {}
        }
    }

    /// True when frames go through [`Answer::transform`]; false when they pass untouched.
    pub(crate) const fn transforms(&self) -> bool {
        match &self.body {
            Body::Stream { strips_usage, .. } => *strips_usage,
            Body::Held(_) | Body::Error(_) | Body::Replaced { .. } => true,
            Body::NoneYet | Body::Plain(_) | Body::Opaque { .. } => false,
        }
    }

    pub(crate) fn observe(&mut self, chunk: &[u8], clock: &dyn Clock) {
        match &mut self.body {
            Body::Plain(meter) => meter.observe(chunk),
            Body::Stream { meter, .. } => {
                meter.observe(chunk);
                self.note_first_content(clock);
            }
            Body::Opaque { bytes } => *bytes += chunk.len() as u64,
            Body::NoneYet | Body::Held(_) | Body::Error(_) | Body::Replaced { .. } => {}
        }
    }

    pub(crate) fn transform(
        &mut self,
        chunk: &[u8],
        secret: &[u8],
        out: &mut Vec<u8>,
        clock: &dyn Clock,
    ) {
        match &mut self.body {
            Body::Stream { meter, .. } => {
                meter.transform(chunk, out);
                self.note_first_content(clock);
            }
            Body::Held(held) => {
                let verdict = held.take(chunk, secret, clock);
                self.follow(verdict, out, clock);
            }
            Body::Error(error) => {
                error.take(chunk);
                self.releases_head |= error.is_full();
            }
            Body::Replaced { .. } => self.give_replacement(out),
            Body::NoneYet | Body::Plain(_) | Body::Opaque { .. } => {
                out.extend_from_slice(chunk);
                self.observe(chunk, clock);
            }
        }
    }

    pub(crate) fn end(&mut self, secret: &[u8], out: &mut Vec<u8>, clock: &dyn Clock) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        match &mut self.body {
            Body::Plain(meter) => meter.finish(),
            Body::Stream { meter, .. } => {
                meter.finish(out);
                self.note_first_content(clock);
            }
            Body::Held(held) => {
                let verdict = held.end(secret);
                self.follow(verdict, out, clock);
            }
            Body::Error(error) => {
                error.print(secret, out);
                self.releases_head = true;
            }
            Body::Replaced { .. } => self.give_replacement(out),
            Body::NoneYet | Body::Opaque { .. } => {}
        }
    }

    /// True once, when a held head may go.
    pub(crate) fn releases_head(&mut self) -> bool {
        std::mem::take(&mut self.releases_head)
    }

    /// True while the head is kept from the client.
    pub(crate) const fn is_held(&self) -> bool {
        matches!(self.body, Body::Held(_))
    }

    /// For an event stream that the client is reading: whether it is between two events.
    pub(crate) fn open_stream(&self) -> Option<bool> {
        match &self.body {
            Body::Stream { meter, .. } => Some(meter.at_event_boundary()),
            _ => None,
        }
    }

    /// What the meter has read; `None` when nothing could be.
    pub(crate) fn reading(&self) -> Option<&Reading> {
        match &self.body {
            Body::Plain(meter) => Some(meter.reading()),
            Body::Stream { meter, .. } => Some(meter.reading()),
            Body::Held(held) => Some(held.meter.reading()),
            Body::Replaced { reading, .. } => reading.as_deref(),
            Body::NoneYet | Body::Opaque { .. } | Body::Error(_) => None,
        }
    }

    /// Bytes of a body that could not be read.
    pub(crate) const fn opaque_bytes(&self) -> u64 {
        match self.body {
            Body::Opaque { bytes } => bytes,
            _ => 0,
        }
    }

    /// The provider's own error, as a client may see it.
    pub(crate) fn provider_error(&self, secret: &[u8]) -> Option<Vec<u8>> {
        let Body::Error(error) = &self.body else {
            return None;
        };
        let mut words = Vec::new();
        error.print(secret, &mut words);
        Some(words)
    }

    /// The error of ours that took the answer's place.
    pub(crate) const fn replacement(&self) -> Option<&Refusal> {
        match &self.body {
            Body::Replaced { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// The provider's own error goes to the client, and does not say when to come again.
    pub(crate) const fn is_untimed_error(&self) -> bool {
        matches!(self.body, Body::Error(_)) && self.retry_after_s.is_none()
    }

    fn follow(&mut self, verdict: HoldVerdict, out: &mut Vec<u8>, clock: &dyn Clock) {
        if matches!(verdict, HoldVerdict::Wait) {
            return;
        }
        let Body::Held(held) = std::mem::take(&mut self.body) else {
            return;
        };
        self.releases_head = true;
        if let HoldVerdict::Fail(refusal) = verdict {
            let reading = Some(Box::new(held.meter.reading().clone()));
            self.body = Body::Replaced {
                refusal,
                reading,
                is_given: false,
            };
            self.give_replacement(out);
            return;
        }
        out.extend_from_slice(&held.kept);
        let strips_usage = held.expected.strips_usage;
        self.body = Body::Stream {
            meter: held.meter,
            strips_usage,
        };
        self.note_first_content(clock);
    }

    fn give_replacement(&mut self, out: &mut Vec<u8>) {
        if let Body::Replaced {
            refusal,
            is_given: is_given @ false,
            ..
        } = &mut self.body
        {
            out.extend_from_slice(&refusal.body());
            *is_given = true;
        }
    }

    fn note_first_content(&mut self, clock: &dyn Clock) {
        if self.first_content_us.is_none() && self.reading().is_some_and(|read| read.has_content) {
            self.first_content_us = Some(clock.now().mono_us);
        }
    }
}

impl HeldStream {
    fn take(&mut self, chunk: &[u8], secret: &[u8], clock: &dyn Clock) -> HoldVerdict {
        self.meter.transform(chunk, &mut self.kept);
        let verdict = self.judge(secret);
        if !matches!(verdict, HoldVerdict::Wait) {
            return verdict;
        }
        let is_full = self.kept.len() as u64 > self.expected.hold_bytes;
        if is_full || self.has_waited_too_long(clock) {
            HoldVerdict::Release
        } else {
            verdict
        }
    }

    fn end(&mut self, secret: &[u8]) -> HoldVerdict {
        self.meter.finish(&mut self.kept);
        match self.judge(secret) {
            HoldVerdict::Wait => HoldVerdict::Fail(Refusal::ProviderEmptyAnswer),
            verdict => verdict,
        }
    }

    /// A finish without content is an answer too: `content_filter`, or a tiny `max_tokens`.
    fn judge(&self, secret: &[u8]) -> HoldVerdict {
        let reading = self.meter.reading();
        match &reading.error {
            Some(error) if !reading.has_content => {
                HoldVerdict::Fail(Refusal::ProviderErrorEvent(masked(error, secret)))
            }
            _ if reading.has_content || reading.finish.is_some() => HoldVerdict::Release,
            _ => HoldVerdict::Wait,
        }
    }

    fn has_waited_too_long(&mut self, clock: &dyn Clock) -> bool {
        if self.meter.reading().events == 0 {
            return false;
        }
        let now_us = clock.now().mono_us;
        let first_event_us = *self.first_event_us.get_or_insert(now_us);
        now_us.saturating_sub(first_event_us) > self.expected.hold_us
    }
}

fn successful_body(head: &AnswerHead, expected: Expected) -> Body {
    if head.is_compressed {
        return Body::Opaque { bytes: 0 };
    }
    match head.kind {
        BodyKind::Json => Body::Plain(PlainMeter::new(Api::ChatCompletions)),
        BodyKind::Other => Body::Opaque { bytes: 0 },
        BodyKind::EventStream => {
            let members = if expected.strips_usage {
                UsageMembers::Strip
            } else {
                UsageMembers::Keep
            };
            let max_event_bytes = usize::try_from(expected.max_event_bytes).unwrap_or(usize::MAX);
            let meter = StreamMeter::new(Api::ChatCompletions, members, max_event_bytes);
            if !expected.stream {
                return Body::Stream {
                    meter,
                    strips_usage: expected.strips_usage,
                };
            }
            let kept = Vec::new();
            Body::Held(HeldStream {
                meter,
                expected,
                kept,
                first_event_us: None,
            })
        }
    }
}

const fn replaced(refusal: Refusal) -> Body {
    Body::Replaced {
        refusal,
        reading: None,
        is_given: false,
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
