//! Prints a stream for a client: items one after the other, and in the end the whole response.

use super::open_item::{Call, Message, OpenItem, Reasoning};
use super::shown::Outcome;
use super::thought::Sealed;
use super::wire::Wire;
use crate::conversation::{Event, EventQueue, Finish};
use crate::translate::{AnswerTerms, PrintEvents};
use crate::usage::Usage;

/// A stream as far as it has been printed.
#[derive(Debug)]
pub(crate) struct ResponseEvents {
    queue: EventQueue,
    stream: Stream,
}

#[derive(Debug)]
struct Stream {
    wire: Wire,
    open: Option<OpenItem>,
    has_refusal: bool,
    finish: Option<Finish>,
    usage: Option<Usage>,
}

impl ResponseEvents {
    /// At the start of a stream.
    pub(crate) fn new(terms: &AnswerTerms<'_>) -> Self {
        Self {
            queue: EventQueue::default(),
            stream: Stream {
                wire: Wire::new(terms),
                open: None,
                has_refusal: false,
                finish: None,
                usage: None,
            },
        }
    }
}

impl PrintEvents for ResponseEvents {
    fn print(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let Self { queue, stream } = self;
        queue.push(event.clone(), &mut |event| stream.print(event, out));
    }

    fn next_sequence_number(&self) -> u64 {
        self.stream.wire.next_sequence_number()
    }
}

impl Stream {
    fn print(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Text(text) | Event::Refusal(text) | Event::Thinking(text) if text.is_empty() => {
            }
            Event::Start { id, model } => self.wire.start(id, model, out),
            Event::Text(text) => self.say(text, false, out),
            Event::Refusal(text) => self.say(text, true, out),
            Event::Thinking(text) => self.think(text, out),
            Event::Signature(signature) => {
                let signature = signature.as_ref().to_owned();
                self.seal(Sealed::Signature(signature.into()), out);
            }
            Event::Redacted(data) => {
                self.close(Outcome::Completed, out);
                self.seal(Sealed::Redacted(data.as_ref().to_owned().into()), out);
            }
            Event::CallStart {
                id,
                name,
                signature,
                ..
            } => {
                let call = Call {
                    id: id.as_ref().to_owned(),
                    signature: signature.as_deref().map(str::to_owned),
                    name: name.as_ref().to_owned(),
                    arguments: String::new(),
                };
                self.begin(OpenItem::Call(call), out);
            }
            Event::CallArguments { json, .. } => {
                if let Some(OpenItem::Call(call)) = &mut self.open
                    && !json.is_empty()
                {
                    call.add_arguments(json, &mut self.wire, out);
                }
            }
            // Whether a call is whole is known from what follows only, so it ends with that.
            Event::CallEnd { .. } | Event::Error(_) => {}
            Event::Finish { finish, .. } => self.finish = Some(*finish),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::End => self.end(out),
        }
    }

    fn say(&mut self, text: &str, is_refusal: bool, out: &mut Vec<u8>) {
        self.has_refusal |= is_refusal;
        if !matches!(self.open, Some(OpenItem::Message(_))) {
            self.begin(OpenItem::Message(Message::default()), out);
        }
        if let Some(OpenItem::Message(message)) = &mut self.open {
            message.say(text, is_refusal, &mut self.wire, out);
        }
    }

    fn think(&mut self, text: &str, out: &mut Vec<u8>) {
        self.open_reasoning(out);
        if let Some(OpenItem::Reasoning(reasoning)) = &mut self.open {
            reasoning.think(text, &mut self.wire, out);
        }
    }

    /// Ends the reasoning that is open, or some of which nothing has been shown.
    fn seal(&mut self, sealed: Sealed<'static>, out: &mut Vec<u8>) {
        self.open_reasoning(out);
        if let Some(OpenItem::Reasoning(reasoning)) = &mut self.open {
            reasoning.seal(sealed);
        }
        self.close(Outcome::Completed, out);
    }

    fn open_reasoning(&mut self, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenItem::Reasoning(_))) {
            self.begin(OpenItem::Reasoning(Reasoning::default()), out);
        }
    }

    /// Begins an item, and ends the one before.
    fn begin(&mut self, item: OpenItem, out: &mut Vec<u8>) {
        self.wire.start("", "", out);
        self.close(Outcome::Completed, out);
        item.begin(&mut self.wire, out);
        self.open = Some(item);
    }

    fn close(&mut self, outcome: Outcome, out: &mut Vec<u8>) {
        if let Some(open) = self.open.take() {
            open.end(outcome, &mut self.wire, out);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.wire.start("", "", out);
        let outcome = Outcome::of(self.finish, self.has_refusal);
        self.close(outcome, out);
        let usage = self.usage.as_ref();
        self.wire
            .tell_response(outcome.event(), outcome, usage, out);
    }
}

#[cfg(test)]
mod tests;
