//! Prints a request for Gemini.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::print_contents::{Content, ContentsPrinter, Part};
use crate::conversation::{Format, Reasoning, Request, Tool, ToolChoice};
use crate::request::RequestFault;
use crate::translate::{Printed, Terms};

/// Sampling temperature of Gemini's models goes up to this.
const MOST_TEMPERATURE: f64 = 2.0;
const MOST_STOP_SEQUENCES: usize = 5;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<SystemInstruction<'r>>,
    contents: Vec<Content<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Functions<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'r>>,
    generation_config: Config<'r>,
}

#[derive(Serialize)]
struct SystemInstruction<'r> {
    parts: Vec<Part<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Functions<'r> {
    function_declarations: Vec<Function<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<&'r RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'r> {
    function_calling_config: Calling<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Calling<'r> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'r str; 1]>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'r [Cow<'r, str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'r RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include_thoughts: Option<bool>,
}

/// Prints a request. Model and stream are in the path.
pub(crate) fn print_request(
    request: &Request<'_>,
    terms: &Terms<'_>,
) -> Result<Printed, RequestFault> {
    let mut left_out: Vec<String> = request
        .left_out
        .iter()
        .map(|path| path.to_string())
        .collect();
    let mut printer = ContentsPrinter::new(terms.quirks);
    for message in &request.messages {
        printer.add(message)?;
    }
    let (contents, has_marks) = printer.finish();
    let system_marks = request.system.iter().any(|system| system.cache.is_some());
    if has_marks || system_marks || request.tools.iter().any(|tool| tool.cache.is_some()) {
        left_out.push("cache marks".to_owned());
    }
    if request.parallel_tool_calls == Some(false) {
        left_out.push("parallel_tool_calls".to_owned());
    }
    let document = Document {
        system_instruction: system(request),
        contents,
        tools: functions(&request.tools),
        tool_config: request.tool_choice.as_ref().map(tool_config),
        generation_config: config(request, terms, &mut left_out),
    };
    let body = serde_json::to_vec(&document).unwrap_or_default();
    Ok(Printed { body, left_out })
}

fn system<'r>(request: &'r Request<'_>) -> Option<SystemInstruction<'r>> {
    let texts = request
        .system
        .iter()
        .filter(|system| !system.text.is_empty());
    let parts: Vec<Part<'r>> = texts.map(|system| Part::text(&system.text)).collect();
    (!parts.is_empty()).then_some(SystemInstruction { parts })
}

fn functions<'r>(tools: &'r [Tool<'_>]) -> Vec<Functions<'r>> {
    let each = tools.iter().map(|tool| Function {
        name: &tool.name,
        description: tool.description.as_deref(),
        parameters_json_schema: tool.parameters.as_deref(),
    });
    let function_declarations: Vec<Function<'r>> = each.collect();
    if function_declarations.is_empty() {
        return Vec::new();
    }
    vec![Functions {
        function_declarations,
    }]
}

fn tool_config<'r>(choice: &'r ToolChoice<'_>) -> ToolConfig<'r> {
    let (mode, name) = match choice {
        ToolChoice::Auto => ("AUTO", None),
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Named(name) => ("ANY", Some([name.as_ref()])),
    };
    ToolConfig {
        function_calling_config: Calling {
            mode,
            allowed_function_names: name,
        },
    }
}

fn config<'r>(
    request: &'r Request<'_>,
    terms: &Terms<'_>,
    left_out: &mut Vec<String>,
) -> Config<'r> {
    let temperature = request.temperature.map(|asked| {
        let taken = asked.clamp(0.0, MOST_TEMPERATURE);
        if (taken - asked).abs() > f64::EPSILON {
            left_out.push("temperature (clamped)".to_owned());
        }
        taken
    });
    let stop = request.stop.get(..MOST_STOP_SEQUENCES);
    if stop.is_some_and(|taken| taken.len() < request.stop.len()) {
        left_out.push("stop (beyond the fifth)".to_owned());
    }
    let (mime_type, schema) = match &request.format {
        Format::Text => (None, None),
        Format::Json => (Some("application/json"), None),
        Format::Schema(schema) => (Some("application/json"), Some(&*schema.schema)),
    };
    Config {
        max_output_tokens: terms.max_output_tokens.or(request.max_output_tokens),
        temperature,
        top_p: request.top_p,
        top_k: request.top_k,
        presence_penalty: request.presence_penalty,
        frequency_penalty: request.frequency_penalty,
        seed: request.seed,
        stop_sequences: stop.unwrap_or(&request.stop),
        response_mime_type: mime_type,
        response_json_schema: schema,
        thinking_config: thinking(request.reasoning, terms, left_out),
    }
}

fn thinking(
    reasoning: Option<Reasoning>,
    terms: &Terms<'_>,
    left_out: &mut Vec<String>,
) -> Option<ThinkingConfig> {
    let reasoning = reasoning?;
    if terms.quirks.no_reasoning {
        left_out.push("reasoning".to_owned());
        return None;
    }
    Some(ThinkingConfig {
        thinking_budget: reasoning.budget(),
        include_thoughts: reasoning.is_shown,
    })
}

#[cfg(test)]
mod tests;
