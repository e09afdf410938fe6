//! Prints `messages`, in the order that such providers want.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;

use super::print_content::{ContentShown, PartShown, part};
use crate::conversation::{
    Format, Message, Part, Request, Role, Schema, Thinking, ToolCall, ToolResult,
};
use crate::request::RequestFault;
use crate::translate::Quirks;

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum MessageShown<'r> {
    System {
        content: String,
    },
    User {
        content: ContentShown<'r>,
    },
    Assistant {
        content: Option<ContentShown<'r>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<CallShown<'r>>,
    },
    Tool {
        tool_call_id: &'r str,
        content: ContentShown<'r>,
    },
}

#[derive(Serialize)]
pub(super) struct CallShown<'r> {
    id: &'r str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledShown<'r>,
}

#[derive(Serialize)]
struct CalledShown<'r> {
    name: &'r str,
    arguments: &'r str,
}

/// The conversation as messages.
pub(super) struct Transcript<'r> {
    pub(super) messages: Vec<MessageShown<'r>>,
    /// Something was marked to be cached, which this API does by itself.
    pub(super) has_cache_marks: bool,
    called: BTreeSet<&'r str>,
    quirks: Quirks,
}

impl<'r> Transcript<'r> {
    pub(super) fn print(request: &'r Request<'_>, quirks: &Quirks) -> Result<Self, RequestFault> {
        let mut transcript = Self {
            messages: Vec::with_capacity(request.messages.len() + 1),
            has_cache_marks: request.system.iter().any(|piece| piece.cache.is_some())
                || request.tools.iter().any(|tool| tool.cache.is_some()),
            called: BTreeSet::new(),
            quirks: *quirks,
        };
        transcript.add_system(request);
        let turns = request.messages.chunk_by(|a, b| a.role == b.role);
        for turn in turns {
            match turn.first().map(|message| message.role) {
                Some(Role::Assistant) => transcript.add_assistant(turn)?,
                _ => transcript.add_user(turn)?,
            }
        }
        Ok(transcript)
    }

    /// All instructions in one message of plain text, which every such provider takes.
    fn add_system(&mut self, request: &Request<'_>) {
        let mut texts: Vec<Cow<'_, str>> = request
            .system
            .iter()
            .map(|piece| Cow::Borrowed(piece.text.as_ref()))
            .collect();
        if let Format::Schema(schema) = &request.format
            && self.quirks.no_json_schema
        {
            texts.push(schema_instruction(schema).into());
        }
        if !texts.is_empty() {
            let content = texts.join("\n\n");
            self.messages.push(MessageShown::System { content });
        }
    }

    /// One message, whatever it was told in: calls must stand in the message of what led to them,
    /// with their results right after.
    fn add_assistant(&mut self, turn: &'r [Message<'_>]) -> Result<(), RequestFault> {
        let mut content = Vec::new();
        let mut refusal = String::new();
        let mut reasoning = String::new();
        let mut tool_calls = Vec::new();
        for said in turn.iter().flat_map(|message| &message.parts) {
            self.note_cache_mark(said);
            match said {
                Part::ToolCall(call) => tool_calls.push(self.call(call)),
                Part::Refusal(text) => refusal.push_str(text),
                Part::Thinking(Thinking::Shown { text, .. }) => reasoning.push_str(text),
                Part::Thinking(Thinking::Redacted { .. }) => {}
                other => content.push(part(other, &self.quirks)?),
            }
        }
        if content.is_empty() && refusal.is_empty() && tool_calls.is_empty() {
            return Ok(());
        }
        let is_wanted = self.quirks.wants_reasoning_back && !tool_calls.is_empty();
        self.messages.push(MessageShown::Assistant {
            content: ContentShown::of(content),
            refusal: Some(refusal).filter(|refusal| !refusal.is_empty()),
            reasoning_content: Some(reasoning).filter(|text| is_wanted && !text.is_empty()),
            tool_calls,
        });
        Ok(())
    }

    fn call(&mut self, call: &'r ToolCall<'_>) -> CallShown<'r> {
        self.called.insert(&call.id);
        CallShown {
            id: &call.id,
            kind: "function",
            function: CalledShown {
                name: &call.name,
                arguments: &call.arguments,
            },
        }
    }

    /// Results first, since they must follow their calls; then what else the user says.
    fn add_user(&mut self, turn: &'r [Message<'_>]) -> Result<(), RequestFault> {
        let mut shown_by_results = Vec::new();
        for said in turn.iter().flat_map(|message| &message.parts) {
            self.note_cache_mark(said);
            if let Part::ToolResult(result) = said {
                self.add_result(result, &mut shown_by_results)?;
            }
        }
        for message in turn {
            let is_result = |said: &&Part<'_>| matches!(said, Part::ToolResult(_));
            let others = message.parts.iter().filter(|said| !is_result(said));
            let mut content = std::mem::take(&mut shown_by_results);
            for said in others {
                content.push(part(said, &self.quirks)?);
            }
            let is_said = !message.parts.iter().any(|said| is_result(&said));
            match ContentShown::of(content) {
                Some(content) => self.messages.push(MessageShown::User { content }),
                None if is_said => self.messages.push(MessageShown::User {
                    content: ContentShown::Text("".into()),
                }),
                None => {}
            }
        }
        Ok(())
    }

    /// A result's images and files go to the user's next message, since the tool's takes text
    /// alone. That a call failed can be told in words only.
    fn add_result(
        &mut self,
        result: &'r ToolResult<'_>,
        shown_by_results: &mut Vec<PartShown<'r>>,
    ) -> Result<(), RequestFault> {
        if !self.called.contains(result.id.as_ref()) {
            let id = result.id.as_ref();
            return Err(RequestFault {
                param: Some("messages"),
                message: format!("the tool's result `{id}` has no call before it"),
                code: Some("invalid_value"),
            });
        }
        let mut texts = Vec::new();
        let mut others = Vec::new();
        for said in &result.parts {
            self.note_cache_mark(said);
            match said {
                Part::Text { .. } => texts.push(part(said, &self.quirks)?),
                other => others.push(part(other, &self.quirks)?),
            }
        }
        if result.is_error {
            mark_error(&mut texts);
        }
        if !others.is_empty() {
            if texts.is_empty() {
                let text = "See the user's next message.".into();
                texts.push(PartShown::Text { text });
            }
            let note = format!("What the call {} of {} shows:", result.id, result.name);
            shown_by_results.push(PartShown::Text { text: note.into() });
            shown_by_results.append(&mut others);
        }
        self.messages.push(MessageShown::Tool {
            tool_call_id: &result.id,
            content: ContentShown::of(texts).unwrap_or(ContentShown::Text("".into())),
        });
        Ok(())
    }

    fn note_cache_mark(&mut self, said: &Part<'_>) {
        self.has_cache_marks |= match said {
            Part::Text { cache, .. } => cache.is_some(),
            Part::Image(media) | Part::Audio(media) | Part::File(media) => media.cache.is_some(),
            Part::ToolCall(call) => call.cache.is_some(),
            Part::ToolResult(result) => result.cache.is_some(),
            Part::Thinking(_) | Part::Refusal(_) => false,
        };
    }
}

/// Puts a word in front of an error that does not say that it is one.
fn mark_error(texts: &mut Vec<PartShown<'_>>) {
    const WORD: &str = "Error";
    let Some(PartShown::Text { text }) = texts.first_mut() else {
        let text = WORD.into();
        return texts.insert(0, PartShown::Text { text });
    };
    let begins = text.get(..WORD.len());
    if !begins.is_some_and(|begins| begins.eq_ignore_ascii_case(WORD)) {
        *text = format!("{WORD}: {text}").into();
    }
}

/// The word JSON must be in the prompt of providers that are asked for it.
fn schema_instruction(schema: &Schema<'_>) -> String {
    let Schema {
        description,
        schema,
        ..
    } = schema;
    let about = description.as_deref().unwrap_or_default();
    let line = if about.is_empty() { "" } else { "\n" };
    format!(
        "Answer with one JSON value and nothing else. It must fit this JSON schema:\n\
         {about}{line}{schema}"
    )
}
