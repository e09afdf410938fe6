//! Reads a client's request whole, to be put into another API's form.
//!
//! `metadata` holds labels for the gateway and `stream_options.include_usage` is the gateway's to
//! do: neither counts as left out.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{read_messages, read_tools};
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
    let choices = body.take_count("n")?;
    if choices.is_some_and(|choices| choices != 1) {
        return Err(body.member("n").fault("1 for this model"));
    }
    read_stream_options(&mut body, &mut left_out)?;
    let transcript = read_messages::read(&mut body, &mut left_out)?;
    let tools = read_tools::tools(&mut body, &mut left_out)?;
    let tool_choice = read_tools::choice(&mut body, &mut left_out)?;
    let max_completion_tokens = body.take_count("max_completion_tokens")?;
    let max_tokens = body.take_count("max_tokens")?;
    let safety_identifier = body.take_text("safety_identifier")?;
    let format = read_format(&mut body, &mut left_out)?;
    let reasoning = read_reasoning(&mut body, &mut left_out)?;
    body.take("metadata")?;
    drop_defaults(&mut body);
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
        max_output_tokens: max_completion_tokens.or(max_tokens),
        temperature: body.take_number("temperature")?,
        top_p: body.take_number("top_p")?,
        // Not OpenAI's, but many servers of its API take it, and so do other APIs.
        top_k: body.take_count("top_k")?,
        presence_penalty: body.take_number("presence_penalty")?,
        frequency_penalty: body.take_number("frequency_penalty")?,
        seed: body.take_integer("seed")?,
        stop: read_stop(&mut body)?,
        format,
        reasoning,
        user: body.take_text("user")?.or(safety_identifier),
        left_out: Vec::new(),
    };
    body.leave(&mut left_out);
    request.left_out = left_out;
    Ok(request)
}

fn read_stream_options<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<(), RequestFault> {
    let place = body.member("stream_options");
    let Some(options) = body.take("stream_options")? else {
        return Ok(());
    };
    let mut options = Object::read(options, &place)?;
    options.take_flag("include_usage")?;
    options.leave(left_out);
    Ok(())
}

/// Takes members that ask for what happens anyway.
fn drop_defaults(body: &mut Object<'_, '_>) {
    let defaults = [
        ("logprobs", "false"),
        ("store", "false"),
        ("modalities", r#"["text"]"#),
        ("service_tier", r#""auto""#),
    ];
    for (name, default) in defaults {
        body.take_if(name, |value| value.get() == default);
    }
}

fn read_stop<'a>(body: &mut Object<'a, '_>) -> Result<Vec<Cow<'a, str>>, RequestFault> {
    let wanted = "a string or an array of strings";
    let stop = body.take_as("stop", wanted, |value| {
        if let Some(stop) = text(value) {
            return Some(vec![stop]);
        }
        let several: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
        several.into_iter().map(text).collect()
    })?;
    Ok(stop.unwrap_or_default())
}

fn read_reasoning<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Option<Reasoning>, RequestFault> {
    let Some(word) = body.take_text("reasoning_effort")? else {
        return Ok(None);
    };
    let effort = Effort::of(&word);
    if effort.is_none() {
        left_out.push(format!("reasoning_effort ({word})").into());
        return Ok(None);
    }
    Ok(Some(Reasoning {
        effort,
        ..Reasoning::default()
    }))
}

fn read_format<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Format<'a>, RequestFault> {
    let place = body.member("response_format");
    let Some(format) = body.take("response_format")? else {
        return Ok(Format::Text);
    };
    let mut format = Object::read(format, &place)?;
    match format.take_text("type")?.as_deref() {
        Some("text") => Ok(Format::Text),
        Some("json_object") => Ok(Format::Json),
        Some("json_schema") => {
            let place = format.member("json_schema");
            let schema = format.take("json_schema")?;
            let schema = schema.ok_or_else(|| place.fault("there"))?;
            let read = read_schema(Object::read(schema, &place)?, left_out)?;
            format.leave(left_out);
            Ok(read)
        }
        _ => Err(format
            .member("type")
            .fault("`text`, `json_object` or `json_schema`")),
    }
}

/// A format without its schema is any JSON.
fn read_schema<'a>(
    mut format: Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Format<'a>, RequestFault> {
    let Some(schema) = format.take("schema")? else {
        return Ok(Format::Json);
    };
    let schema = Schema {
        name: format.take_text("name")?.unwrap_or_default(),
        description: format.take_text("description")?,
        schema: Cow::Borrowed(schema),
        strict: format.take_flag("strict")?,
    };
    format.leave(left_out);
    Ok(Format::Schema(schema))
}

#[cfg(test)]
mod tests;
