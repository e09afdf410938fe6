//! The item of a stream's output that is open: it takes what is told of it, and tells it on. What
//! has been told is kept, since the events that end a part or an item repeat it.

use super::event::{Piece, Step};
use super::shown::{Content, Item, Outcome, Summary};
use super::thought::Sealed;
use super::wire::{Wire, json};
use crate::openai::chat::thought::SignedId;

#[derive(Debug)]
pub(super) enum OpenItem {
    Message(Message),
    Reasoning(Reasoning),
    Call(Call),
}

#[derive(Debug, Default)]
pub(super) struct Message {
    /// The last one is open.
    parts: Vec<Said>,
}

#[derive(Debug)]
struct Said {
    is_refusal: bool,
    text: String,
}

#[derive(Debug, Default)]
pub(super) struct Reasoning {
    text: String,
    sealed: Option<Sealed<'static>>,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) signature: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl OpenItem {
    pub(super) fn begin(&self, wire: &mut Wire, out: &mut Vec<u8>) {
        let item = json(&self.item(wire, Outcome::InProgress));
        wire.begin_item(&item, out);
    }

    /// `outcome`: of the response, if this is its last item.
    pub(super) fn end(mut self, outcome: Outcome, wire: &mut Wire, out: &mut Vec<u8>) {
        match &mut self {
            Self::Message(message) => message.end_part(wire, out),
            Self::Reasoning(reasoning) => reasoning.end_summary(wire, out),
            Self::Call(call) => call.end_arguments(outcome, wire, out),
        }
        let item = json(&self.item(wire, outcome));
        wire.end_item(item, out);
    }

    fn item<'a>(&'a self, wire: &'a Wire, outcome: Outcome) -> Item<'a> {
        match self {
            Self::Message(message) => Item::Message {
                id: wire.item_id(Item::MESSAGE),
                status: outcome.item_status(),
                role: "assistant",
                content: message.parts.iter().map(Said::content).collect(),
            },
            Self::Reasoning(reasoning) => Item::Reasoning {
                id: wire.item_id(Item::REASONING),
                summary: Summary::of(&reasoning.text),
                encrypted_content: reasoning.sealed.clone(),
            },
            Self::Call(call) => Item::FunctionCall {
                id: wire.item_id(Item::CALL),
                status: outcome.item_status(),
                call_id: SignedId {
                    id: &call.id,
                    signature: call.signature.as_deref(),
                },
                name: &call.name,
                arguments: &call.arguments,
            },
        }
    }
}

impl Message {
    pub(super) fn say(&mut self, text: &str, is_refusal: bool, wire: &mut Wire, out: &mut Vec<u8>) {
        let last = self.parts.last();
        if last.is_none_or(|last| last.is_refusal != is_refusal) {
            self.end_part(wire, out);
            self.parts.push(Said {
                is_refusal,
                text: String::new(),
            });
            self.tell_part("response.content_part.added", wire, out);
        }
        let delta = Step {
            kind: if is_refusal {
                "response.refusal.delta"
            } else {
                "response.output_text.delta"
            },
            content_index: Some(self.parts.len().saturating_sub(1)),
            delta: Some(text),
            logprobs: (!is_refusal).then_some([]),
            ..Step::default()
        };
        wire.tell(Item::MESSAGE, delta, out);
        if let Some(last) = self.parts.last_mut() {
            last.text.push_str(text);
        }
    }

    fn end_part(&self, wire: &mut Wire, out: &mut Vec<u8>) {
        let Some(Said { is_refusal, text }) = self.parts.last() else {
            return;
        };
        let content_index = Some(self.parts.len().saturating_sub(1));
        let done = if *is_refusal {
            Step {
                kind: "response.refusal.done",
                content_index,
                refusal: Some(text),
                ..Step::default()
            }
        } else {
            Step {
                kind: "response.output_text.done",
                content_index,
                text: Some(text),
                logprobs: Some([]),
                ..Step::default()
            }
        };
        wire.tell(Item::MESSAGE, done, out);
        self.tell_part("response.content_part.done", wire, out);
    }

    fn tell_part(&self, kind: &'static str, wire: &mut Wire, out: &mut Vec<u8>) {
        let step = Step {
            kind,
            content_index: Some(self.parts.len().saturating_sub(1)),
            part: self.parts.last().map(Said::content).map(Piece::Content),
            ..Step::default()
        };
        wire.tell(Item::MESSAGE, step, out);
    }
}

impl Said {
    fn content(&self) -> Content<'_> {
        if self.is_refusal {
            Content::Refusal {
                refusal: &self.text,
            }
        } else {
            Content::text(&self.text)
        }
    }
}

impl Reasoning {
    pub(super) fn think(&mut self, text: &str, wire: &mut Wire, out: &mut Vec<u8>) {
        if self.text.is_empty() {
            self.tell_summary("response.reasoning_summary_part.added", wire, out);
        }
        let delta = Step {
            kind: "response.reasoning_summary_text.delta",
            summary_index: Some(0),
            delta: Some(text),
            ..Step::default()
        };
        wire.tell(Item::REASONING, delta, out);
        self.text.push_str(text);
    }

    pub(super) fn seal(&mut self, sealed: Sealed<'static>) {
        self.sealed = Some(sealed);
    }

    fn end_summary(&self, wire: &mut Wire, out: &mut Vec<u8>) {
        if self.text.is_empty() {
            return;
        }
        let done = Step {
            kind: "response.reasoning_summary_text.done",
            summary_index: Some(0),
            text: Some(&self.text),
            ..Step::default()
        };
        wire.tell(Item::REASONING, done, out);
        self.tell_summary("response.reasoning_summary_part.done", wire, out);
    }

    fn tell_summary(&self, kind: &'static str, wire: &mut Wire, out: &mut Vec<u8>) {
        let summary = Summary::SummaryText { text: &self.text };
        let step = Step {
            kind,
            summary_index: Some(0),
            part: Some(Piece::Summary(summary)),
            ..Step::default()
        };
        wire.tell(Item::REASONING, step, out);
    }
}

impl Call {
    pub(super) fn add_arguments(&mut self, json: &str, wire: &mut Wire, out: &mut Vec<u8>) {
        let delta = Step {
            kind: "response.function_call_arguments.delta",
            delta: Some(json),
            ..Step::default()
        };
        wire.tell(Item::CALL, delta, out);
        self.arguments.push_str(json);
    }

    /// Clients parse the arguments, also where there are none.
    fn end_arguments(&mut self, outcome: Outcome, wire: &mut Wire, out: &mut Vec<u8>) {
        if self.arguments.is_empty() && outcome == Outcome::Completed {
            self.add_arguments("{}", wire, out);
        }
        let done = Step {
            kind: "response.function_call_arguments.done",
            name: Some(&self.name),
            arguments: Some(&self.arguments),
            ..Step::default()
        };
        wire.tell(Item::CALL, done, out);
    }
}
