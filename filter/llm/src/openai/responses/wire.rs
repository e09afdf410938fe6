//! The events of a stream as they are numbered, and what they have told.

use serde_json::value::{RawValue, to_raw_value};

use super::event::{self, Lifecycle, Step};
use super::shown::{Head, Item, ItemId, Outcome, ResponseShown, answer_name, or_else};
use crate::translate::AnswerTerms;
use crate::usage::Usage;

/// A stream as the client has seen it.
#[derive(Debug)]
pub(super) struct Wire {
    id: String,
    model: String,
    created_at_s: u64,
    has_started: bool,
    /// How items' ids name the answer.
    name: String,
    /// Of the next event.
    sequence_number: u64,
    /// Items that have ended.
    items: Vec<Box<RawValue>>,
}

impl Wire {
    pub(super) fn new(terms: &AnswerTerms<'_>) -> Self {
        Self {
            id: terms.request_id.to_owned(),
            model: terms.model.to_owned(),
            created_at_s: terms.created_at_s,
            has_started: false,
            name: String::new(),
            sequence_number: 0,
            items: Vec::new(),
        }
    }

    pub(super) const fn next_sequence_number(&self) -> u64 {
        self.sequence_number
    }

    /// Tells that the response is being made, once.
    pub(super) fn start(&mut self, id: &str, model: &str, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        self.id = or_else(id, &self.id).to_owned();
        self.model = or_else(model, &self.model).to_owned();
        self.name = answer_name(&self.id);
        for kind in ["response.created", Outcome::InProgress.event()] {
            self.tell_response(kind, Outcome::InProgress, None, out);
        }
    }

    /// The id of the item at hand.
    pub(super) fn item_id(&self, prefix: &'static str) -> ItemId<'_> {
        ItemId {
            prefix,
            answer: &self.name,
            output_index: self.items.len(),
        }
    }

    /// Tells something within the item at hand.
    pub(super) fn tell(&mut self, prefix: &'static str, step: Step<'_>, out: &mut Vec<u8>) {
        let step = Step {
            item_id: Some(self.item_id(prefix)),
            ..step
        };
        self.write(step, out);
        self.sequence_number += 1;
    }

    /// Tells that an item begins.
    pub(super) fn begin_item(&mut self, item: &RawValue, out: &mut Vec<u8>) {
        self.tell_item("response.output_item.added", item, out);
    }

    /// Tells the whole of the item at hand, which ends it.
    pub(super) fn end_item(&mut self, item: Box<RawValue>, out: &mut Vec<u8>) {
        self.tell_item("response.output_item.done", &item, out);
        self.items.push(item);
    }

    fn tell_item(&mut self, kind: &'static str, item: &RawValue, out: &mut Vec<u8>) {
        let step = Step {
            kind,
            item: Some(item),
            ..Step::default()
        };
        self.write(step, out);
        self.sequence_number += 1;
    }

    fn write(&self, step: Step<'_>, out: &mut Vec<u8>) {
        let step = Step {
            sequence_number: self.sequence_number,
            output_index: self.items.len(),
            ..step
        };
        event::write(step.kind, &step, out);
    }

    /// Tells the response with all items that have ended.
    pub(super) fn tell_response(
        &mut self,
        kind: &'static str,
        outcome: Outcome,
        usage: Option<&Usage>,
        out: &mut Vec<u8>,
    ) {
        let head = Head {
            id: &self.id,
            model: &self.model,
            created_at_s: self.created_at_s,
        };
        let event = Lifecycle {
            kind,
            sequence_number: self.sequence_number,
            response: &ResponseShown::new(head, outcome, &self.items, usage),
        };
        event::write(kind, &event, out);
        self.sequence_number += 1;
    }
}

/// An item as JSON, which every item can be said in.
pub(super) fn json(item: &Item<'_>) -> Box<RawValue> {
    to_raw_value(item).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
