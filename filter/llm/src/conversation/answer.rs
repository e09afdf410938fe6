//! What is answered, whole or event by event.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::request::{Part, Thinking, ToolCall};
use crate::provider_error::ProviderError;
use crate::usage::Usage;

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer<'a> {
    /// The provider's id of it; empty: it has none.
    pub id: Cow<'a, str>,
    /// The model as the provider names it; empty: not told.
    pub model: Cow<'a, str>,
    /// Text, thinking, tool calls and refusals, in their order.
    pub parts: Vec<Part<'a>>,
    pub finish: Option<Finish>,
    /// The stop sequence that ended it.
    pub stop_sequence: Option<Cow<'a, str>>,
    pub usage: Option<Usage>,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model was done, or came to a stop sequence.
    Stop,
    /// It came to its limit of tokens, or of the context window.
    Length,
    ToolCalls,
    /// A filter or guardrail ended it.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// The provider gave up.
    Error,
}

/// A step of a streamed answer. Readers give `Start` first, `Finish` once, `Usage` whenever it is
/// told (the last one counts), and `End` last; after an `Error` nothing follows.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    Start {
        /// Empty: the provider has none.
        id: Cow<'a, str>,
        model: Cow<'a, str>,
    },
    Text(Cow<'a, str>),
    Refusal(Cow<'a, str>),
    Thinking(Cow<'a, str>),
    /// Signs the thinking before it.
    Signature(Cow<'a, str>),
    /// A piece of thinking that is encrypted.
    Redacted(Cow<'a, str>),
    /// A tool's call begins. `call` counts from 0.
    CallStart {
        call: u32,
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        signature: Option<Cow<'a, str>>,
    },
    /// A piece of its arguments' JSON text.
    CallArguments {
        call: u32,
        json: Cow<'a, str>,
    },
    /// No more of this call comes. Readers whose API does not tell leave it out.
    CallEnd {
        call: u32,
    },
    Finish {
        finish: Finish,
        stop_sequence: Option<Cow<'a, str>>,
    },
    Usage(Usage),
    Error(ProviderError),
    End,
}

/// Puts calls of tools one after the other, for printers whose API knows blocks: some providers
/// tell pieces of several calls in turns. The first call passes as it comes; what comes of later
/// ones waits until the one before has ended.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    open: Option<u32>,
    waiting: VecDeque<Event<'static>>,
}

impl EventQueue {
    /// Hands on what may be printed now.
    pub fn push<'a>(&mut self, event: Event<'a>, print: &mut dyn FnMut(&Event<'_>)) {
        let call = match &event {
            Event::CallStart { call, .. }
            | Event::CallArguments { call, .. }
            | Event::CallEnd { call } => Some(*call),
            _ => None,
        };
        match call {
            None => self.push_other(&event, print),
            Some(call) if self.open.is_none_or(|open| open == call) => {
                self.open = Some(call);
                print(&event);
                if matches!(event, Event::CallEnd { .. }) {
                    self.open = None;
                    self.advance(print);
                }
            }
            Some(_) => self.waiting.push_back(event.into_owned()),
        }
    }

    /// Content between two calls ends the first of them; usage and the like do not.
    fn push_other(&mut self, event: &Event<'_>, print: &mut dyn FnMut(&Event<'_>)) {
        let is_beside = matches!(event, Event::Usage(_) | Event::Start { .. });
        if !is_beside {
            self.drain(print);
        }
        print(event);
    }

    /// Ends the open call, and every one that waits.
    fn drain(&mut self, print: &mut dyn FnMut(&Event<'_>)) {
        while let Some(call) = self.open.take() {
            print(&Event::CallEnd { call });
            self.advance(print);
        }
    }

    /// Prints what waits of the next call, up to its end if that has come.
    fn advance(&mut self, print: &mut dyn FnMut(&Event<'_>)) {
        while let Some(next) = self.waiting.front().and_then(Event::call) {
            self.open = Some(next);
            let (now, later): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.waiting)
                .into_iter()
                .partition(|event| event.call() == Some(next));
            self.waiting = later;
            for event in &now {
                print(event);
            }
            if !matches!(now.back(), Some(Event::CallEnd { .. })) {
                return;
            }
            self.open = None;
        }
    }
}

impl Event<'_> {
    fn call(&self) -> Option<u32> {
        match self {
            Event::CallStart { call, .. }
            | Event::CallArguments { call, .. }
            | Event::CallEnd { call } => Some(*call),
            _ => None,
        }
    }

    /// The same, borrowed from nothing.
    pub fn into_owned(self) -> Event<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Event::Start { id, model } => Event::Start {
                id: own(id),
                model: own(model),
            },
            Event::Text(text) => Event::Text(own(text)),
            Event::Refusal(text) => Event::Refusal(own(text)),
            Event::Thinking(text) => Event::Thinking(own(text)),
            Event::Signature(text) => Event::Signature(own(text)),
            Event::Redacted(data) => Event::Redacted(own(data)),
            Event::CallStart {
                call,
                id,
                name,
                signature,
            } => Event::CallStart {
                call,
                id: own(id),
                name: own(name),
                signature: signature.map(own),
            },
            Event::CallArguments { call, json } => Event::CallArguments {
                call,
                json: own(json),
            },
            Event::CallEnd { call } => Event::CallEnd { call },
            Event::Finish {
                finish,
                stop_sequence,
            } => Event::Finish {
                finish,
                stop_sequence: stop_sequence.map(own),
            },
            Event::Usage(usage) => Event::Usage(usage),
            Event::Error(error) => Event::Error(error),
            Event::End => Event::End,
        }
    }
}

impl<'a> Answer<'a> {
    /// Text of all text parts, put together.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_ref()),
            _ => None,
        });
        texts.collect()
    }

    /// The calls of tools, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall<'a>> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The same, as a stream would have told it.
    pub fn into_events(self) -> Vec<Event<'a>> {
        let mut events = vec![Event::Start {
            id: self.id,
            model: self.model,
        }];
        let mut call = 0;
        for part in self.parts {
            match part {
                Part::Text { text, .. } => events.push(Event::Text(text)),
                Part::Refusal(text) => events.push(Event::Refusal(text)),
                Part::Thinking(Thinking::Shown { text, signature }) => {
                    events.push(Event::Thinking(text));
                    events.extend(signature.map(Event::Signature));
                }
                Part::Thinking(Thinking::Redacted { data }) => events.push(Event::Redacted(data)),
                Part::ToolCall(made) => {
                    events.push(Event::CallStart {
                        call,
                        id: made.id,
                        name: made.name,
                        signature: made.signature,
                    });
                    events.push(Event::CallArguments {
                        call,
                        json: made.arguments,
                    });
                    events.push(Event::CallEnd { call });
                    call += 1;
                }
                // No answer has these.
                Part::Image(_) | Part::Audio(_) | Part::File(_) | Part::ToolResult(_) => {}
            }
        }
        events.push(Event::Finish {
            finish: self.finish.unwrap_or(Finish::Stop),
            stop_sequence: self.stop_sequence,
        });
        events.extend(self.usage.map(Event::Usage));
        events.push(Event::End);
        events
    }

    /// The thinking, in order.
    pub fn thinking(&self) -> impl Iterator<Item = &Thinking<'a>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Thinking(thinking) => Some(thinking),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(call: u32) -> Event<'static> {
        Event::CallStart {
            call,
            id: format!("call-{call}").into(),
            name: "f".into(),
            signature: None,
        }
    }

    fn piece(call: u32, json: &'static str) -> Event<'static> {
        Event::CallArguments {
            call,
            json: json.into(),
        }
    }

    fn finish() -> Event<'static> {
        Event::Finish {
            finish: Finish::ToolCalls,
            stop_sequence: None,
        }
    }

    fn through(events: Vec<Event<'static>>) -> Vec<Event<'static>> {
        let mut queue = EventQueue::default();
        let mut printed = Vec::new();
        for event in events {
            queue.push(event, &mut |event| printed.push(event.clone().into_owned()));
        }
        printed
    }

    #[test]
    fn calls_told_in_turns_come_out_one_after_the_other() {
        let printed = through(vec![
            start(0),
            start(1),
            piece(1, "{\"b\":"),
            piece(0, "{}"),
            piece(1, "1}"),
            finish(),
        ]);
        let end = |call| Event::CallEnd { call };
        let expected = [
            start(0),
            piece(0, "{}"),
            end(0),
            start(1),
            piece(1, "{\"b\":"),
            piece(1, "1}"),
            end(1),
            finish(),
        ];
        assert_eq!(printed, expected);
    }

    #[test]
    fn a_call_whose_end_is_told_lets_the_next_one_pass_at_once() {
        let ended = Event::CallEnd { call: 0 };
        let printed = through(vec![start(0), ended.clone(), start(1), piece(1, "{}")]);
        assert_eq!(printed, [start(0), ended, start(1), piece(1, "{}")]);
    }
}
