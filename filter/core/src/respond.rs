//! A provider's answer on its way to the client: metered, held until the first content, masked,
//! and translated where the client calls another API than the provider serves.
//!
//! What becomes of an answer:
//!
//! | answer | to the client |
//! |---|---|
//! | 2xx, JSON | untouched, metered; translated once it is whole |
//! | 2xx, event stream | held until the first content; then untouched, or without the usage that we asked for, or translated event by event |
//! | 2xx, event stream, an error or nothing before content | a status of ours, which Envoy may retry |
//! | 2xx, compressed or of another type | untouched, estimated: asked for uncompressed, it came otherwise; where it was to be translated, 502 of ours |
//! | 401, 402, 403 | 502 of ours: the gateway's credential is at fault |
//! | 404 | 502 of ours: the config is at fault, for the caller's model exists |
//! | 101 | 502 of ours: nobody asked for another protocol |
//! | 3xx | 502 of ours: a redirect is not followed with a credential |
//! | other 4xx and 5xx | the provider's words, masked, in the client's shape |

use filter_llm::api::Api;
use filter_llm::meter::{PlainMeter, StreamMeter, UsageMembers};
use filter_llm::provider_error::ProviderError;
use filter_llm::reading::Reading;
use filter_llm::translate::{AnswerTerms, StreamTranslator};

use crate::error::{Refusal, Voice};
use crate::host::{Clock, HeaderSink};
use crate::text::Decimal;

mod error_body;
mod head;
mod held;
mod passing;

use error_body::ErrorAnswer;
use head::{AnswerHead, BodyKind, Leaks};
use held::{HeldStream, HoldVerdict};
use passing::{Stream, Whole};

/// Nobody asks for another protocol.
const SWITCHING_PROTOCOLS: u16 = 101;

/// What is known of an answer before it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The API that the provider was asked in.
    pub(crate) api: Api,
    /// The client asked for a stream.
    pub(crate) stream: bool,
    /// Usage in the stream was asked for by us, not by the client.
    pub(crate) strips_usage: bool,
    /// The router may leave it for another attempt, were it only to be told that none is left.
    pub(crate) may_be_followed: bool,
    pub(crate) max_event_bytes: u64,
    pub(crate) hold_bytes: u64,
    pub(crate) hold_us: u64,
}

/// What stands beside an answer while it passes.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    /// The credential in use, which nobody may see.
    pub(crate) secret: &'a [u8],
    /// The client.
    pub(crate) voice: Voice<'a>,
    /// The model as the client named it.
    pub(crate) model: &'a str,
    /// The client wants a stream's usage.
    pub(crate) shows_usage: bool,
    pub(crate) clock: &'a dyn Clock,
}

impl Beside<'_> {
    fn terms(&self) -> AnswerTerms<'_> {
        AnswerTerms {
            request_id: self.voice.request_id,
            model: self.model,
            created_at_s: self.clock.now().unix_s(),
            shows_usage: self.shows_usage,
        }
    }
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
    Plain(Box<PlainMeter>),
    /// To be translated once it is whole.
    Whole(Box<Whole>),
    Stream(Box<Stream>),
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

impl Answer {
    pub(crate) fn begin(
        &mut self,
        headers: &[(&[u8], &[u8])],
        expected: Expected,
        beside: Beside<'_>,
    ) -> ResponseStep {
        let head = AnswerHead::read(headers);
        if head.status < 200 && head.status != SWITCHING_PROTOCOLS {
            return ResponseStep::Pass;
        }
        self.status = head.status;
        self.retry_after_s = head.retry_after_s;
        self.body = match head.status {
            200..300 => successful_body(&head, expected, beside),
            SWITCHING_PROTOCOLS => replaced(Refusal::ProviderAnswerUnreadable),
            300..=399 => replaced(Refusal::ProviderRedirected),
            401..=403 => replaced(Refusal::ProviderCredentialRejected),
            404 => replaced(Refusal::ProviderModelNotFound),
            status if head.is_compressed => replaced(Refusal::ProviderErrorUnreadable { status }),
            status => Body::Error(ErrorAnswer::new(status, expected.api)),
        };
        self.leaks = head.leaks;
        if matches!(
            self.body,
            Body::Plain(_) | Body::Whole(_) | Body::Opaque { .. }
        ) {
            self.first_content_us = Some(beside.clock.now().mono_us);
        }
        match self.body {
            Body::Held(_) | Body::Whole(_) => ResponseStep::Hold,
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
            Body::Stream(stream) => {
                sink.remove("content-length");
                if stream.translator.is_some() {
                    sink.set("content-type", b"text/event-stream");
                }
            }
            Body::Held(_) => sink.remove("content-length"),
            Body::Whole(whole) => {
                sink.remove("content-length");
                if whole.stream {
                    sink.set("content-type", b"text/event-stream");
                }
            }
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
    pub(crate) fn transforms(&self) -> bool {
        match &self.body {
            Body::Stream(stream) => stream.strips_usage || stream.translator.is_some(),
            Body::Held(_) | Body::Whole(_) | Body::Error(_) | Body::Replaced { .. } => true,
            Body::NoneYet | Body::Plain(_) | Body::Opaque { .. } => false,
        }
    }

    pub(crate) fn observe(&mut self, chunk: &[u8], clock: &dyn Clock) {
        match &mut self.body {
            Body::Plain(meter) => meter.observe(chunk),
            Body::Stream(stream) => {
                stream.meter.observe(chunk);
                self.note_first_content(clock);
            }
            Body::Opaque { bytes } => *bytes += chunk.len() as u64,
            Body::NoneYet
            | Body::Whole(_)
            | Body::Held(_)
            | Body::Error(_)
            | Body::Replaced { .. } => {}
        }
    }

    pub(crate) fn transform(&mut self, chunk: &[u8], beside: Beside<'_>, out: &mut Vec<u8>) {
        match &mut self.body {
            Body::Stream(stream) => {
                stream.transform(chunk, beside.secret, out);
                self.note_first_content(beside.clock);
            }
            Body::Held(held) => {
                let verdict = held.take(chunk, beside);
                self.follow(verdict, beside, out);
            }
            Body::Whole(whole) => {
                if whole.take(chunk) {
                    return;
                }
                self.replace(Refusal::ProviderAnswerUnreadable, beside, out);
            }
            Body::Error(error) => {
                error.take(chunk);
                self.releases_head |= error.is_full();
            }
            Body::Replaced { .. } => self.give_replacement(beside.voice, out),
            Body::NoneYet | Body::Plain(_) | Body::Opaque { .. } => {
                out.extend_from_slice(chunk);
                self.observe(chunk, beside.clock);
            }
        }
    }

    pub(crate) fn end(&mut self, beside: Beside<'_>, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        match &mut self.body {
            Body::Plain(meter) => meter.finish(),
            Body::Stream(stream) => {
                stream.finish(beside, out);
                self.note_first_content(beside.clock);
            }
            Body::Held(held) => {
                let verdict = held.end(beside);
                self.follow(verdict, beside, out);
            }
            Body::Whole(whole) => match whole.print(beside) {
                Some(printed) => {
                    out.extend_from_slice(&printed);
                    self.releases_head = true;
                }
                None => self.replace(Refusal::ProviderAnswerUnreadable, beside, out),
            },
            Body::Error(error) => {
                error.print(beside.secret, beside.voice, out);
                self.releases_head = true;
            }
            Body::Replaced { .. } => self.give_replacement(beside.voice, out),
            Body::NoneYet | Body::Opaque { .. } => {}
        }
    }

    /// Ends an open stream before the provider does. False: it is not translated, and its own API's
    /// closing events are to be written.
    pub(crate) fn close(&mut self, usage: filter_llm::usage::Usage, out: &mut Vec<u8>) -> bool {
        let Body::Stream(stream) = &mut self.body else {
            return false;
        };
        let Some(translator) = &mut stream.translator else {
            return false;
        };
        translator.close(usage, out);
        true
    }

    /// True once, when a held head may go.
    pub(crate) fn releases_head(&mut self) -> bool {
        std::mem::take(&mut self.releases_head)
    }

    /// True while the head is kept from the client.
    pub(crate) fn is_held(&self) -> bool {
        match &self.body {
            Body::Held(_) => true,
            Body::Whole(whole) => !whole.is_given,
            _ => false,
        }
    }

    /// For an event stream that the client is reading: whether it is between two events.
    pub(crate) fn open_stream(&self) -> Option<bool> {
        match &self.body {
            // What a translator gives is always whole events.
            Body::Stream(stream) => {
                Some(stream.translator.is_some() || stream.meter.at_event_boundary())
            }
            _ => None,
        }
    }

    /// What the meter has read; `None` when nothing could be.
    pub(crate) fn reading(&self) -> Option<&Reading> {
        match &self.body {
            Body::Plain(meter) => Some(meter.reading()),
            Body::Whole(whole) => Some(whole.meter.reading()),
            Body::Stream(stream) => Some(stream.meter.reading()),
            Body::Held(held) => Some(held.reading()),
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
    pub(crate) fn provider_error(&self, secret: &[u8], voice: Voice<'_>) -> Option<Vec<u8>> {
        let Body::Error(error) = &self.body else {
            return None;
        };
        let mut words = Vec::new();
        error.print(secret, voice, &mut words);
        Some(words)
    }

    /// What the provider says is wrong with the request, once it has said all.
    pub(crate) fn request_error(&self) -> Option<ProviderError> {
        match (&self.body, self.status) {
            (Body::Error(error), 400 | 413 | 422) => error.parsed(),
            _ => None,
        }
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

    fn follow(&mut self, verdict: HoldVerdict, beside: Beside<'_>, out: &mut Vec<u8>) {
        match verdict {
            HoldVerdict::Wait => return,
            HoldVerdict::Fail(refusal) => return self.replace(refusal, beside, out),
            HoldVerdict::Release => {}
        }
        let Body::Held(held) = std::mem::take(&mut self.body) else {
            return;
        };
        self.releases_head = true;
        out.extend_from_slice(&held.kept);
        self.body = Body::Stream(held.stream);
        self.note_first_content(beside.clock);
    }

    /// Puts an error of ours in the place of an answer whose head has not gone yet.
    fn replace(&mut self, refusal: Refusal, beside: Beside<'_>, out: &mut Vec<u8>) {
        let reading = self.reading().cloned().map(Box::new);
        self.releases_head = true;
        self.body = Body::Replaced {
            refusal,
            reading,
            is_given: false,
        };
        self.give_replacement(beside.voice, out);
    }

    fn give_replacement(&mut self, voice: Voice<'_>, out: &mut Vec<u8>) {
        if let Body::Replaced {
            refusal,
            is_given: is_given @ false,
            ..
        } = &mut self.body
        {
            out.extend_from_slice(&refusal.body(voice));
            *is_given = true;
        }
    }

    fn note_first_content(&mut self, clock: &dyn Clock) {
        if self.first_content_us.is_none() && self.reading().is_some_and(|read| read.has_content) {
            self.first_content_us = Some(clock.now().mono_us);
        }
    }
}

fn successful_body(head: &AnswerHead, expected: Expected, beside: Beside<'_>) -> Body {
    let is_translated = expected.api != beside.voice.api;
    let is_unreadable = head.is_compressed || head.kind == BodyKind::Other;
    if is_unreadable && is_translated {
        return replaced(Refusal::ProviderAnswerUnreadable);
    }
    if is_unreadable {
        return Body::Opaque { bytes: 0 };
    }
    if head.kind == BodyKind::EventStream {
        return stream_body(expected, is_translated, beside);
    }
    let meter = PlainMeter::new(expected.api);
    if !is_translated {
        return Body::Plain(Box::new(meter));
    }
    Body::Whole(Box::new(Whole::new(meter, expected)))
}

fn stream_body(expected: Expected, is_translated: bool, beside: Beside<'_>) -> Body {
    let translator = if is_translated && expected.stream {
        StreamTranslator::new(expected.api, beside.voice.api, &beside.terms()).map(Box::new)
    } else {
        None
    };
    if is_translated && translator.is_none() {
        return replaced(Refusal::ProviderAnswerUnreadable);
    }
    let members = if expected.strips_usage && translator.is_none() {
        UsageMembers::Strip
    } else {
        UsageMembers::Keep
    };
    let max_event_bytes = usize::try_from(expected.max_event_bytes).unwrap_or(usize::MAX);
    let stream = Box::new(Stream {
        meter: StreamMeter::new(expected.api, members, max_event_bytes),
        strips_usage: expected.strips_usage,
        translator,
    });
    if expected.stream {
        Body::Held(HeldStream::new(stream, expected))
    } else {
        Body::Stream(stream)
    }
}

const fn replaced(refusal: Refusal) -> Body {
    Body::Replaced {
        refusal,
        reading: None,
        is_given: false,
    }
}
