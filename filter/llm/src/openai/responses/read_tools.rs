//! Reads which tools there are, and which one is to be called.

use std::borrow::Cow;

use crate::conversation::{Tool, ToolChoice};
use crate::openai::chat::read_content::cache_mark;
use crate::request::RequestFault;
use crate::request::object::{Object, Place, text};

/// Takes `tools` of the body. Tools that are no functions of the client's are left out.
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
            left_out.push(tool.told_as(&kind).into());
            continue;
        }
        let name = tool.take_text("name")?;
        read.push(Tool {
            name: name.ok_or_else(|| tool.missing("name"))?,
            description: tool.take_text("description")?,
            parameters: tool.take("parameters")?.map(Cow::Borrowed),
            strict: tool.take_flag("strict")?,
            cache: cache_mark(&mut tool, left_out)?,
        });
        tool.leave(left_out);
    }
    Ok(read)
}

/// Takes `tool_choice` of the body. Where it allows some of the tools only, the others are no
/// longer there.
pub(super) fn choice<'a>(
    body: &mut Object<'a, '_>,
    tools: &mut Vec<Tool<'a>>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Option<ToolChoice<'a>>, RequestFault> {
    let place = body.member("tool_choice");
    let Some(choice) = body.take("tool_choice")? else {
        return Ok(None);
    };
    let wanted = "`auto`, `none`, `required` or an object";
    if let Some(word) = text(choice) {
        return by_word(&word).map(Some).ok_or_else(|| place.fault(wanted));
    }
    let mut choice = Object::read(choice, &place)?;
    let kind = choice.take_text("type")?.unwrap_or_default();
    match kind.as_ref() {
        "function" => {
            let name = choice.take_text("name")?;
            let name = name.ok_or_else(|| choice.missing("name"))?;
            Ok(Some(ToolChoice::Named(name)))
        }
        "allowed_tools" => {
            let allowed = allowed(&mut choice)?;
            tools.retain(|tool| allowed.contains(&tool.name));
            let mode = choice.take_text("mode")?;
            let mode = mode.as_deref().map_or(Some(ToolChoice::Auto), by_word);
            let fault = || choice.member("mode").fault("`auto` or `required`");
            mode.map(Some).ok_or_else(fault)
        }
        kind => {
            left_out.push(choice.told_as(kind).into());
            Ok(None)
        }
    }
}

fn by_word(word: &str) -> Option<ToolChoice<'static>> {
    match word {
        "auto" => Some(ToolChoice::Auto),
        "none" => Some(ToolChoice::None),
        "required" => Some(ToolChoice::Required),
        _ => None,
    }
}

/// The names of the tools that may be called.
fn allowed<'a>(choice: &mut Object<'a, '_>) -> Result<Vec<Cow<'a, str>>, RequestFault> {
    let place = choice.member("tools");
    let tools = choice.take_objects("tools")?.unwrap_or_default();
    let names = tools
        .into_iter()
        .map(|tool| tool.at(&place).take_text("name"));
    names.filter_map(Result::transpose).collect()
}
