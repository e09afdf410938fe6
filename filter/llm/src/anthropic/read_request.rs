//! Reads a client's request whole, to be put into another API's form.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::read_content::{self, Transcript, cache_mark};
use crate::conversation::{
    Effort, Format, Part, Reasoning, Request, Schema, System, Tool, ToolChoice,
};
use crate::request::object::{Members, Object, Place, text};
use crate::request::{self, RequestFault};

/// Names of members that were left out.
type LeftOut<'a> = Vec<Cow<'a, str>>;

/// Reads a request. Labels in `metadata` are the gateway's own and do not count as left out.
pub(crate) fn read_request(body: &[u8]) -> Result<Request<'_>, RequestFault> {
    let members: Members<'_> = request::members(body)?;
    let mut body = members.at(&Place::Body);
    let mut left_out = LeftOut::new();
    let model = body
        .take_text("model")?
        .ok_or_else(RequestFault::no_model)?;
    let mut read = Request {
        model,
        stream: body.take_flag("stream")?.unwrap_or(false),
        max_output_tokens: body.take_count("max_tokens")?,
        temperature: body.take_number("temperature")?,
        top_p: body.take_number("top_p")?,
        top_k: body.take_count("top_k")?,
        ..Request::default()
    };
    read.stop = stop(&mut body)?;
    read.user = user(&mut body)?;
    read.system = system(&mut body, &mut left_out)?;
    read.messages = messages(&mut body, &mut left_out)?;
    read.tools = tools(&mut body, &mut left_out)?;
    (read.tool_choice, read.parallel_tool_calls) = tool_choice(&mut body)?;
    (read.reasoning, read.format) = output(&mut body, &mut left_out)?;
    body.leave(&mut left_out);
    read.left_out = left_out;
    Ok(read)
}

fn stop<'a>(body: &mut Object<'a, '_>) -> Result<Vec<Cow<'a, str>>, RequestFault> {
    let texts = |value: &'a RawValue| {
        let elements: Vec<&'a RawValue> = serde_json::from_str(value.get()).ok()?;
        elements.into_iter().map(text).collect()
    };
    let stop = body.take_as("stop_sequences", "an array of strings", texts)?;
    Ok(stop.unwrap_or_default())
}

fn user<'a>(body: &mut Object<'a, '_>) -> Result<Option<Cow<'a, str>>, RequestFault> {
    let place = body.member("metadata");
    match body.take("metadata")? {
        Some(metadata) => Object::read(metadata, &place)?.take_text("user_id"),
        None => Ok(None),
    }
}

fn system<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<Vec<System<'a>>, RequestFault> {
    let place = body.member("system");
    let Some(system) = body.take("system")? else {
        return Ok(Vec::new());
    };
    let parts = read_content::read(system, &place, &mut Transcript::default(), left_out)?;
    let texts = parts.into_iter().map(|part| match part {
        Part::Text { text, cache } => Ok(System { text, cache }),
        _ => Err(place.fault("text")),
    });
    texts.collect()
}

fn messages<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<Vec<crate::conversation::Message<'a>>, RequestFault> {
    let place = body.member("messages");
    let messages = body.take_objects("messages")?;
    let messages = messages.ok_or_else(|| body.missing("messages"))?;
    let mut transcript = Transcript::default();
    let mut read = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        let place = Place::Element(&place, index);
        read.push(read_content::message(
            message,
            &place,
            &mut transcript,
            left_out,
        )?);
    }
    Ok(read)
}

/// Tools of Anthropic's own, such as a search, are left out.
fn tools<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<Vec<Tool<'a>>, RequestFault> {
    let place = body.member("tools");
    let tools = body.take_objects("tools")?.unwrap_or_default();
    let mut read = Vec::with_capacity(tools.len());
    for (index, tool) in tools.into_iter().enumerate() {
        let place = Place::Element(&place, index);
        let mut tool = tool.at(&place);
        let kind = tool.take_text("type")?;
        if let Some(kind) = kind.filter(|kind| kind != "custom") {
            left_out.push(format!("{place} ({kind})").into());
            continue;
        }
        let name = tool.take_text("name")?;
        read.push(Tool {
            name: name.ok_or_else(|| tool.missing("name"))?,
            description: tool.take_text("description")?,
            parameters: tool.take("input_schema")?.map(Cow::Borrowed),
            strict: tool.take_flag("strict")?,
            cache: cache_mark(&mut tool, left_out)?,
        });
        tool.leave(left_out);
    }
    Ok(read)
}

/// The choice, and whether several may be called at once.
fn tool_choice<'a>(
    body: &mut Object<'a, '_>,
) -> Result<(Option<ToolChoice<'a>>, Option<bool>), RequestFault> {
    let place = body.member("tool_choice");
    let Some(choice) = body.take("tool_choice")? else {
        return Ok((None, None));
    };
    let mut choice = Object::read(choice, &place)?;
    let kind = choice.take_text("type")?;
    let disables = choice.take_flag("disable_parallel_tool_use")?;
    let read = match kind.as_deref() {
        Some("auto") => ToolChoice::Auto,
        Some("any") => ToolChoice::Required,
        Some("none") => ToolChoice::None,
        Some("tool") => {
            let name = choice.take_text("name")?;
            ToolChoice::Named(name.ok_or_else(|| choice.missing("name"))?)
        }
        _ => {
            return Err(choice
                .member("type")
                .fault("`auto`, `any`, `tool` or `none`"));
        }
    };
    Ok((Some(read), disables.map(|disables| !disables)))
}

/// How much is thought, and the form of what is said.
fn output<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<(Option<Reasoning>, Format<'a>), RequestFault> {
    let mut reasoning = thinking(body, left_out)?;
    let place = body.member("output_config");
    let Some(config) = body.take("output_config")? else {
        return Ok((reasoning, Format::Text));
    };
    let mut config = Object::read(config, &place)?;
    if let Some(word) = config.take_text("effort")? {
        let fault = || {
            config
                .member("effort")
                .fault("low, medium, high, xhigh or max")
        };
        let effort = Effort::of(&word).ok_or_else(fault)?;
        reasoning.get_or_insert_default().effort = Some(effort);
    }
    let place = config.member("format");
    let format = match config.take("format")? {
        Some(format) => read_format(Object::read(format, &place)?)?,
        None => Format::Text,
    };
    config.leave(left_out);
    Ok((reasoning, format))
}

fn read_format<'a>(mut format: Object<'a, '_>) -> Result<Format<'a>, RequestFault> {
    let kind = format.take_text("type")?;
    if kind.as_deref() != Some("json_schema") {
        return Err(format.member("type").fault("`json_schema`"));
    }
    let schema = format.take("schema")?;
    let schema = schema.ok_or_else(|| format.missing("schema"))?;
    Ok(Format::Schema(Schema {
        name: format.take_text("name")?.unwrap_or_default(),
        description: None,
        schema: Cow::Borrowed(schema),
        strict: None,
    }))
}

/// Thinking that is on is shown, unless it is asked to be left away.
fn thinking<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<Option<Reasoning>, RequestFault> {
    let place = body.member("thinking");
    let Some(thinking) = body.take("thinking")? else {
        return Ok(None);
    };
    let mut thinking = Object::read(thinking, &place)?;
    let kind = thinking.take_text("type")?;
    let budget_tokens = thinking.take_count("budget_tokens")?;
    let display = thinking.take_text("display")?;
    let is_shown = Some(display.as_deref() != Some("omitted"));
    let read = match kind.as_deref() {
        Some("enabled") => Reasoning {
            effort: None,
            budget_tokens,
            is_shown,
        },
        Some("adaptive") => Reasoning {
            effort: None,
            budget_tokens: None,
            is_shown,
        },
        Some("disabled") => Reasoning {
            effort: None,
            budget_tokens: Some(0),
            is_shown: None,
        },
        _ => {
            let wanted = "`enabled`, `adaptive` or `disabled`";
            return Err(thinking.member("type").fault(wanted));
        }
    };
    thinking.leave(left_out);
    Ok(Some(read))
}

#[cfg(test)]
mod tests;
