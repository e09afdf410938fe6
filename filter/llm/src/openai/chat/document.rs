//! One document of a provider's answer, as it is read for another API: a whole completion, or a
//! chunk. What may be of several kinds, or wrong, stays raw, so that it spoils nothing else.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read_content::thought;
use super::thought::{filled, reasoning};
use crate::conversation::Finish;
use crate::openai::{answer, error, reported};
use crate::provider_error::ProviderError;
use crate::reading;
use crate::request::object::{Place, objects};
use crate::usage::Usage;

#[derive(Deserialize)]
pub(super) struct Document<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    /// Null in place of an empty array, at some providers.
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    x_groq: Option<Groq<'a>>,
}

/// Where Groq puts what the others have outermost.
#[derive(Deserialize)]
struct Groq<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    index: Option<u32>,
    /// A whole answer's.
    #[serde(borrow, default)]
    message: Option<Said<'a>>,
    /// A chunk's.
    #[serde(borrow, default)]
    delta: Option<Said<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
    /// vLLM's: the stop sequence that was met, or a token's number.
    #[serde(borrow, default)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// What the assistant says, or a piece of it.
#[derive(Deserialize)]
pub(super) struct Said<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) thinking_blocks: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
}

/// A tool's call, or a piece of it.
#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(default)]
    pub(super) index: Option<u32>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// A piece of content.
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    /// Mistral's reasoning stands among the parts of the content.
    Thinking(Cow<'a, str>),
}

impl<'a> Document<'a> {
    /// `None`: it is no JSON object, or has a member of a kind that can't be worked around.
    pub(super) fn parse(document: &'a [u8]) -> Option<Self> {
        let is_object = document.trim_ascii_start().starts_with(b"{");
        is_object.then(|| serde_json::from_slice(document).ok())?
    }

    pub(super) fn id(&self) -> Cow<'a, str> {
        filled(self.id).unwrap_or_default()
    }

    pub(super) fn model(&self) -> Cow<'a, str> {
        filled(self.model).unwrap_or_default()
    }

    /// One choice is all that is asked for when requests are translated.
    pub(super) fn first_choice(&self) -> Option<&Choice<'a>> {
        let choices = self.choices.as_ref()?;
        let is_first = |choice: &&Choice<'a>| choice.index.unwrap_or_default() == 0;
        choices.iter().find(is_first)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        let of_groq = self.x_groq.as_ref().and_then(|groq| groq.usage);
        let of_choice = self.first_choice().and_then(|choice| choice.usage);
        let places = [self.usage, of_groq, of_choice];
        places.into_iter().flatten().find_map(reported::read)
    }

    pub(super) fn error(&self) -> Option<ProviderError> {
        let of_groq = self.x_groq.as_ref().and_then(|groq| groq.error);
        let of_choice = self.first_choice().and_then(|choice| choice.error);
        let places = [self.error, of_groq, of_choice];
        places.into_iter().flatten().find_map(error::parse_member)
    }
}

impl<'a> Choice<'a> {
    pub(super) fn said(&self) -> Option<&Said<'a>> {
        self.message.as_ref().or(self.delta.as_ref())
    }

    pub(super) fn stop_sequence(&self) -> Option<Cow<'a, str>> {
        filled(self.stop_reason)
    }

    /// Why it ended, if it has. Refusals and, at some providers, calls end as a plain stop.
    pub(super) fn finish(&self, has_refusal: bool, has_calls: bool) -> Option<Finish> {
        let word = filled(self.finish_reason)?;
        Some(match answer::finish(word.as_bytes()) {
            reading::Finish::Stop | reading::Finish::Other if has_calls => Finish::ToolCalls,
            reading::Finish::Stop | reading::Finish::Other if has_refusal => Finish::Refusal,
            reading::Finish::Stop | reading::Finish::Other => Finish::Stop,
            reading::Finish::Length => Finish::Length,
            reading::Finish::ToolCalls => Finish::ToolCalls,
            reading::Finish::ContentFilter => Finish::ContentFilter,
            reading::Finish::Error => Finish::Error,
        })
    }
}

impl<'a> Said<'a> {
    pub(super) fn reasoning(&self) -> Option<Cow<'a, str>> {
        reasoning(self.reasoning_content, self.reasoning)
    }

    pub(super) fn refusal(&self) -> Option<Cow<'a, str>> {
        filled(self.refusal)
    }

    /// Hands on the content that is there, piece by piece.
    pub(super) fn each_content(&self, hand_on: &mut dyn FnMut(Content<'a>)) {
        let Some(content) = self.content else { return };
        if !content.get().starts_with('[') {
            if let Some(text) = filled(Some(content)) {
                hand_on(Content::Text(text));
            }
            return;
        }
        for part in objects(content).unwrap_or_default() {
            let mut part = part.at(&Place::Body);
            let mut member = |name| part.take(name).ok().flatten();
            if let Some(text) = filled(member("text")) {
                hand_on(Content::Text(text));
            } else if let Some(text) = thought(member("thinking")) {
                hand_on(Content::Thinking(text));
            }
        }
    }
}

impl<'a> Call<'a> {
    pub(super) fn id(&self) -> Option<Cow<'a, str>> {
        filled(self.id)
    }

    pub(super) fn name(&self) -> Option<Cow<'a, str>> {
        filled(self.function.as_ref()?.name)
    }

    pub(super) fn arguments(&self) -> Option<&'a RawValue> {
        self.function.as_ref()?.arguments
    }
}

/// An id for a call that came without: the same for the same answer, and another in another one.
pub(super) fn made_call_id(answer_id: &str, call: usize) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric();
    let answer: String = answer_id.chars().filter(is_plain).collect();
    format!("call_{answer}_{call}")
}
