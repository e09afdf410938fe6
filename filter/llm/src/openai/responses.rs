//! `POST /v1/responses`, as far as it keeps no state: what decides is read, all else stays the
//! bytes it is.
//!
//! That is all for a provider that serves it. Towards another API requests are read by
//! [`read_request()`], and answers are printed by [`print_answer()`] and [`ResponseEvents`]. What
//! leads to something kept at OpenAI passes to a provider that serves this API, and is a fault
//! towards any other: see `read_request`. How thinking gets to clients and back says `thought`.

pub(crate) mod answer;
pub(crate) mod closing;
pub(crate) mod error;
mod event;
mod name;
mod open_item;
mod print_answer;
mod print_events;
mod prompt;
mod read_content;
mod read_input;
mod read_request;
mod read_tools;
mod shown;
mod thought;
mod wire;

pub(crate) use print_answer::print_answer;
pub(crate) use print_events::ResponseEvents;
pub(crate) use read_request::read_request;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::request::object::{Object, Place};
use crate::request::{
    EditPoints, MissingOutput, Needs, OutputPoints, Request, RequestFault, Span, convert, members,
    present,
};

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
    background: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    max_output_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    text: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    user: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    safety_identifier: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    instructions: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    input: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tools: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn into_request(self, body: &'a [u8]) -> Result<Request<'a>, RequestFault> {
        let model = self.model.ok_or_else(RequestFault::no_model)?;
        // What is made after the answer has ended is never told to us, so it can't be counted.
        if convert::boolean(self.background, "background")?.unwrap_or(false) {
            let wanted = "false: what is made in the background can't be metered";
            return Err(RequestFault::wrong_value("background", wanted));
        }
        let mut needs = Needs {
            tools: self.tools.is_some_and(prompt::has_elements),
            json_schema: format_type(self.text)?.is_some_and(|kind| kind == "json_schema"),
            ..Needs::default()
        };
        let prompt = [
            (self.instructions, prompt::Part::Input),
            (self.input, prompt::Part::Input),
            (self.tools, prompt::Part::Tools),
        ];
        let text_bytes = prompt
            .into_iter()
            .filter_map(|(member, part)| Some(prompt::read(member?, part, &mut needs)))
            .sum();
        let user = convert::text(self.user, "user")?;
        let safety_identifier = convert::text(self.safety_identifier, "safety_identifier")?;
        Ok(Request {
            model: convert::model(model)?,
            stream: convert::boolean(self.stream, "stream")?.unwrap_or(false),
            asks_usage: true,
            max_output_tokens: convert::count(self.max_output_tokens, "max_output_tokens")?,
            choices: 1,
            reasoning_effort: effort(self.reasoning)?,
            metadata: convert::metadata(self.metadata)?,
            user: user.or(safety_identifier),
            needs,
            body_bytes: body.len() as u64,
            text_bytes,
            edits: edits(body, model, self.max_output_tokens),
        })
    }
}

fn effort(reasoning: Option<&RawValue>) -> Result<Option<Cow<'_, str>>, RequestFault> {
    let Some(reasoning) = convert::set(reasoning) else {
        return Ok(None);
    };
    let place = Place::Member(&Place::Body, "reasoning");
    Object::read(reasoning, &place)?.take_text("effort")
}

/// The `type` of `text.format`.
fn format_type(text: Option<&RawValue>) -> Result<Option<Cow<'_, str>>, RequestFault> {
    let Some(text) = convert::set(text) else {
        return Ok(None);
    };
    let place = Place::Member(&Place::Body, "text");
    let Some(format) = Object::read(text, &place)?.take("format")? else {
        return Ok(None);
    };
    Object::read(format, &Place::Member(&place, "format"))?.take_text("type")
}

fn edits(body: &[u8], model: &RawValue, max_output_tokens: Option<&RawValue>) -> EditPoints {
    EditPoints {
        model: Some(Span::of(body, model)),
        usage: None,
        output: OutputPoints {
            said: [max_output_tokens.map(|member| Span::of(body, member)), None],
            missing: Some(MissingOutput {
                at: Span::first_member(body).start,
                before: r#""max_output_tokens":"#,
                after: ",",
            }),
            completion_name: None,
        },
        vertex: None,
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod round_trip;
