//! Reads the events of a provider's stream.

use std::borrow::Cow;

use super::document::{self, Delta, ReasoningText, ToolUse, finish, stop_sequence};
use super::error;
use super::reported::Reported;
use super::told::ERROR;
use crate::anthropic::Said;
use crate::conversation::Event;
use crate::translate::ReadEvents;

/// A stream as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct ConverseEvents {
    reported: Reported,
    has_started: bool,
    calls: u32,
    open: Vec<OpenCall>,
    /// An error or the end has been told.
    is_over: bool,
}

/// A call whose block is open.
#[derive(Debug)]
struct OpenCall {
    block: u32,
    call: u32,
    has_arguments: bool,
}

impl ReadEvents for ConverseEvents {
    fn read(&mut self, name: &[u8], data: &[u8], hand_on: &mut dyn FnMut(Event<'_>)) {
        if self.is_over {
            return;
        }
        if name == ERROR {
            self.is_over = true;
            return hand_on(Event::Error(error::parse(data).unwrap_or_default()));
        }
        if let Ok(event) = serde_json::from_slice(data) {
            self.event(name, event, hand_on);
        }
    }

    fn finish(&mut self, hand_on: &mut dyn FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.is_over, true) {
            hand_on(Event::End);
        }
    }
}

impl ConverseEvents {
    /// The usage comes last and more than once from some, so the stream's end is its only end.
    fn event(
        &mut self,
        name: &[u8],
        event: document::Event<'_>,
        hand_on: &mut dyn FnMut(Event<'_>),
    ) {
        if !std::mem::replace(&mut self.has_started, true) {
            let (id, model) = Default::default();
            hand_on(Event::Start { id, model });
        }
        let block = event.content_block_index;
        match name {
            b"contentBlockStart" => {
                if let Some(call) = event.start.and_then(|start| start.tool_use) {
                    self.begin_call(block, call, hand_on);
                }
            }
            b"contentBlockDelta" => {
                if let Some(delta) = event.delta {
                    self.delta(block, delta, hand_on);
                }
            }
            b"contentBlockStop" => self.end_block(block, hand_on),
            b"messageStop" => hand_on(Event::Finish {
                finish: finish(event.stop_reason.unwrap_or_default()),
                stop_sequence: stop_sequence(event.additional_model_response_fields),
            }),
            b"metadata" => {
                let usage = event.usage.into_iter();
                usage.for_each(|usage| self.reported.add(usage));
                if let Some(usage) = self.reported.canonical() {
                    hand_on(Event::Usage(usage));
                }
            }
            _ => {}
        }
    }

    fn begin_call(&mut self, block: u32, told: ToolUse<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        let call = self.calls;
        self.calls += 1;
        hand_on(Event::CallStart {
            call,
            id: Said::filled(told.tool_use_id).unwrap_or_default(),
            name: Said::filled(told.name).unwrap_or_default(),
            signature: None,
        });
        self.open.push(OpenCall {
            block,
            call,
            has_arguments: false,
        });
    }

    fn delta(&mut self, block: u32, delta: Delta<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        if let Some(text) = Said::filled(delta.text) {
            hand_on(Event::Text(text));
        }
        if let Some(reasoning) = delta.reasoning_content {
            think(reasoning, hand_on);
        }
        let input = delta.tool_use.and_then(|call| call.input);
        let input = input.and_then(|json| serde_json::from_str::<Said<'_>>(json.get()).ok());
        let open = self.open.iter_mut().find(|open| open.block == block);
        if let (Some(open), Some(json)) = (open, Said::filled(input)) {
            open.has_arguments = true;
            hand_on(Event::CallArguments {
                call: open.call,
                json,
            });
        }
    }

    fn end_block(&mut self, block: u32, hand_on: &mut dyn FnMut(Event<'_>)) {
        let at = self.open.iter().position(|open| open.block == block);
        let Some(open) = at.map(|at| self.open.remove(at)) else {
            return;
        };
        let call = open.call;
        if !open.has_arguments {
            let json = Cow::Borrowed("{}");
            hand_on(Event::CallArguments { call, json });
        }
        hand_on(Event::CallEnd { call });
    }
}

fn think(told: ReasoningText<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
    if let Some(text) = Said::filled(told.text) {
        hand_on(Event::Thinking(text));
    }
    if let Some(signature) = Said::filled(told.signature) {
        hand_on(Event::Signature(signature));
    }
    if let Some(data) = Said::filled(told.redacted_content) {
        hand_on(Event::Redacted(data));
    }
}

#[cfg(test)]
mod tests;
