//! Prints a stream for a client of Anthropic's Messages: blocks, one open at a time.

use super::block::{Block, input};
use super::event::{DeltaShown, EndShown, EventShown};
use super::message::{MessageShown, UsageShown, signed_id, stop_reason};
use crate::conversation::{Event, EventQueue, Finish};
use crate::translate::{AnswerTerms, PrintEvents};
use crate::usage::Usage;

/// A stream as far as it has been printed.
#[derive(Debug)]
pub(crate) struct MessageEvents {
    queue: EventQueue,
    state: State,
}

#[derive(Debug)]
struct State {
    request_id: String,
    model: String,
    /// The provider's, until it is told.
    id: String,
    has_started: bool,
    open: Option<Open>,
    blocks: u32,
    finish: Option<(Finish, Option<String>)>,
    usage: Usage,
}

/// The block that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
    ToolUse { has_input: bool },
}

const TEXT: Block<'static> = Block::Text {
    text: "",
    cache_control: None,
};
const THINKING: Block<'static> = Block::Thinking {
    thinking: "",
    signature: "",
};

impl MessageEvents {
    pub(crate) fn new(terms: &AnswerTerms<'_>) -> Self {
        Self {
            queue: EventQueue::default(),
            state: State {
                request_id: terms.request_id.to_owned(),
                model: terms.model.to_owned(),
                id: String::new(),
                has_started: false,
                open: None,
                blocks: 0,
                finish: None,
                usage: Usage::default(),
            },
        }
    }
}

impl PrintEvents for MessageEvents {
    fn print(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let Self { queue, state } = self;
        queue.push(event.clone(), &mut |event| state.print(event, out));
    }
}

impl State {
    fn print(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Start { id, .. } => self.id = id.as_ref().to_owned(),
            Event::Usage(usage) => self.usage = *usage,
            Event::Finish {
                finish,
                stop_sequence,
            } => self.finish = Some((*finish, stop_sequence.as_deref().map(str::to_owned))),
            Event::Text(text) | Event::Refusal(text) => self.text(text, out),
            Event::Thinking(thinking) => self.think(DeltaShown::Thinking { thinking }, out),
            Event::Signature(signature) => {
                self.think(DeltaShown::Signature { signature }, out);
                self.close(out);
            }
            Event::Redacted(data) => {
                self.begin(Block::RedactedThinking { data }, out);
                self.end(out);
            }
            Event::CallStart {
                id,
                name,
                signature,
                ..
            } => {
                let block = Block::ToolUse {
                    id: signed_id(id, signature.as_deref()),
                    name,
                    input: input(""),
                    cache_control: None,
                };
                self.begin(block, out);
                self.open = Some(Open::ToolUse { has_input: false });
            }
            Event::CallArguments { json, .. } => self.input(json, out),
            Event::CallEnd { .. } => self.close(out),
            Event::Error(_) => {}
            Event::End => self.finish(out),
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        if !text.is_empty() {
            self.open(Open::Text, TEXT, out);
            self.delta(DeltaShown::Text { text }, out);
        }
    }

    fn think(&mut self, delta: DeltaShown<'_>, out: &mut Vec<u8>) {
        self.open(Open::Thinking, THINKING, out);
        self.delta(delta, out);
    }

    fn input(&mut self, partial_json: &str, out: &mut Vec<u8>) {
        if let Some(Open::ToolUse { has_input }) = &mut self.open
            && !partial_json.is_empty()
        {
            *has_input = true;
            self.delta(DeltaShown::Input { partial_json }, out);
        }
    }

    /// Tells the message itself. It waits for its first block, since some providers tell the usage
    /// of the prompt only after their first event.
    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        let message = MessageShown::new(&self.id, &self.request_id, &self.model, &self.usage);
        EventShown::MessageStart { message }.write(out);
    }

    /// Has a block of this kind open.
    fn open(&mut self, kind: Open, block: Block<'_>, out: &mut Vec<u8>) {
        if self.open != Some(kind) {
            self.begin(block, out);
            self.open = Some(kind);
        }
    }

    fn begin(&mut self, content_block: Block<'_>, out: &mut Vec<u8>) {
        self.start(out);
        self.close(out);
        let start = EventShown::ContentBlockStart {
            index: self.blocks,
            content_block,
        };
        start.write(out);
    }

    fn delta(&self, delta: DeltaShown<'_>, out: &mut Vec<u8>) {
        let delta = EventShown::ContentBlockDelta {
            index: self.blocks,
            delta,
        };
        delta.write(out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        let Some(open) = self.open.take() else { return };
        if open == (Open::ToolUse { has_input: false }) {
            self.delta(DeltaShown::Input { partial_json: "{}" }, out);
        }
        self.end(out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        EventShown::ContentBlockStop { index: self.blocks }.write(out);
        self.blocks += 1;
    }

    /// Finish and usage are told together: some providers tell the usage last.
    fn finish(&mut self, out: &mut Vec<u8>) {
        self.start(out);
        self.close(out);
        let (finish, stop_sequence) = self.finish.take().unwrap_or((Finish::Stop, None));
        let delta = EndShown {
            stop_reason: stop_reason(finish, stop_sequence.is_some()),
            stop_sequence: stop_sequence.as_deref(),
        };
        let usage = UsageShown::of(&self.usage);
        EventShown::MessageDelta { delta, usage }.write(out);
        EventShown::MessageStop.write(out);
    }
}

#[cfg(test)]
mod tests;
