//! Reads which tools there are, and which one is to be called.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::read_content::cache_mark;
use crate::conversation::{Tool, ToolChoice};
use crate::request::RequestFault;
use crate::request::object::{Object, Place, text};

/// Takes `tools` of the body, and `functions`, as they were called before. Tools that are no
/// functions are left out.
pub(super) fn tools<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Vec<Tool<'a>>, RequestFault> {
    let mut read = Vec::new();
    let place = body.member("tools");
    let tools = body.take_objects("tools")?.unwrap_or_default();
    for (index, tool) in tools.into_iter().enumerate() {
        let place = Place::Element(&place, index);
        let mut tool = tool.at(&place);
        let kind = tool.take_text("type")?.unwrap_or_default();
        if kind != "function" {
            left_out.push(format!("{place} ({kind})").into());
            continue;
        }
        let at = tool.member("function");
        let definition = tool.take("function")?;
        let definition = definition.ok_or_else(|| tool.missing("function"))?;
        let function = function(Object::read(definition, &at)?, left_out)?;
        let cache = cache_mark(&mut tool, left_out)?;
        tool.leave(left_out);
        read.push(Tool { cache, ..function });
    }
    let place = body.member("functions");
    let functions = body.take_objects("functions")?.unwrap_or_default();
    for (index, definition) in functions.into_iter().enumerate() {
        let place = Place::Element(&place, index);
        read.push(function(definition.at(&place), left_out)?);
    }
    Ok(read)
}

fn function<'a>(
    mut function: Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Tool<'a>, RequestFault> {
    let name = function.take_text("name")?;
    let tool = Tool {
        name: name.ok_or_else(|| function.missing("name"))?,
        description: function.take_text("description")?,
        parameters: function.take("parameters")?.map(Cow::Borrowed),
        strict: function.take_flag("strict")?,
        cache: None,
    };
    function.leave(left_out);
    Ok(tool)
}

/// Takes `tool_choice` of the body, or `function_call`, its older form.
pub(super) fn choice<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Option<ToolChoice<'a>>, RequestFault> {
    let place = body.member("tool_choice");
    let older = body.member("function_call");
    let function_call = body.take("function_call")?;
    match (body.take("tool_choice")?, function_call) {
        (Some(choice), _) => read_choice(choice, &place, left_out),
        (None, Some(choice)) if text(choice).is_none() => {
            let mut choice = Object::read(choice, &older)?;
            let name = choice.take_text("name")?;
            Ok(name.map(ToolChoice::Named))
        }
        (None, Some(choice)) => read_choice(choice, &older, left_out),
        (None, None) => Ok(None),
    }
}

fn read_choice<'a>(
    choice: &'a RawValue,
    place: &Place<'_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Option<ToolChoice<'a>>, RequestFault> {
    if let Some(word) = text(choice) {
        let choice = match word.as_ref() {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" | "any" => ToolChoice::Required,
            _ => return Err(place.fault("`auto`, `none`, `required` or an object")),
        };
        return Ok(Some(choice));
    }
    let mut choice = Object::read(choice, place)?;
    let kind = choice.take_text("type")?.unwrap_or_default();
    if kind != "function" {
        left_out.push(format!("{place} ({kind})").into());
        return Ok(None);
    }
    let at = choice.member("function");
    let function = choice.take("function")?;
    let function = function.ok_or_else(|| choice.missing("function"))?;
    let mut function = Object::read(function, &at)?;
    let name = function.take_text("name")?;
    let name = name.ok_or_else(|| function.missing("name"))?;
    Ok(Some(ToolChoice::Named(name)))
}

/// A call's arguments: JSON text, which some send as the object itself. None are an empty object.
pub(in crate::openai) fn arguments(member: Option<&RawValue>) -> Cow<'_, str> {
    let arguments = member.map(|value| text(value).unwrap_or(Cow::Borrowed(value.get())));
    arguments
        .filter(|arguments| !arguments.trim_ascii().is_empty())
        .unwrap_or(Cow::Borrowed("{}"))
}
