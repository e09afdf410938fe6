//! Prints a request for OpenAI or a provider compatible with it.
//!
//! Not told, and not counted as left out, since nothing of the conversation is lost with it:
//! thinking of earlier turns, which such providers do not take back (but for
//! [`Quirks::wants_reasoning_back`]), and signatures, which mean something to their own provider
//! alone.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::print_messages::{MessageShown, Transcript};
use crate::conversation::{Effort, Format, Reasoning, Request, Schema, ToolChoice};
use crate::request::RequestFault;
use crate::translate::{Printed, Quirks, Terms};

/// Prints a request; a fault where a provider would refuse the whole of it.
pub(crate) fn print_request(
    request: &Request<'_>,
    terms: &Terms<'_>,
) -> Result<Printed, RequestFault> {
    let quirks = terms.quirks;
    let mut left_out: Vec<String> = request.left_out.iter().map(ToString::to_string).collect();
    let mut note = |member: &str| left_out.push(member.to_owned());
    let transcript = Transcript::print(request, quirks)?;
    if transcript.has_cache_marks {
        note("cache_control");
    }
    if request.top_k.is_some() {
        note("top_k");
    }
    let max_output_tokens = terms.max_output_tokens.or(request.max_output_tokens);
    let has_tools = !request.tools.is_empty();
    let body = Body {
        model: terms.upstream_model,
        messages: transcript.messages,
        stream: request.stream.then_some(true),
        stream_options: (request.stream && !quirks.no_stream_options).then_some(StreamOptions {
            include_usage: true,
        }),
        max_tokens: max_output_tokens.filter(|_| quirks.max_tokens_member),
        max_completion_tokens: max_output_tokens.filter(|_| !quirks.max_tokens_member),
        temperature: request.temperature,
        top_p: request.top_p,
        presence_penalty: request.presence_penalty,
        frequency_penalty: request.frequency_penalty,
        seed: request.seed,
        stop: &request.stop,
        tools: tools(request),
        // OpenAI refuses both without tools.
        tool_choice: tool_choice(request.tool_choice.as_ref(), quirks).filter(|_| has_tools),
        parallel_tool_calls: parallel(request.parallel_tool_calls, quirks, &mut note)
            .filter(|_| has_tools),
        response_format: response_format(&request.format, quirks, &mut note),
        reasoning_effort: reasoning_effort(request.reasoning, quirks, &mut note),
        user: request.user.as_deref(),
    };
    Ok(Printed {
        body: serde_json::to_vec(&body).unwrap_or_default(),
        left_out,
    })
}

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    messages: Vec<MessageShown<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'r [Cow<'r, str>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolShown<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ChoiceShown<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<FormatShown<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'r str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ToolShown<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionShown<'r>,
}

#[derive(Serialize)]
struct FunctionShown<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'r RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

enum ChoiceShown<'r> {
    Word(&'static str),
    Named(&'r str),
}

impl Serialize for ChoiceShown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Named<'r> {
            #[serde(rename = "type")]
            kind: &'static str,
            function: Function<'r>,
        }
        #[derive(Serialize)]
        struct Function<'r> {
            name: &'r str,
        }
        match self {
            Self::Word(word) => to.serialize_str(word),
            Self::Named(name) => Named {
                kind: "function",
                function: Function { name },
            }
            .serialize(to),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum FormatShown<'r> {
    JsonObject,
    JsonSchema { json_schema: SchemaShown<'r> },
}

#[derive(Serialize)]
struct SchemaShown<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'r str>,
    schema: &'r RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

fn tools<'r>(request: &'r Request<'_>) -> Vec<ToolShown<'r>> {
    let tools = request.tools.iter().map(|tool| ToolShown {
        kind: "function",
        function: FunctionShown {
            name: &tool.name,
            description: tool.description.as_deref(),
            parameters: tool.parameters.as_deref(),
            strict: tool.strict,
        },
    });
    tools.collect()
}

fn tool_choice<'r>(choice: Option<&'r ToolChoice<'_>>, quirks: &Quirks) -> Option<ChoiceShown<'r>> {
    Some(match choice? {
        ToolChoice::Auto => ChoiceShown::Word("auto"),
        ToolChoice::None => ChoiceShown::Word("none"),
        ToolChoice::Required if quirks.tool_choice_any => ChoiceShown::Word("any"),
        ToolChoice::Required => ChoiceShown::Word("required"),
        ToolChoice::Named(name) => ChoiceShown::Named(name),
    })
}

/// Parallel calls are what happens anyway, so only their absence is missed.
fn parallel(parallel: Option<bool>, quirks: &Quirks, note: &mut dyn FnMut(&str)) -> Option<bool> {
    if quirks.no_parallel_tool_calls && parallel == Some(false) {
        note("parallel_tool_calls");
    }
    parallel.filter(|_| !quirks.no_parallel_tool_calls)
}

/// A provider without schemas is asked for JSON; the schema is in its instructions then.
fn response_format<'r>(
    format: &'r Format<'_>,
    quirks: &Quirks,
    note: &mut dyn FnMut(&str),
) -> Option<FormatShown<'r>> {
    match format {
        Format::Text => None,
        Format::Json => Some(FormatShown::JsonObject),
        Format::Schema(_) if quirks.no_json_schema => {
            note("response_format.json_schema (told as an instruction)");
            Some(FormatShown::JsonObject)
        }
        Format::Schema(schema) => Some(FormatShown::JsonSchema {
            json_schema: schema_shown(schema),
        }),
    }
}

fn schema_shown<'r>(schema: &'r Schema<'_>) -> SchemaShown<'r> {
    SchemaShown {
        // OpenAI wants one.
        name: if schema.name.is_empty() {
            "answer"
        } else {
            &schema.name
        },
        description: schema.description.as_deref(),
        schema: &schema.schema,
        strict: schema.strict,
    }
}

/// OpenAI's largest effort is `xhigh`.
fn reasoning_effort(
    reasoning: Option<Reasoning>,
    quirks: &Quirks,
    note: &mut dyn FnMut(&str),
) -> Option<&'static str> {
    let effort = reasoning?.level()?;
    if quirks.no_reasoning {
        if effort != Effort::None {
            note("reasoning_effort");
        }
        return None;
    }
    if effort == Effort::Max {
        note("reasoning_effort (clamped)");
    }
    Some(effort.min(Effort::ExtraHigh).as_str())
}

#[cfg(test)]
mod tests;
