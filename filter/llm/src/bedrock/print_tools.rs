//! Tools as they are printed.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::block::{CachePoint, CachePoints};
use crate::anthropic::no_input;
use crate::conversation::{Request, Tool, ToolChoice};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig<'r> {
    tools: Vec<ToolShown<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ChoiceShown<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ToolShown<'r> {
    ToolSpec(Spec<'r>),
    CachePoint(CachePoint),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'r str>,
    input_schema: InputSchema<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Serialize)]
struct InputSchema<'r> {
    json: Cow<'r, RawValue>,
}

/// There is no word for none.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum ChoiceShown<'r> {
    Auto {},
    Any {},
    Tool { name: &'r str },
}

/// The tools, each with its cache point.
pub(super) fn tools<'r>(tools: &'r [Tool<'_>], points: &mut CachePoints) -> Vec<ToolShown<'r>> {
    let mut shown = Vec::with_capacity(tools.len());
    for tool in tools {
        let description = tool.description.as_deref();
        shown.push(ToolShown::ToolSpec(Spec {
            name: &tool.name,
            description: description.filter(|text| !text.is_empty()),
            input_schema: InputSchema {
                json: tool
                    .parameters
                    .as_deref()
                    .map_or_else(no_input, Cow::Borrowed),
            },
            strict: tool.strict.filter(|strict| *strict),
        }));
        shown.extend(points.take(tool.cache).map(ToolShown::CachePoint));
    }
    shown
}

/// What is said of tools. `called`: the names of those that were called before, without which Converse
/// takes no conversation that has calls ("The toolConfig field must be defined when using toolUse
/// and toolResult content blocks").
pub(super) fn tool_config<'r>(
    request: &'r Request<'_>,
    mut tools: Vec<ToolShown<'r>>,
    called: &[&'r str],
    is_thinking: bool,
    left_out: &mut Vec<String>,
) -> Option<ToolConfig<'r>> {
    if request.tools.is_empty() {
        if called.is_empty() {
            return None;
        }
        left_out.push("tools (those that were called were put in)".to_owned());
        tools.extend(called.iter().map(|name| ToolShown::of_name(name)));
        let tool_choice = None;
        return Some(ToolConfig { tools, tool_choice });
    }
    if request.parallel_tool_calls == Some(false) {
        left_out.push("parallel_tool_calls".to_owned());
    }
    let tool_choice = match request.tool_choice.as_ref() {
        None => None,
        Some(ToolChoice::None) if called.is_empty() => return None,
        Some(ToolChoice::None) => {
            left_out.push("tool_choice (none, after calls)".to_owned());
            None
        }
        Some(ToolChoice::Required | ToolChoice::Named(_)) if is_thinking => {
            left_out.push("tool_choice (while thinking)".to_owned());
            Some(ChoiceShown::Auto {})
        }
        Some(ToolChoice::Auto) => Some(ChoiceShown::Auto {}),
        Some(ToolChoice::Required) => Some(ChoiceShown::Any {}),
        Some(ToolChoice::Named(name)) => Some(ChoiceShown::Tool { name }),
    };
    Some(ToolConfig { tools, tool_choice })
}

impl<'r> ToolShown<'r> {
    /// A tool of which nothing but its name is known.
    fn of_name(name: &'r str) -> Self {
        Self::ToolSpec(Spec {
            name,
            description: None,
            input_schema: InputSchema { json: no_input() },
            strict: None,
        })
    }
}
