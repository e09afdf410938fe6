//! Reads the events of a provider's stream.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::document::{self, Block, Delta, Said, finish};
use super::error;
use super::reported::Reported;
use crate::conversation::Event;
use crate::translate::ReadEvents;

/// A stream as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct AnthropicEvents {
    reported: Reported,
    calls: u32,
    call: Option<OpenCall>,
    /// An error or the end has been told.
    is_over: bool,
}

/// The call whose block is open.
#[derive(Debug)]
struct OpenCall {
    block: u32,
    call: u32,
    has_arguments: bool,
}

impl ReadEvents for AnthropicEvents {
    fn read(&mut self, _name: &[u8], data: &[u8], hand_on: &mut dyn FnMut(Event<'_>)) {
        if self.is_over {
            return;
        }
        let Ok(event) = serde_json::from_slice::<document::Event<'_>>(data) else {
            return;
        };
        if event.kind == "error" {
            self.is_over = true;
            return hand_on(Event::Error(error::parse(data).unwrap_or_default()));
        }
        self.event(event, hand_on);
    }

    fn finish(&mut self, hand_on: &mut dyn FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.is_over, true) {
            hand_on(Event::End);
        }
    }
}

impl AnthropicEvents {
    fn event(&mut self, event: document::Event<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        match (event.kind, event.message, event.content_block) {
            ("message_start", Some(message), _) => {
                hand_on(Event::Start {
                    id: message.id,
                    model: message.model,
                });
                self.usage(message.usage, hand_on);
            }
            ("content_block_start", _, Some(block)) => {
                self.begin_block(event.index, block, hand_on);
            }
            ("content_block_delta", ..) => self.delta(event.index, event.delta, hand_on),
            ("content_block_stop", ..) => self.end_block(event.index, hand_on),
            ("message_delta", ..) => {
                finished(event.delta, hand_on);
                self.usage(event.usage, hand_on);
            }
            ("message_stop", ..) => self.finish(hand_on),
            _ => {}
        }
    }

    fn usage(&mut self, usage: Option<&RawValue>, hand_on: &mut dyn FnMut(Event<'_>)) {
        let Some(usage) = usage else { return };
        self.reported.add(usage);
        if let Some(usage) = self.reported.canonical() {
            hand_on(Event::Usage(usage));
        }
    }

    fn begin_block(&mut self, index: u32, block: Block<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        match block.kind {
            "tool_use" => {
                let call = self.calls;
                self.calls += 1;
                hand_on(Event::CallStart {
                    call,
                    id: Said::filled(block.id).unwrap_or_default(),
                    name: Said::filled(block.name).unwrap_or_default(),
                    signature: None,
                });
                // Empty here, but for providers that tell it all at once.
                let input = block.input.map_or("", RawValue::get);
                let is_told = !matches!(input.trim_ascii(), "" | "{}" | "null");
                if is_told {
                    let json = Cow::Borrowed(input);
                    hand_on(Event::CallArguments { call, json });
                }
                self.call = Some(OpenCall {
                    block: index,
                    call,
                    has_arguments: is_told,
                });
            }
            "redacted_thinking" => {
                hand_on(Event::Redacted(
                    Said::filled(block.data).unwrap_or_default(),
                ));
            }
            "text" | "thinking" => {
                let delta = Delta {
                    text: block.text,
                    thinking: block.thinking,
                    signature: block.signature,
                    ..Delta::default()
                };
                self.delta(index, delta, hand_on);
            }
            _ => {}
        }
    }

    fn delta(&mut self, index: u32, delta: Delta<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        if let Some(text) = Said::filled(delta.text) {
            hand_on(Event::Text(text));
        }
        if let Some(text) = Said::filled(delta.thinking) {
            hand_on(Event::Thinking(text));
        }
        if let Some(signature) = Said::filled(delta.signature) {
            hand_on(Event::Signature(signature));
        }
        let open = self.call.as_mut().filter(|open| open.block == index);
        if let (Some(open), Some(json)) = (open, Said::filled(delta.partial_json)) {
            open.has_arguments = true;
            hand_on(Event::CallArguments {
                call: open.call,
                json,
            });
        }
    }

    fn end_block(&mut self, index: u32, hand_on: &mut dyn FnMut(Event<'_>)) {
        let Some(open) = self.call.take_if(|open| open.block == index) else {
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

fn finished(delta: Delta<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
    if let Some(word) = delta.stop_reason {
        hand_on(Event::Finish {
            finish: finish(word),
            stop_sequence: delta.stop_sequence.map(Said::text),
        });
    }
}

#[cfg(test)]
mod tests;
