//! `POST /v1/chat/completions`: what decides is read, all else stays the bytes it is.

mod convert;
mod edits;
mod fault;
mod prompt;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub use edits::EditPoints;
pub use fault::RequestFault;
pub use prompt::Needs;

/// A request, read.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Never empty.
    pub model: Cow<'a, str>,
    pub stream: bool,
    /// `stream_options.include_usage` is true: the client wants the usage itself.
    pub asks_usage: bool,
    pub max_tokens: Option<u64>,
    pub max_completion_tokens: Option<u64>,
    /// `n`, at least 1.
    pub choices: u64,
    pub reasoning_effort: Option<Cow<'a, str>>,
    /// The members of `metadata` that are strings, in their order, no key twice.
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

impl<'a> Request<'a> {
    /// Reads a body, which must be one JSON object in UTF-8 with no known member twice.
    pub fn parse(body: &'a [u8]) -> Result<Self, RequestFault> {
        let text = std::str::from_utf8(body).map_err(|_| RequestFault::not_utf8())?;
        // An array would be taken for the members in their order.
        if !text.trim_ascii_start().starts_with('{') {
            return Err(RequestFault::not_an_object());
        }
        let members: Members<'a> =
            serde_json::from_str(text).map_err(|error| RequestFault::unreadable(&error))?;
        members.into_request(body)
    }

    /// The most tokens that one choice may have, if the client bounds them.
    pub fn max_output_tokens(&self) -> Option<u64> {
        self.max_completion_tokens.or(self.max_tokens)
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

/// The members that decide. `None`: missing; null is a value.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    stream: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    stream_options: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    max_completion_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    n: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    reasoning_effort: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    user: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    messages: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tools: Option<&'a RawValue>,
    /// What tools were called before.
    #[serde(borrow, default, deserialize_with = "present")]
    functions: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    response_format: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(from).map(Some)
}

impl<'a> Members<'a> {
    fn into_request(self, body: &'a [u8]) -> Result<Request<'a>, RequestFault> {
        let stream_options = edits::StreamOptions::read(self.stream_options)?;
        let model_member = self.model.ok_or_else(RequestFault::no_model)?;
        let mut needs = Needs {
            tools: [self.tools, self.functions]
                .into_iter()
                .flatten()
                .any(prompt::has_elements),
            json_schema: self.response_format.is_some_and(prompt::is_json_schema),
            ..Needs::default()
        };
        let text_bytes = [self.messages, self.tools, self.functions]
            .into_iter()
            .zip([
                prompt::Part::Messages,
                prompt::Part::Tools,
                prompt::Part::Tools,
            ])
            .filter_map(|(member, part)| Some(prompt::read(member?, part, &mut needs)))
            .sum();
        Ok(Request {
            model: convert::model(model_member)?,
            stream: convert::boolean(self.stream, "stream")?.unwrap_or(false),
            asks_usage: stream_options.asks_usage(),
            max_tokens: convert::count(self.max_tokens, "max_tokens")?,
            max_completion_tokens: convert::count(
                self.max_completion_tokens,
                "max_completion_tokens",
            )?,
            choices: convert::choices(self.n)?,
            reasoning_effort: convert::text(self.reasoning_effort, "reasoning_effort")?,
            metadata: convert::metadata(self.metadata)?,
            user: convert::text(self.user, "user")?,
            needs,
            body_bytes: body.len() as u64,
            text_bytes,
            edits: EditPoints::new(
                body,
                model_member,
                &stream_options,
                edits::OutputMembers {
                    max_tokens: self.max_tokens,
                    max_completion_tokens: self.max_completion_tokens,
                },
            ),
        })
    }
}

#[cfg(test)]
mod tests;
