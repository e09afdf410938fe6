//! What decides of a request, to create a message or to count its tokens.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::name::Name;
use crate::conversation::Effort;
use crate::json::{Leaf, Reader, Scanner};
use crate::request::{
    Edit, EditPoints, MissingOutput, Needs, OutputPoints, Request, RequestFault, Span, convert,
    members, present,
};

/// The member of `metadata` that names the user; others are labels.
const USER: &str = "user_id";

/// The version that Vertex is told, in the place of the model.
const VERSION_FOR_MODEL: &str = r#""anthropic_version":"vertex-2023-10-16""#;

/// Reads a request.
pub(crate) fn parse(body: &[u8]) -> Result<Request<'_>, RequestFault> {
    let members: Members<'_> = members(body)?;
    let model = members.model.ok_or_else(RequestFault::no_model)?;
    let config = members.output_config()?;
    let mut needs = Needs {
        json_schema: convert::set(config.format).is_some(),
        ..Needs::default()
    };
    let text_bytes = members.prompt(&mut needs);
    let mut metadata = convert::metadata(members.metadata)?;
    let user = metadata.iter().position(|(name, _)| name == USER);
    let user = user.map(|at| metadata.remove(at).1);
    Ok(Request {
        model: convert::model(model)?,
        stream: convert::boolean(members.stream, "stream")?.unwrap_or(false),
        asks_usage: true,
        max_output_tokens: convert::count(members.max_tokens, "max_tokens")?,
        choices: 1,
        reasoning_effort: members.effort(&config)?,
        metadata,
        user,
        needs,
        body_bytes: body.len() as u64,
        text_bytes,
        edits: EditPoints {
            model: Some(Span::of(body, model)),
            usage: None,
            output: OutputPoints {
                said: [
                    members.max_tokens.map(|member| Span::of(body, member)),
                    None,
                ],
                missing: Some(MissingOutput {
                    at: Span::first_member(body).start,
                    before: r#""max_tokens":"#,
                    after: ",",
                }),
                completion_name: None,
            },
            vertex: Some(Edit {
                span: Span::of(body, model).with_name(body),
                with: VERSION_FOR_MODEL,
            }),
        },
    })
}

/// The members that decide. `None`: missing; null is a value.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    stream: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    system: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    messages: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    output_config: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct OutputConfig<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    effort: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    format: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ThinkingConfig {
    #[serde(default)]
    budget_tokens: Option<u64>,
}

impl<'a> Members<'a> {
    fn output_config(&self) -> Result<OutputConfig<'a>, RequestFault> {
        match convert::set(self.output_config) {
            None => Ok(OutputConfig::default()),
            Some(config) if config.get().starts_with('{') => {
                serde_json::from_str(config.get()).map_err(|error| RequestFault::unreadable(&error))
            }
            Some(config) => Err(RequestFault::wrong_kind(
                "output_config",
                "an object",
                config,
            )),
        }
    }

    fn effort(&self, config: &OutputConfig<'a>) -> Result<Option<Cow<'a, str>>, RequestFault> {
        let said = convert::text(config.effort, "output_config.effort")?;
        let meant = || {
            let thinking = convert::set(self.thinking)?;
            let thinking: ThinkingConfig = serde_json::from_str(thinking.get()).ok()?;
            Some(Effort::of_budget(thinking.budget_tokens?).as_str().into())
        };
        Ok(said.or_else(meant))
    }

    /// Notes what the prompt needs, and counts its bytes of text.
    fn prompt(&self, needs: &mut Needs) -> u64 {
        let parts = [
            (self.system, Part::System),
            (self.messages, Part::Messages),
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
}

/// Which member is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    System,
    Messages,
    /// Every string in it is text for the model.
    Tools,
}

struct Prompt<'a> {
    part: Part,
    needs: &'a mut Needs,
    text_bytes: u64,
}

/// The longest `type` that means something.
const TYPE_BYTES: usize = 16;

impl Reader for Prompt<'_> {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, path: &[Name]) -> usize {
        match path {
            [.., Name::Content, Name::Item, Name::Type] => TYPE_BYTES,
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
        match (self.part, path) {
            (Part::Tools, _) | (Part::System, [] | [Name::Item, Name::Text]) => {
                self.text_bytes += bytes;
            }
            (Part::Messages, [Name::Item, path @ ..]) => self.message_text(path, shown, bytes),
            _ => {}
        }
    }
}

impl Prompt<'_> {
    fn message_text(&mut self, path: &[Name], shown: &[u8], bytes: u64) {
        match path {
            [Name::Content, Name::Item, Name::Type]
            | [
                Name::Content,
                Name::Item,
                Name::Content,
                Name::Item,
                Name::Type,
            ] => match shown {
                b"image" => self.needs.image_input = true,
                b"document" => self.needs.file_input = true,
                _ => {}
            },
            [Name::Content, Name::Item, Name::Source, ..]
            | [
                Name::Content,
                Name::Item,
                Name::Content,
                Name::Item,
                Name::Source,
                ..,
            ] => {}
            [Name::Content]
            | [
                Name::Content,
                Name::Item,
                Name::Text | Name::Thinking | Name::Called | Name::Content,
            ]
            | [Name::Content, Name::Item, Name::Input, ..]
            | [Name::Content, Name::Item, Name::Content, Name::Item, ..] => {
                self.text_bytes += bytes;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
