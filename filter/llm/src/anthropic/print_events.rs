//! Prints a stream for a client of Anthropic's Messages: blocks, one open at a time.

use serde::Serialize;
use serde_json::{Value, json};

use super::print_answer::{message_id, signed_id, stop_reason};
use crate::conversation::{Event, EventQueue, Finish};
use crate::translate::{AnswerTerms, PrintEvents};
use crate::usage::Usage;

/// A usage as it is told: what was cached stands beside the input.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct UsageShown {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl UsageShown {
    pub(super) const fn of(usage: &Usage) -> Self {
        let beside = usage.cached_input.saturating_add(usage.cache_write);
        Self {
            input_tokens: usage.input.saturating_sub(beside),
            cache_creation_input_tokens: usage.cache_write,
            cache_read_input_tokens: usage.cached_input,
            output_tokens: usage.output,
        }
    }
}

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
    ToolUse,
}

impl MessageEvents {
    pub(crate) fn new(terms: &AnswerTerms<'_>) -> Self {
        Self {
            queue: EventQueue::default(),
            state: State {
                request_id: terms.request_id.to_owned(),
                model: terms.model.to_owned(),
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
            Event::Start { id, .. } => self.start(id, out),
            Event::Usage(usage) => self.usage = *usage,
            Event::Finish {
                finish,
                stop_sequence,
            } => self.finish = Some((*finish, stop_sequence.as_deref().map(str::to_owned))),
            Event::Text(text) | Event::Refusal(text) => {
                self.open(Open::Text, || json!({"type": "text", "text": ""}), out);
                self.delta(&json!({"type": "text_delta", "text": text}), out);
            }
            Event::Thinking(text) => {
                self.open_thinking(out);
                self.delta(&json!({"type": "thinking_delta", "thinking": text}), out);
            }
            Event::Signature(signature) => {
                self.open_thinking(out);
                self.delta(
                    &json!({"type": "signature_delta", "signature": signature}),
                    out,
                );
                self.close(out);
            }
            Event::Redacted(data) => {
                self.begin(&json!({"type": "redacted_thinking", "data": data}), out);
                self.end(out);
            }
            Event::CallStart {
                id,
                name,
                signature,
                ..
            } => {
                let id = signed_id(id, signature.as_deref());
                self.begin(
                    &json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                    out,
                );
                self.open = Some(Open::ToolUse);
            }
            Event::CallArguments { json, .. } => {
                self.delta(
                    &json!({"type": "input_json_delta", "partial_json": json}),
                    out,
                );
            }
            Event::CallEnd { .. } => self.close(out),
            Event::Error(_) => {}
            Event::End => self.finish(out),
        }
    }

    fn start(&mut self, id: &str, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        let message = json!({
            "id": message_id(id, &self.request_id),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": UsageShown::of(&self.usage),
        });
        event(
            "message_start",
            &json!({"type": "message_start", "message": message}),
            out,
        );
    }

    fn open_thinking(&mut self, out: &mut Vec<u8>) {
        let block = || json!({"type": "thinking", "thinking": "", "signature": ""});
        self.open(Open::Thinking, block, out);
    }

    /// Has a block of this kind open.
    fn open(&mut self, kind: Open, block: impl FnOnce() -> Value, out: &mut Vec<u8>) {
        if self.open != Some(kind) {
            self.begin(&block(), out);
            self.open = Some(kind);
        }
    }

    fn begin(&mut self, block: &Value, out: &mut Vec<u8>) {
        self.start("", out);
        self.close(out);
        let start = json!({
            "type": "content_block_start",
            "index": self.blocks,
            "content_block": block,
        });
        event("content_block_start", &start, out);
    }

    fn delta(&self, delta: &Value, out: &mut Vec<u8>) {
        let delta = json!({
            "type": "content_block_delta",
            "index": self.blocks,
            "delta": delta,
        });
        event("content_block_delta", &delta, out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            self.end(out);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let stop = json!({"type": "content_block_stop", "index": self.blocks});
        event("content_block_stop", &stop, out);
        self.blocks += 1;
    }

    /// Finish and usage are told together: some providers tell the usage last.
    fn finish(&mut self, out: &mut Vec<u8>) {
        self.start("", out);
        self.close(out);
        let (finish, stop_sequence) = self.finish.take().unwrap_or((Finish::Stop, None));
        let delta = json!({
            "type": "message_delta",
            "delta": {
                "stop_reason": stop_reason(finish, stop_sequence.is_some()),
                "stop_sequence": stop_sequence,
            },
            "usage": UsageShown::of(&self.usage),
        });
        event("message_delta", &delta, out);
        event("message_stop", &json!({"type": "message_stop"}), out);
    }
}

/// Appends an event.
pub(super) fn event(name: &str, data: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    out.extend(serde_json::to_vec(data).unwrap_or_default());
    out.extend_from_slice(b"\n\n");
}
