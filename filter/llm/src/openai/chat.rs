//! `POST /v1/chat/completions`: what decides is read, all else stays the bytes it is.
//!
//! That is all for a provider of the same API. Towards another one, requests and answers are read
//! and printed by [`read_request()`], [`print_request()`], [`read_answer()`], [`print_answer()`],
//! [`ChatEvents`] and [`ChatChunks`]. How thinking gets to clients and back says `thought`.

mod document;
mod edits;
mod print_answer;
mod print_content;
mod print_events;
mod print_messages;
mod print_request;
mod prompt;
mod read_answer;
pub(super) mod read_content;
mod read_events;
mod read_messages;
mod read_request;
pub(super) mod read_tools;
pub(crate) mod thought;

pub(crate) use print_answer::print_answer;
pub(crate) use print_events::ChatChunks;
pub(crate) use print_request::print_request;
pub(crate) use read_answer::read_answer;
pub(crate) use read_events::ChatEvents;
pub(crate) use read_request::read_request;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::openai::stream_options::StreamOptions;
use crate::request::{Needs, Request, RequestFault, convert, members, present};

/// Reads a request.
pub(crate) fn parse(body: &[u8]) -> Result<Request<'_>, RequestFault> {
    members::<Members<'_>>(body)?.into_request(body)
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

impl<'a> Members<'a> {
    fn into_request(self, body: &'a [u8]) -> Result<Request<'a>, RequestFault> {
        let stream_options = StreamOptions::read(self.stream_options)?;
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
            max_output_tokens: {
                let max_tokens = convert::count(self.max_tokens, "max_tokens")?;
                // Providers keep to one or the other.
                convert::count(self.max_completion_tokens, "max_completion_tokens")?.max(max_tokens)
            },
            choices: convert::choices(self.n)?,
            reasoning_effort: convert::text(self.reasoning_effort, "reasoning_effort")?,
            metadata: convert::metadata(self.metadata)?,
            user: convert::text(self.user, "user")?,
            needs,
            body_bytes: body.len() as u64,
            text_bytes,
            edits: edits::points(
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

#[cfg(test)]
mod round_trip;
