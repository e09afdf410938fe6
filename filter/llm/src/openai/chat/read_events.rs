//! Reads the chunks of a provider's stream.

use std::borrow::Cow;

use super::document::{Call, Choice, Content, Document, Said, made_call_id};
use super::thought::{Block, blocks, filled};
use crate::conversation::Event;
use crate::openai::error;
use crate::provider_error::ProviderError;
use crate::request::object::text;
use crate::translate::ReadEvents;

/// A stream as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct ChatEvents {
    id: String,
    has_started: bool,
    has_refusal: bool,
    has_finished: bool,
    /// An error or the end has been told.
    is_over: bool,
    calls: Vec<OpenCall>,
}

/// A call, as pieces of it are known by.
#[derive(Debug)]
struct OpenCall {
    index: Option<u32>,
    id: String,
}

impl ReadEvents for ChatEvents {
    fn read(&mut self, name: &[u8], data: &[u8], hand_on: &mut dyn FnMut(Event<'_>)) {
        let data = data.trim_ascii();
        if self.is_over {
            return;
        }
        if data == b"[DONE]" {
            return self.finish(hand_on);
        }
        let document = Document::parse(data);
        let told = document.as_ref().and_then(Document::error);
        let by_name = || {
            let is_error = name == b"error";
            is_error.then(|| error::parse(data).unwrap_or_else(|| ProviderError::of_text(data)))
        };
        if let Some(error) = told.or_else(by_name) {
            self.is_over = true;
            return hand_on(Event::Error(error));
        }
        if let Some(document) = document {
            self.chunk(&document, hand_on);
        }
    }

    fn finish(&mut self, hand_on: &mut dyn FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.is_over, true) {
            hand_on(Event::End);
        }
    }
}

impl ChatEvents {
    /// A chunk without choice and usage tells nothing: Azure's first one has results of filters
    /// alone, and neither id nor model.
    fn chunk(&mut self, document: &Document<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        let (choice, usage) = (document.first_choice(), document.usage());
        if choice.is_none() && usage.is_none() {
            return;
        }
        if !std::mem::replace(&mut self.has_started, true) {
            let (id, model) = (document.id(), document.model());
            id.as_ref().clone_into(&mut self.id);
            hand_on(Event::Start { id, model });
        }
        if let Some(choice) = choice {
            self.choice(choice, hand_on);
        }
        if let Some(usage) = usage {
            hand_on(Event::Usage(usage));
        }
    }

    fn choice(&mut self, choice: &Choice<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        if let Some(said) = choice.said() {
            self.said(said, hand_on);
        }
        let finish = choice.finish(self.has_refusal, !self.calls.is_empty());
        if let Some(finish) = finish
            && !std::mem::replace(&mut self.has_finished, true)
        {
            hand_on(Event::Finish {
                finish,
                stop_sequence: choice.stop_sequence(),
            });
        }
    }

    fn said(&mut self, said: &Said<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        let blocks = blocks(said.thinking_blocks);
        let in_blocks = || join(blocks.iter().filter_map(Block::text));
        if let Some(text) = said.reasoning().or_else(in_blocks) {
            hand_on(Event::Thinking(text));
        }
        for block in &blocks {
            if let Some(data) = block.data() {
                hand_on(Event::Redacted(data));
            }
            if let Some(signature) = block.signature() {
                hand_on(Event::Signature(signature));
            }
        }
        said.each_content(&mut |content| {
            hand_on(match content {
                Content::Text(text) => Event::Text(text),
                Content::Thinking(text) => Event::Thinking(text),
            });
        });
        if let Some(refusal) = said.refusal() {
            self.has_refusal = true;
            hand_on(Event::Refusal(refusal));
        }
        for call in said.tool_calls.iter().flatten() {
            self.call(call, hand_on);
        }
    }

    fn call(&mut self, piece: &Call<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        let call = match self.open_call(piece) {
            Some(call) => call,
            None => self.start_call(piece, hand_on),
        };
        // Some send the arguments as an object, in one piece.
        let arguments = piece.arguments();
        let is_text = arguments.is_some_and(|value| text(value).is_some());
        let json = match is_text {
            true => filled(arguments),
            false => arguments.map(|value| Cow::Borrowed(value.get())),
        };
        if let Some(json) = json {
            let call = u32::try_from(call).unwrap_or(u32::MAX);
            hand_on(Event::CallArguments { call, json });
        }
    }

    /// The call that a piece belongs to: the last one of its index, or the last one at all where
    /// there are no indices. A new id begins a new call even at an index that is taken, since
    /// Ollama and others have told all calls at index 0.
    fn open_call(&self, piece: &Call<'_>) -> Option<usize> {
        let is_its = |call: &OpenCall| piece.index.is_none() || call.index == piece.index;
        let at = self.calls.iter().rposition(is_its)?;
        let open = self.calls.get(at)?;
        let is_new = piece.id().is_some_and(|id| id != open.id);
        (!is_new).then_some(at)
    }

    fn start_call(&mut self, piece: &Call<'_>, hand_on: &mut dyn FnMut(Event<'_>)) -> usize {
        let call = self.calls.len();
        let id = match piece.id() {
            Some(id) => id.into_owned(),
            None => made_call_id(&self.id, call),
        };
        hand_on(Event::CallStart {
            call: u32::try_from(call).unwrap_or(u32::MAX),
            id: Cow::Borrowed(&id),
            name: piece.name().unwrap_or_default(),
            signature: None,
        });
        let index = piece.index;
        self.calls.push(OpenCall { index, id });
        call
    }
}

/// The texts as one; `None`: there are none.
fn join<'a>(texts: impl Iterator<Item = Cow<'a, str>>) -> Option<Cow<'a, str>> {
    texts.reduce(|all, next| Cow::Owned(all.into_owned() + &next))
}

#[cfg(test)]
mod tests;
