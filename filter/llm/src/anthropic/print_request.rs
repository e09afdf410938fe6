//! Prints a request for Anthropic's Messages.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::block::{Block, CacheControl};
use super::print_messages::{Marks, Transcript, Turn};
use super::print_reasoning::{Sampling, Thinking, ThinkingShown};
use crate::conversation::{Format, Request, Tool, ToolChoice};
use crate::request::RequestFault;
use crate::translate::{Printed, Terms};

const VERTEX_VERSION: &str = "vertex-2023-10-16";

#[derive(Serialize)]
struct Document<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anthropic_version: Option<&'static str>,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'r>>,
    messages: Vec<Turn<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolShown<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ChoiceShown<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'r [Cow<'r, str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingShown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata<'r>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Serialize)]
struct ToolShown<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'r str>,
    input_schema: Cow<'r, RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct ChoiceShown<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disable_parallel_tool_use: Option<bool>,
}

#[derive(Serialize)]
struct OutputConfig<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<FormatShown<'r>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum FormatShown<'r> {
    JsonSchema { schema: &'r RawValue },
}

#[derive(Serialize)]
struct Metadata<'r> {
    user_id: &'r str,
}

/// Prints a request.
pub(crate) fn print_request(
    request: &Request<'_>,
    terms: &Terms<'_>,
) -> Result<Printed, RequestFault> {
    let mut left_out: Vec<String> = request
        .left_out
        .iter()
        .map(|path| path.to_string())
        .collect();
    let mut marks = Marks::default();
    let tools = request
        .tools
        .iter()
        .map(|tool| tool_shown(tool, &mut marks))
        .collect();
    let system = system(request, &mut marks);
    let transcript = Transcript::print(&request.messages, terms.quirks, marks)?;
    let said = terms.max_output_tokens.or(request.max_output_tokens);
    let max_tokens = said.unwrap_or(terms.default_max_output_tokens);
    let calls_are_thought = transcript.calls_are_thought();
    let thinking = Thinking::of(request, max_tokens, calls_are_thought, terms, &mut left_out);
    let is_thinking = thinking.is_on();
    let sampling = Sampling::of(request, is_thinking, terms, &mut left_out);
    let is_vertex = terms.quirks.is_vertex;
    name_untold(request, &mut left_out);
    let document = Document {
        model: (!is_vertex).then_some(terms.upstream_model),
        anthropic_version: is_vertex.then_some(VERTEX_VERSION),
        max_tokens,
        system,
        tools,
        tool_choice: tool_choice(request, is_thinking, &mut left_out),
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        top_k: sampling.top_k,
        stop_sequences: &request.stop,
        output_config: output_config(thinking.effort, &request.format, terms, &mut left_out),
        thinking: thinking.shown,
        metadata: request.user.as_deref().map(|user_id| Metadata { user_id }),
        stream: request.stream,
        messages: transcript.finish(&mut left_out),
    };
    let body = serde_json::to_vec(&document).unwrap_or_default();
    Ok(Printed { body, left_out })
}

fn system<'r>(request: &'r Request<'_>, marks: &mut Marks) -> Vec<Block<'r>> {
    let said = request
        .system
        .iter()
        .filter(|system| !system.text.trim().is_empty());
    let block = |system: &'r crate::conversation::System<'_>| Block::Text {
        text: &system.text,
        cache_control: marks.take(system.cache),
    };
    said.map(block).collect()
}

fn tool_shown<'r>(tool: &'r Tool<'_>, marks: &mut Marks) -> ToolShown<'r> {
    ToolShown {
        name: &tool.name,
        description: tool.description.as_deref(),
        input_schema: tool
            .parameters
            .as_deref()
            .map_or_else(no_input, Cow::Borrowed),
        strict: tool.strict.filter(|strict| *strict),
        cache_control: marks.take(tool.cache),
    }
}

/// The schema of a tool that takes nothing.
pub(crate) fn no_input<'r>() -> Cow<'r, RawValue> {
    let schema = RawValue::from_string(r#"{"type":"object","properties":{}}"#.to_owned());
    schema.map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned)
}

fn tool_choice<'r>(
    request: &'r Request<'_>,
    is_thinking: bool,
    left_out: &mut Vec<String>,
) -> Option<ChoiceShown<'r>> {
    if request.tools.is_empty() {
        return None;
    }
    let disables = request.parallel_tool_calls.map(|parallel| !parallel);
    let (kind, name) = match request.tool_choice.as_ref() {
        None if disables.is_none() => return None,
        None | Some(ToolChoice::Auto) => ("auto", None),
        Some(ToolChoice::None) => ("none", None),
        Some(ToolChoice::Required | ToolChoice::Named(_)) if is_thinking => {
            left_out.push("tool_choice (while thinking)".to_owned());
            ("auto", None)
        }
        Some(ToolChoice::Required) => ("any", None),
        Some(ToolChoice::Named(name)) => ("tool", Some(name.as_ref())),
    };
    Some(ChoiceShown {
        kind,
        name,
        disable_parallel_tool_use: disables.filter(|_| kind != "none"),
    })
}

fn output_config<'r>(
    effort: Option<&'static str>,
    format: &'r Format<'_>,
    terms: &Terms<'_>,
    left_out: &mut Vec<String>,
) -> Option<OutputConfig<'r>> {
    let format = match format {
        Format::Text => None,
        Format::Schema(schema) if !terms.quirks.no_json_schema => Some(FormatShown::JsonSchema {
            schema: &schema.schema,
        }),
        Format::Json | Format::Schema(_) => {
            left_out.push("response_format".to_owned());
            None
        }
    };
    (effort.is_some() || format.is_some()).then_some(OutputConfig { effort, format })
}

/// Sampling that this API does not know.
fn name_untold(request: &Request<'_>, left_out: &mut Vec<String>) {
    for (is_asked, name) in [
        (request.seed.is_some(), "seed"),
        (request.presence_penalty.is_some(), "presence_penalty"),
        (request.frequency_penalty.is_some(), "frequency_penalty"),
    ] {
        if is_asked {
            left_out.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
