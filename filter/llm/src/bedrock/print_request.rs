//! Prints a request for Converse or ConverseStream, whose bodies are the same.

use std::borrow::Cow;

use serde::Serialize;

use super::block::{Block, CachePoints};
use super::print_messages::{Transcript, TurnShown};
use super::print_tools::{ToolConfig, tool_config, tools};
use crate::anthropic::{Sampling, Thinking, ThinkingShown};
use crate::conversation::{Effort, Format, Request, Schema};
use crate::request::RequestFault;
use crate::translate::{Printed, Terms};

const MOST_USER_BYTES: usize = 256;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'r> {
    messages: Vec<TurnShown<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'r>>,
    #[serde(skip_serializing_if = "Inference::is_empty")]
    inference_config: Inference<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_model_request_fields: Option<ModelFields>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    additional_model_response_field_paths: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    request_metadata: Option<Metadata<'r>>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Inference<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'r str>,
}

/// What Claude takes beside what all models take, in Anthropic's words.
#[derive(Serialize)]
struct ModelFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingShown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputConfig<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text_format: Option<TextFormat<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
}

#[derive(Serialize)]
struct TextFormat<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    structure: Structure<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Structure<'r> {
    json_schema: JsonSchema<'r>,
}

/// The schema is JSON in a string.
#[derive(Serialize)]
struct JsonSchema<'r> {
    schema: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'r str>,
}

#[derive(Serialize)]
struct Metadata<'r> {
    user: &'r str,
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
    let mut points = CachePoints::default();
    let tools = tools(&request.tools, &mut points);
    let system = system(request, &mut points);
    let transcript = Transcript::print(&request.messages, points)?;
    let is_claude = terms.upstream_model.contains("claude");
    let said = terms.max_output_tokens.or(request.max_output_tokens);
    // Claude's thinking lies within the output, whose bound has to be known for it.
    let bound = said.unwrap_or(terms.default_max_output_tokens);
    let thinking = match is_claude {
        true => {
            let are_thought = transcript.calls_are_thought();
            Thinking::of(request, bound, are_thought, terms, &mut left_out)
        }
        false => no_thinking(request, &mut left_out),
    };
    let is_thinking = thinking.is_on();
    let sampling = match is_claude {
        true => Sampling::of(request, is_thinking, terms, &mut left_out),
        false => plain_sampling(request, &mut left_out),
    };
    name_untold(request, &mut left_out);
    let inference_config = Inference {
        max_tokens: if is_thinking { Some(bound) } else { said },
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        stop_sequences: stop_sequences(request),
    };
    let called = transcript.called_names();
    let document = Document {
        system,
        tool_config: tool_config(request, tools, &called, is_thinking, &mut left_out),
        output_config: output_config(thinking.effort, &request.format, terms, &mut left_out),
        additional_model_request_fields: ModelFields::of(thinking.shown, sampling.top_k),
        additional_model_response_field_paths: wanted_back(&inference_config, is_claude),
        request_metadata: metadata(request, &mut left_out),
        inference_config,
        messages: transcript.finish(&mut left_out),
    };
    let body = serde_json::to_vec(&document).unwrap_or_default();
    Ok(Printed { body, left_out })
}

fn system<'r>(request: &'r Request<'_>, points: &mut CachePoints) -> Vec<Block<'r>> {
    let mut blocks = Vec::with_capacity(request.system.len());
    let said = request.system.iter();
    for system in said.filter(|system| !system.text.trim().is_empty()) {
        blocks.push(Block::Text(&system.text));
        blocks.extend(points.take(system.cache).map(Block::CachePoint));
    }
    blocks
}

/// Each other maker has a form of its own for it, which nothing but the model's card tells.
fn no_thinking(request: &Request<'_>, left_out: &mut Vec<String>) -> Thinking {
    let wants = |asked: crate::conversation::Reasoning| {
        asked.effort != Some(Effort::None) && asked.budget_tokens != Some(0)
    };
    if request.reasoning.is_some_and(wants) {
        left_out.push("reasoning".to_owned());
    }
    Thinking::default()
}

/// Sampling as any model takes it.
fn plain_sampling(request: &Request<'_>, left_out: &mut Vec<String>) -> Sampling {
    if request.top_k.is_some() {
        left_out.push("top_k".to_owned());
    }
    let temperature = request.temperature.map(|asked| {
        let taken = asked.clamp(0.0, 1.0);
        if (taken - asked).abs() > f64::EPSILON {
            left_out.push("temperature (clamped)".to_owned());
        }
        taken
    });
    Sampling {
        temperature,
        top_p: request.top_p,
        top_k: None,
    }
}

fn stop_sequences<'r>(request: &'r Request<'_>) -> Vec<&'r str> {
    let said = request.stop.iter().map(AsRef::as_ref);
    said.filter(|text: &&str| !text.is_empty()).collect()
}

/// Which of Claude's own members come back: the stop sequence that it came to.
fn wanted_back(inference: &Inference<'_>, is_claude: bool) -> &'static [&'static str] {
    match is_claude && !inference.stop_sequences.is_empty() {
        true => &["/stop_sequence"],
        false => &[],
    }
}

fn output_config<'r>(
    effort: Option<&'static str>,
    format: &'r Format<'_>,
    terms: &Terms<'_>,
    left_out: &mut Vec<String>,
) -> Option<OutputConfig<'r>> {
    let text_format = match format {
        Format::Text => None,
        Format::Schema(schema) if !terms.quirks.no_json_schema => Some(TextFormat::of(schema)),
        Format::Json | Format::Schema(_) => {
            left_out.push("response_format".to_owned());
            None
        }
    };
    let is_said = effort.is_some() || text_format.is_some();
    is_said.then_some(OutputConfig {
        text_format,
        effort,
    })
}

/// The user goes to the invocation's log, if it is of letters that may stand there.
fn metadata<'r>(request: &'r Request<'_>, left_out: &mut Vec<String>) -> Option<Metadata<'r>> {
    let user = request.user.as_deref()?;
    let may_stand = |letter: char| {
        letter.is_ascii_alphanumeric() || letter == ' ' || ":_@$#=/+,-.".contains(letter)
    };
    if user.len() > MOST_USER_BYTES || !user.chars().all(may_stand) {
        left_out.push("user".to_owned());
        return None;
    }
    Some(Metadata { user })
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

impl Inference<'_> {
    fn is_empty(&self) -> bool {
        let least = Inference {
            max_tokens: None,
            temperature: None,
            top_p: None,
            stop_sequences: Vec::new(),
        };
        *self == least
    }
}

impl ModelFields {
    fn of(thinking: Option<ThinkingShown>, top_k: Option<u64>) -> Option<Self> {
        let is_said = thinking.is_some() || top_k.is_some();
        is_said.then_some(Self { thinking, top_k })
    }
}

impl<'r> TextFormat<'r> {
    fn of(schema: &'r Schema<'_>) -> Self {
        let name: &Cow<'_, str> = &schema.name;
        Self {
            kind: "json_schema",
            structure: Structure {
                json_schema: JsonSchema {
                    schema: schema.schema.get(),
                    name: Some(name.as_ref()).filter(|name| !name.is_empty()),
                    description: schema.description.as_deref(),
                },
            },
        }
    }
}

#[cfg(test)]
mod tests;
