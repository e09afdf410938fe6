//! Reads a client's request whole, to be put into another API's form.
//!
//! What leads to something that OpenAI keeps is a fault that names the member, since without it
//! the conversation is another one: `previous_response_id`, `conversation`, `prompt`, items
//! `item_reference`. `metadata` holds labels for the gateway and does not count as left out, and
//! nor does what asks for what happens anyway: `store` false, encrypted reasoning in `include`,
//! `truncation` disabled, ids and states of items.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{read_input, read_tools};
use crate::conversation::{Effort, Format, Reasoning, Request, Schema};
use crate::request::object::{Members, Object, Place, text};
use crate::request::{PathFacts, RequestFault, members};

/// Reads a request. `path` says nothing in this API.
pub(crate) fn read_request<'a>(
    _path: PathFacts<'a>,
    body: &'a [u8],
) -> Result<Request<'a>, RequestFault> {
    let mut body = members::<Members<'a>>(body)?.at(&Place::Body);
    let mut left_out = Vec::new();
    refuse_state(&mut body)?;
    drop_defaults(&mut body);
    read_include(&mut body, &mut left_out)?;
    read_stream_options(&mut body, &mut left_out)?;
    let transcript = read_input::read(&mut body, &mut left_out)?;
    let mut tools = read_tools::tools(&mut body, &mut left_out)?;
    let tool_choice = read_tools::choice(&mut body, &mut tools, &mut left_out)?;
    let format = read_text(&mut body, &mut left_out)?;
    let reasoning = read_reasoning(&mut body, &mut left_out)?;
    let safety_identifier = body.take_text("safety_identifier")?;
    body.take("metadata")?;
    let mut request = Request {
        model: body
            .take_text("model")?
            .ok_or_else(|| body.missing("model"))?,
        stream: body.take_flag("stream")?.unwrap_or(false),
        system: transcript.system,
        messages: transcript.messages,
        tools,
        tool_choice,
        parallel_tool_calls: body.take_flag("parallel_tool_calls")?,
        max_output_tokens: body.take_count("max_output_tokens")?,
        temperature: body.take_number("temperature")?,
        top_p: body.take_number("top_p")?,
        format,
        reasoning,
        user: body.take_text("user")?.or(safety_identifier),
        ..Request::default()
    };
    body.leave(&mut left_out);
    request.left_out = left_out;
    Ok(request)
}

/// A fault of what is kept elsewhere.
pub(super) fn kept_elsewhere(place: &Place<'_>) -> RequestFault {
    let wanted = "left out for this model, whose provider keeps no responses: \
                  everything has to be in `input`";
    let mut fault = place.fault(wanted);
    fault.code = Some("unsupported_parameter");
    fault
}

fn refuse_state(body: &mut Object<'_, '_>) -> Result<(), RequestFault> {
    for name in ["previous_response_id", "conversation", "prompt"] {
        if body.take(name)?.is_some() {
            return Err(kept_elsewhere(&body.member(name)));
        }
    }
    Ok(())
}

/// Takes members that ask for what happens anyway.
fn drop_defaults(body: &mut Object<'_, '_>) {
    let defaults = [
        ("background", "false"),
        ("store", "false"),
        ("truncation", r#""disabled""#),
        ("service_tier", r#""auto""#),
        ("top_logprobs", "0"),
    ];
    for (name, default) in defaults {
        body.take_if(name, |value| value.get() == default);
    }
}

/// Encrypted reasoning is always in the answer, where there is any.
fn read_include<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<(), RequestFault> {
    let place = body.member("include");
    let wanted = "an array of strings";
    let included = body.take_as("include", wanted, |value| {
        let several: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
        several.into_iter().map(text).collect::<Option<Vec<_>>>()
    })?;
    for (index, wanted) in included.into_iter().flatten().enumerate() {
        if wanted != "reasoning.encrypted_content" {
            let place = Place::Element(&place, index);
            left_out.push(format!("{place} ({wanted})").into());
        }
    }
    Ok(())
}

/// Nothing is obfuscated.
fn read_stream_options<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<(), RequestFault> {
    let place = body.member("stream_options");
    let Some(options) = body.take("stream_options")? else {
        return Ok(());
    };
    let mut options = Object::read(options, &place)?;
    options.take_if("include_obfuscation", |value| value.get() == "false");
    options.leave(left_out);
    Ok(())
}

fn read_reasoning<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Option<Reasoning>, RequestFault> {
    let place = body.member("reasoning");
    let Some(reasoning) = body.take("reasoning")? else {
        return Ok(None);
    };
    let mut reasoning = Object::read(reasoning, &place)?;
    let word = reasoning.take_text("effort")?;
    let effort = word.as_deref().and_then(Effort::of);
    if let (Some(word), None) = (word, effort) {
        left_out.push(format!("reasoning.effort ({word})").into());
    }
    // What the summary was called before.
    let older = reasoning.take("generate_summary")?;
    // How long it is, is the provider's to say.
    let summary = reasoning.take("summary")?.or(older);
    reasoning.leave(left_out);
    let is_shown = summary.map(|_| true);
    let is_said = effort.is_some() || is_shown.is_some();
    Ok(is_said.then_some(Reasoning {
        effort,
        budget_tokens: None,
        is_shown,
    }))
}

fn read_text<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Format<'a>, RequestFault> {
    let place = body.member("text");
    let Some(text) = body.take("text")? else {
        return Ok(Format::Text);
    };
    let mut text = Object::read(text, &place)?;
    text.take_if("verbosity", |value| value.get() == r#""medium""#);
    let place = text.member("format");
    let format = match text.take("format")? {
        Some(format) => read_format(Object::read(format, &place)?, left_out)?,
        None => Format::Text,
    };
    text.leave(left_out);
    Ok(format)
}

fn read_format<'a>(
    mut format: Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Format<'a>, RequestFault> {
    let read = match format.take_text("type")?.as_deref() {
        Some("text") => Format::Text,
        Some("json_object") => Format::Json,
        Some("json_schema") => {
            let schema = format.take("schema")?;
            Format::Schema(Schema {
                name: format.take_text("name")?.unwrap_or_default(),
                description: format.take_text("description")?,
                schema: Cow::Borrowed(schema.ok_or_else(|| format.missing("schema"))?),
                strict: format.take_flag("strict")?,
            })
        }
        _ => {
            let wanted = "`text`, `json_object` or `json_schema`";
            return Err(format.member("type").fault(wanted));
        }
    };
    format.leave(left_out);
    Ok(read)
}

#[cfg(test)]
mod tests;
