//! Bodies that pass: a stream as it comes, and a whole answer once it is translated.

use filter_llm::api::Api;
use filter_llm::meter::{PlainMeter, StreamMeter};
use filter_llm::translate::{self, StreamTranslator};

use super::{Beside, Expected};
use crate::error::Refusal;

/// A whole answer that is translated.
pub(super) struct Whole {
    pub(super) meter: PlainMeter,
    api: Api,
    document: Vec<u8>,
    max_bytes: u64,
    /// The client asked for a stream.
    pub(super) stream: bool,
    pub(super) is_given: bool,
}

/// A stream that the client reads.
pub(super) struct Stream {
    pub(super) meter: StreamMeter,
    pub(super) strips_usage: bool,
    pub(super) translator: Option<Box<StreamTranslator>>,
}

impl Whole {
    pub(super) const fn new(meter: PlainMeter, expected: Expected) -> Self {
        Self {
            meter,
            api: expected.api,
            document: Vec::new(),
            max_bytes: expected.max_event_bytes,
            stream: expected.stream,
            is_given: false,
        }
    }

    /// False when it is larger than is held.
    pub(super) fn take(&mut self, chunk: &[u8]) -> bool {
        self.meter.observe(chunk);
        self.document.extend_from_slice(chunk);
        self.document.len() as u64 <= self.max_bytes
    }

    pub(super) fn print(&mut self, beside: Beside<'_>) -> Option<Vec<u8>> {
        self.meter.finish();
        let (client, terms) = (beside.voice.api, beside.terms());
        let printed = if self.stream {
            translate::answer_as_stream(self.api, client, &self.document, &terms)
        } else {
            translate::answer(self.api, client, &self.document, &terms)
        };
        self.document = Vec::new();
        self.is_given = printed.is_some();
        printed
    }
}

impl Stream {
    pub(super) fn transform(&mut self, chunk: &[u8], secret: &[u8], out: &mut Vec<u8>) {
        match &mut self.translator {
            None => self.meter.transform(chunk, out),
            Some(translator) => self.meter.read_each(chunk, &mut |name, data| {
                translator.event(name, data, secret, out);
            }),
        }
    }

    pub(super) fn finish(&mut self, beside: Beside<'_>, out: &mut Vec<u8>) {
        let Some(translator) = &mut self.translator else {
            return self.meter.finish(out);
        };
        self.meter.finish_each(&mut |name, data| {
            translator.event(name, data, beside.secret, out);
        });
        let reading = self.meter.reading();
        if reading.is_done || reading.finish.is_some() {
            translator.finish(out);
        } else if reading.error.is_none() {
            out.extend_from_slice(&Refusal::ProviderCut.event(beside.voice));
        }
    }
}
