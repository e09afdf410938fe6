//! What decides of a request. The model and whether to stream are in the path.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::name::Name;
use crate::conversation::Effort;
use crate::json::{Leaf, Reader, Scanner};
use crate::request::{
    EditPoints, MissingOutput, Needs, OutputPoints, PathFacts, Request, RequestFault, Span,
    convert, members, present,
};

/// Reads a request.
pub(crate) fn parse<'a>(path: PathFacts<'a>, body: &'a [u8]) -> Result<Request<'a>, RequestFault> {
    let members: Members<'a> = members(body)?;
    let config = members.config()?;
    let mut needs = Needs {
        json_schema: config.wants_schema(),
        ..Needs::default()
    };
    let text_bytes = members.prompt(&mut needs);
    Ok(Request {
        model: path.model.ok_or_else(RequestFault::no_model)?.into(),
        stream: path.stream,
        asks_usage: true,
        max_output_tokens: convert::count(
            config.max_output_tokens,
            "generationConfig.maxOutputTokens",
        )?,
        choices: convert::count(config.candidate_count, "generationConfig.candidateCount")?
            .unwrap_or(1)
            .max(1),
        reasoning_effort: config.effort().map(|effort| effort.as_str().into()),
        metadata: convert::metadata(members.labels)?,
        user: None,
        needs,
        body_bytes: body.len() as u64,
        text_bytes,
        edits: members.edits(body, &config),
    })
}

/// The members that decide. `None`: missing; null is a value.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    contents: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    #[serde(rename = "systemInstruction", alias = "system_instruction")]
    system: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    #[serde(rename = "generationConfig", alias = "generation_config")]
    config: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    labels: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        alias = "max_output_tokens"
    )]
    max_output_tokens: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        alias = "candidate_count"
    )]
    candidate_count: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        alias = "response_schema"
    )]
    response_schema: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        alias = "response_json_schema"
    )]
    response_json_schema: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        alias = "thinking_config"
    )]
    thinking_config: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig<'a> {
    #[serde(default, alias = "thinking_budget")]
    thinking_budget: Option<i64>,
    #[serde(borrow, default, alias = "thinking_level")]
    thinking_level: Option<&'a str>,
}

impl<'a> Members<'a> {
    fn config(&self) -> Result<Config<'a>, RequestFault> {
        match convert::set(self.config) {
            None => Ok(Config::default()),
            Some(config) if config.get().starts_with('{') => {
                serde_json::from_str(config.get()).map_err(|error| RequestFault::unreadable(&error))
            }
            Some(config) => Err(RequestFault::wrong_kind(
                "generationConfig",
                "an object",
                config,
            )),
        }
    }

    /// Notes what the prompt needs, and counts its bytes of text.
    fn prompt(&self, needs: &mut Needs) -> u64 {
        let parts = [
            (self.contents, Part::Contents),
            (self.system, Part::System),
            (self.tools, Part::Tools),
        ];
        let read = |(member, part): (Option<&RawValue>, Part)| {
            let mut prompt = Prompt {
                part,
                needs,
                text_bytes: 0,
            };
            let text = member.map_or("", RawValue::get);
            Scanner::new::<Prompt<'_>>().feed(text.as_bytes(), &mut prompt);
            prompt.text_bytes
        };
        parts.map(read).into_iter().sum()
    }

    fn edits(&self, body: &[u8], config: &Config<'_>) -> EditPoints {
        let span_of = |member: Option<&RawValue>| member.map(|member| Span::of(body, member));
        let missing = match convert::set(self.config) {
            Some(whole) => {
                let inner = whole.get().get(1..).unwrap_or_default();
                let is_empty = inner.trim_ascii_start().starts_with('}');
                MissingOutput {
                    at: Span::of(body, whole).start + 1,
                    before: r#""maxOutputTokens":"#,
                    after: if is_empty { "" } else { "," },
                }
            }
            None => {
                let at = Span::first_member(body).start;
                let rest = body.get(at..).unwrap_or_default();
                let is_empty = rest.trim_ascii_start().starts_with(b"}");
                MissingOutput {
                    at,
                    before: r#""generationConfig":{"maxOutputTokens":"#,
                    after: if is_empty { "}" } else { "}," },
                }
            }
        };
        // A config that is null would be there twice.
        let is_null = self.config.is_some() && convert::set(self.config).is_none();
        EditPoints {
            model: None,
            usage: None,
            output: OutputPoints {
                said: [span_of(config.max_output_tokens), None],
                missing: (!is_null).then_some(missing),
                completion_name: None,
            },
            vertex: None,
        }
    }
}

impl Config<'_> {
    fn wants_schema(&self) -> bool {
        let schemas = [self.response_schema, self.response_json_schema];
        schemas
            .into_iter()
            .any(|schema| convert::set(schema).is_some())
    }

    /// A budget of -1 leaves it to the model.
    fn effort(&self) -> Option<Effort> {
        let config = convert::set(self.thinking_config)?;
        let config: ThinkingConfig<'_> = serde_json::from_str(config.get()).ok()?;
        let by_level = config.thinking_level.and_then(level);
        let budget = config
            .thinking_budget
            .and_then(|tokens| tokens.try_into().ok());
        by_level.or_else(|| budget.map(Effort::of_budget))
    }
}

/// A `thinkingLevel`.
pub(super) fn level(word: &str) -> Option<Effort> {
    Effort::of(&word.to_ascii_lowercase())
}

/// Which member is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Contents,
    System,
    /// Every string in it is text for the model.
    Tools,
}

struct Prompt<'a> {
    part: Part,
    needs: &'a mut Needs,
    text_bytes: u64,
}

/// The longest media type whose beginning means something.
const TYPE_BYTES: usize = 16;

impl Prompt<'_> {
    fn media(&mut self, mime_type: &[u8]) {
        match mime_type.split(|byte| *byte == b'/').next() {
            Some(b"image") => self.needs.image_input = true,
            Some(b"audio") => self.needs.audio_input = true,
            Some(b"text") => {}
            _ => self.needs.file_input = true,
        }
    }
}

impl Reader for Prompt<'_> {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, path: &[Name]) -> usize {
        match path {
            [.., Name::InlineData | Name::FileData, Name::MimeType] => TYPE_BYTES,
            _ => 0,
        }
    }

    fn open(&mut self, path: &[Name]) {
        self.needs.tools |= self.part == Part::Tools && matches!(path, [Name::Item]);
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let Leaf::Text { shown, bytes } = leaf else {
            return;
        };
        match path {
            _ if self.part == Part::Tools => self.text_bytes += bytes,
            [.., Name::InlineData | Name::FileData, Name::MimeType] => self.media(shown),
            [.., Name::Parts, Name::Item, Name::Text]
            | [
                ..,
                Name::Parts,
                Name::Item,
                Name::FunctionCall | Name::FunctionResponse,
                _,
            ]
            | [
                Name::Item,
                Name::Parts,
                Name::Item,
                Name::FunctionCall | Name::FunctionResponse,
                Name::Args | Name::Response,
                ..,
            ] => self.text_bytes += bytes,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
