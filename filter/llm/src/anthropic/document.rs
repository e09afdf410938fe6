//! A message, or an event's data, as a provider tells it. What may be wrong stays raw, so that it
//! spoils nothing else.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::conversation::Finish;

/// A text. It is borrowed where it has no escapes, which an `Option<Cow<str>>` never is.
#[derive(Deserialize)]
pub(crate) struct Said<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Said<'a> {
    pub(crate) fn text(self) -> Cow<'a, str> {
        let Self(text) = self;
        text
    }

    /// A text that is not empty.
    pub(crate) fn filled(said: Option<Self>) -> Option<Cow<'a, str>> {
        said.map(Self::text).filter(|text| !text.is_empty())
    }
}

/// A message, in an answer of its own or at a stream's start.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) model: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) content: Vec<Block<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<&'a str>,
    #[serde(borrow, default)]
    pub(super) stop_sequence: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// A block of content, whole or as it begins.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: &'a str,
    #[serde(borrow, default)]
    pub(super) text: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) data: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) id: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

/// The data of an event: `kind` says which members there are.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: &'a str,
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
    #[serde(default)]
    pub(super) index: u32,
    #[serde(borrow, default)]
    pub(super) content_block: Option<Block<'a>>,
    #[serde(borrow, default)]
    pub(super) delta: Delta<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// What is new of a block, or of the message.
#[derive(Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) partial_json: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<&'a str>,
    #[serde(borrow, default)]
    pub(super) stop_sequence: Option<Said<'a>>,
}

/// What a `stop_reason` means.
pub(super) fn finish(word: &str) -> Finish {
    match word {
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "tool_use" => Finish::ToolCalls,
        "refusal" => Finish::Refusal,
        // `end_turn`, `stop_sequence`, `pause_turn`.
        _ => Finish::Stop,
    }
}
