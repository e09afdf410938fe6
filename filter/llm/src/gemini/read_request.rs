//! Reads a client's request whole, to be put into another API's form.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::facts::level;
use super::read_content::Contents;
use super::schema::to_json_schema;
use crate::conversation::{Format, Part, Reasoning, Request, Schema, System, Tool, ToolChoice};
use crate::request::object::{Members, Object, Place, objects, text};
use crate::request::{self, PathFacts, RequestFault};

/// Names of members that were left out.
type LeftOut<'a> = Vec<Cow<'a, str>>;

/// Reads a request. `labels` are the gateway's own labels and do not count as left out.
pub(crate) fn read_request<'a>(
    path: PathFacts<'a>,
    body: &'a [u8],
) -> Result<Request<'a>, RequestFault> {
    let members: Members<'a> = request::members(body)?;
    let mut body = members.at(&Place::Body);
    let mut read = Request {
        model: path.model.ok_or_else(RequestFault::no_model)?.into(),
        stream: path.stream,
        ..Request::default()
    };
    let mut left_out = LeftOut::new();
    body.take("labels")?;
    body.take("model")?;
    read.system = system(&mut body, &mut left_out)?;
    let place = body.member("contents");
    let contents = body.take_objects("contents")?;
    let contents = contents.ok_or_else(|| body.missing("contents"))?;
    let mut transcript = Contents::default();
    for (index, content) in contents.into_iter().enumerate() {
        transcript.add(content, &Place::Element(&place, index), &mut left_out)?;
    }
    read.messages = transcript.messages;
    read.tools = tools(&mut body, &mut left_out)?;
    read.tool_choice = tool_choice(&mut body, &mut left_out)?;
    config(&mut body, &mut read, &mut left_out)?;
    body.leave(&mut left_out);
    read.left_out = left_out;
    Ok(read)
}

/// Takes a member by its name in camel case, or in snake case.
pub(super) fn take<'a>(
    object: &mut Object<'a, '_>,
    camel: &'static str,
    snake: &'static str,
) -> Result<Option<&'a RawValue>, RequestFault> {
    let member = object.take(camel)?;
    Ok(member.or(object.take(snake)?))
}

fn system<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<Vec<System<'a>>, RequestFault> {
    let place = body.member("systemInstruction");
    let Some(system) = take(body, "systemInstruction", "system_instruction")? else {
        return Ok(Vec::new());
    };
    if let Some(text) = text(system) {
        return Ok(vec![System { text, cache: None }]);
    }
    let mut content = Object::read(system, &place)?;
    content.take("role")?;
    let parts_place = content.member("parts");
    let parts = content.take_objects("parts")?.unwrap_or_default();
    content.leave(left_out);
    let mut read = Vec::with_capacity(parts.len());
    for (index, part) in parts.into_iter().enumerate() {
        let place = Place::Element(&parts_place, index);
        let mut part = part.at(&place);
        let text = part.take_text("text")?;
        let text = text.ok_or_else(|| place.fault("text"))?;
        part.leave(left_out);
        if !text.is_empty() {
            read.push(System { text, cache: None });
        }
    }
    Ok(read)
}

fn tools<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<Vec<Tool<'a>>, RequestFault> {
    let place = body.member("tools");
    let mut read = Vec::new();
    for (index, tool) in body
        .take_objects("tools")?
        .unwrap_or_default()
        .into_iter()
        .enumerate()
    {
        let place = Place::Element(&place, index);
        let mut tool = tool.at(&place);
        let place = tool.member("functionDeclarations");
        if let Some(functions) = take(&mut tool, "functionDeclarations", "function_declarations")? {
            let functions = objects(functions).ok_or_else(|| place.fault("an array of objects"))?;
            for (index, function) in functions.into_iter().enumerate() {
                let place = Place::Element(&place, index);
                read.push(function_tool(function.at(&place), left_out)?);
            }
        }
        // What else a tool can be, such as a search, is Google's own.
        tool.leave(left_out);
    }
    Ok(read)
}

fn function_tool<'a>(
    mut function: Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<Tool<'a>, RequestFault> {
    let name = function.take_text("name")?;
    let name = name.ok_or_else(|| function.missing("name"))?;
    let json_schema = take(
        &mut function,
        "parametersJsonSchema",
        "parameters_json_schema",
    )?;
    let schema = function.take("parameters")?;
    let parameters = json_schema
        .map(Cow::Borrowed)
        .or_else(|| schema.map(to_json_schema));
    let tool = Tool {
        name,
        description: function.take_text("description")?,
        parameters,
        strict: None,
        cache: None,
    };
    function.leave(left_out);
    Ok(tool)
}

fn tool_choice<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<Option<ToolChoice<'a>>, RequestFault> {
    let place = body.member("toolConfig");
    let Some(config) = take(body, "toolConfig", "tool_config")? else {
        return Ok(None);
    };
    let mut config = Object::read(config, &place)?;
    let place = config.member("functionCallingConfig");
    let calling = take(
        &mut config,
        "functionCallingConfig",
        "function_calling_config",
    )?;
    config.leave(left_out);
    let Some(calling) = calling else {
        return Ok(None);
    };
    let mut calling = Object::read(calling, &place)?;
    let mode = calling.take_text("mode")?;
    let names_place = calling.member("allowedFunctionNames");
    let names = take(
        &mut calling,
        "allowedFunctionNames",
        "allowed_function_names",
    )?;
    let names: Vec<Cow<'a, str>> = match names {
        None => Vec::new(),
        Some(names) => texts(names).ok_or_else(|| names_place.fault("an array of strings"))?,
    };
    calling.leave(left_out);
    Ok(match (mode.as_deref(), names.as_slice()) {
        (Some("NONE"), _) => Some(ToolChoice::None),
        (Some("ANY" | "VALIDATED"), [name]) => Some(ToolChoice::Named(name.clone())),
        (Some("ANY"), names) => {
            if !names.is_empty() {
                left_out.push(names_place.to_string().into());
            }
            Some(ToolChoice::Required)
        }
        (Some("AUTO"), _) => Some(ToolChoice::Auto),
        _ => None,
    })
}

/// The elements of an array of strings.
fn texts(value: &RawValue) -> Option<Vec<Cow<'_, str>>> {
    let elements: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
    elements.into_iter().map(text).collect()
}

fn config<'a>(
    body: &mut Object<'a, '_>,
    read: &mut Request<'a>,
    left_out: &mut LeftOut<'a>,
) -> Result<(), RequestFault> {
    let place = body.member("generationConfig");
    let Some(config) = take(body, "generationConfig", "generation_config")? else {
        return Ok(());
    };
    let mut config = Snake(Object::read(config, &place)?);
    read.max_output_tokens = config.number("maxOutputTokens", "max_output_tokens")?;
    read.temperature = config.number("temperature", "")?;
    read.top_p = config.number("topP", "top_p")?;
    // Google has it as a number that may have a fraction.
    let top_k: Option<f64> = config.number("topK", "top_k")?;
    read.top_k = top_k.filter(|top_k| *top_k >= 1.0).map(whole);
    read.presence_penalty = config.number("presencePenalty", "presence_penalty")?;
    read.frequency_penalty = config.number("frequencyPenalty", "frequency_penalty")?;
    read.seed = config.number("seed", "")?;
    let candidates: Option<u64> = config.number("candidateCount", "candidate_count")?;
    if candidates.is_some_and(|candidates| candidates > 1) {
        return Err(config.0.member("candidateCount").fault("1 for this model"));
    }
    let stop_place = config.0.member("stopSequences");
    if let Some(stop) = take(&mut config.0, "stopSequences", "stop_sequences")? {
        read.stop = texts(stop).ok_or_else(|| stop_place.fault("an array of strings"))?;
    }
    read.format = format(&mut config.0)?;
    read.reasoning = reasoning(&mut config.0, left_out)?;
    config.0.leave(left_out);
    Ok(())
}

/// An object whose members have two names.
struct Snake<'a, 'p>(Object<'a, 'p>);

impl Snake<'_, '_> {
    fn number<T: std::str::FromStr>(
        &mut self,
        camel: &'static str,
        snake: &'static str,
    ) -> Result<Option<T>, RequestFault> {
        let Some(value) = take(&mut self.0, camel, snake)? else {
            return Ok(None);
        };
        let digits = value.get().trim_matches('"');
        let fault = |_| self.0.member(camel).fault("a number");
        digits.parse().map(Some).map_err(fault)
    }
}

/// Cuts off the fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float as large as any is cut to the largest number, and it is not negative"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

fn format<'a>(config: &mut Object<'a, '_>) -> Result<Format<'a>, RequestFault> {
    let mime_type = take(config, "responseMimeType", "response_mime_type")?.and_then(text);
    let json_schema = take(config, "responseJsonSchema", "response_json_schema")?;
    let schema = take(config, "responseSchema", "response_schema")?;
    let schema = json_schema
        .map(Cow::Borrowed)
        .or_else(|| schema.map(to_json_schema));
    Ok(match (schema, mime_type.as_deref()) {
        (Some(schema), _) => Format::Schema(Schema {
            name: Cow::Borrowed(""),
            description: None,
            schema,
            strict: None,
        }),
        (None, Some("application/json")) => Format::Json,
        (None, _) => Format::Text,
    })
}

/// A budget of -1 leaves it to the model.
fn reasoning<'a>(
    config: &mut Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<Option<Reasoning>, RequestFault> {
    let place = config.member("thinkingConfig");
    let Some(thinking) = take(config, "thinkingConfig", "thinking_config")? else {
        return Ok(None);
    };
    let mut thinking = Snake(Object::read(thinking, &place)?);
    let budget: Option<i64> = thinking.number("thinkingBudget", "thinking_budget")?;
    let word = take(&mut thinking.0, "thinkingLevel", "thinking_level")?.and_then(text);
    let shown = take(&mut thinking.0, "includeThoughts", "include_thoughts")?;
    thinking.0.leave(left_out);
    Ok(Some(Reasoning {
        effort: word.as_deref().and_then(level),
        budget_tokens: budget.and_then(|tokens| tokens.try_into().ok()),
        is_shown: shown.and_then(|shown| shown.get().parse().ok()),
    }))
}

/// Whether a part is said by the model alone.
pub(super) const fn is_of_model(part: &Part<'_>) -> bool {
    matches!(
        part,
        Part::ToolCall(_) | Part::Thinking(_) | Part::Refusal(_)
    )
}

#[cfg(test)]
mod tests;
