//! A client's request, read as far as it decides: what every client API has in common.
//!
//! Each API has a reader of its own beside its other parts, such as [`crate::openai::chat`]. What
//! is not read stays the bytes it is; where a target of the same dialect needs other bytes,
//! [`EditPoints`] say where.

pub(crate) mod convert;
mod edits;
mod fault;
pub(crate) mod object;
mod service_tier;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub use edits::EditPoints;
pub(crate) use edits::{Edit, MAX_COMPLETION_TOKENS, MissingOutput, OutputPoints, Span};
pub use fault::RequestFault;
pub use service_tier::pinned_tier;

use crate::api::Api;

/// A request, read.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Never empty.
    pub model: Cow<'a, str>,
    pub stream: bool,
    /// The client wants a stream's usage itself; true for APIs that always tell it.
    pub asks_usage: bool,
    /// The most tokens that one choice may have, if the client bounds them.
    pub max_output_tokens: Option<u64>,
    /// At least 1.
    pub choices: u64,
    pub reasoning_effort: Option<Cow<'a, str>>,
    /// Labels that are strings, in their order, no key twice.
    pub metadata: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub user: Option<Cow<'a, str>>,
    pub needs: Needs,
    /// Length of the body in bytes.
    pub body_bytes: u64,
    /// Bytes of text in messages and tools, escapes resolved; media and structure not counted.
    pub text_bytes: u64,
    /// Where the body is edited; outlives it.
    pub edits: EditPoints,
}

/// What a request's path says in place of its body, as Gemini's does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathFacts<'a> {
    pub model: Option<&'a str>,
    pub stream: bool,
}

/// What a model must be able to do to answer a request.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Needs {
    pub tools: bool,
    pub image_input: bool,
    pub audio_input: bool,
    pub file_input: bool,
    /// An answer by a JSON schema is asked for.
    pub json_schema: bool,
}

impl<'a> Request<'a> {
    /// Reads a body, which must be one JSON object in UTF-8 with no known member twice.
    pub fn parse(api: Api, path: PathFacts<'a>, body: &'a [u8]) -> Result<Self, RequestFault> {
        match api {
            Api::ChatCompletions => crate::openai::chat::parse(body),
            Api::Completions => crate::openai::completions::parse(body),
            Api::Embeddings => crate::openai::embeddings::parse(body),
            Api::Responses => crate::openai::responses::parse(body),
            Api::GenerateContent => crate::gemini::parse(path, body),
            Api::Messages => crate::anthropic::parse(body),
            Api::CountTokens => crate::anthropic::count_tokens::parse(body),
            _ => Err(RequestFault::not_an_object()),
        }
    }

    /// A member of `metadata`.
    pub fn metadata_value(&self, key: &str) -> Option<&str> {
        let member = self.metadata.iter().find(|(name, _)| name == key);
        member.map(|(_, value)| value.as_ref())
    }

    /// The label that usage is grouped by: `metadata.action_id`.
    pub fn action_id(&self) -> Option<&str> {
        self.metadata_value("action_id")
    }
}

/// Reads the outermost members of a body. `M`: its members as raw values, each by [`present`].
pub(crate) fn members<'a, M: Deserialize<'a>>(body: &'a [u8]) -> Result<M, RequestFault> {
    let text = std::str::from_utf8(body).map_err(|_| RequestFault::not_utf8())?;
    // An array would be taken for the members in their order.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(RequestFault::not_an_object());
    }
    serde_json::from_str(text).map_err(|error| RequestFault::unreadable(&error))
}

/// Takes a member as it stands; null is a value, and a member that is there twice is an error.
pub(crate) fn present<'de: 'a, 'a, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(from).map(Some)
}
