//! Reads `instructions` and `input`: who says what, and which call a result answers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::read_content;
use super::read_request::kept_elsewhere;
use super::thought::Sealed;
use crate::conversation::{Message, Part, Role, System, Thinking, ToolCall, ToolResult};
use crate::openai::chat::read_tools::arguments;
use crate::openai::chat::thought::split_id;
use crate::request::RequestFault;
use crate::request::object::{Members, Object, Place, objects, text};

/// Stands between the pieces of a summary.
const BETWEEN_PIECES: &str = "\n\n";

/// The conversation so far.
#[derive(Default)]
pub(super) struct Transcript<'a> {
    pub(super) system: Vec<System<'a>>,
    pub(super) messages: Vec<Message<'a>>,
    /// The tool that each call's id called.
    called: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// Takes `instructions` and `input` of the body.
pub(super) fn read<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Transcript<'a>, RequestFault> {
    let mut transcript = Transcript::default();
    let instructions = body.take_text("instructions")?;
    if let Some(text) = instructions.filter(|text| !text.is_empty()) {
        transcript.system.push(System { text, cache: None });
    }
    let place = body.member("input");
    let input = body.take("input")?.ok_or_else(|| body.missing("input"))?;
    if let Some(text) = text(input) {
        let said = Part::Text { text, cache: None };
        transcript.push(Role::User, vec![said]);
        return Ok(transcript);
    }
    let items = objects(input).ok_or_else(|| place.fault("a string or an array of items"))?;
    for (index, item) in items.into_iter().enumerate() {
        transcript.add(item, &Place::Element(&place, index), left_out)?;
    }
    Ok(transcript)
}

impl<'a> Transcript<'a> {
    fn add(
        &mut self,
        item: Members<'a>,
        place: &Place<'_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let mut item = item.at(place);
        let kind = item.take_text("type")?;
        match kind.as_deref() {
            None | Some("message") => self.add_message(&mut item, left_out)?,
            Some("function_call") => self.add_call(&mut item, left_out)?,
            Some("function_call_output") => self.add_result(&mut item, left_out)?,
            Some("reasoning") => self.add_reasoning(&mut item, left_out)?,
            Some("item_reference") => return Err(kept_elsewhere(place)),
            Some(other) => {
                left_out.push(item.told_as(other).into());
                return Ok(());
            }
        }
        // What an item is named, and how far it has come, means nothing elsewhere.
        item.take("id")?;
        item.take("status")?;
        item.leave(left_out);
        Ok(())
    }

    /// What an assistant says is one turn, however many items it is in.
    fn push(&mut self, role: Role, parts: Vec<Part<'a>>) {
        match self.messages.last_mut() {
            Some(last) if role == Role::Assistant && last.role == role => last.parts.extend(parts),
            _ => self.messages.push(Message { role, parts }),
        }
    }

    fn add_message(
        &mut self,
        item: &mut Object<'a, '_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let role = item.take_text("role")?;
        let place = item.member("content");
        let content = item.take("content")?;
        let content = content.ok_or_else(|| item.missing("content"))?;
        let parts = read_content::read(content, &place, left_out)?;
        match role.as_deref() {
            Some("user") => self.push(Role::User, parts),
            Some("assistant") => self.push(Role::Assistant, parts),
            Some("system" | "developer") => {
                for part in parts {
                    let Part::Text { text, cache } = part else {
                        return Err(place.fault("text"));
                    };
                    self.system.push(System { text, cache });
                }
            }
            _ => {
                let wanted = "`user`, `assistant`, `system` or `developer`";
                return Err(item.member("role").fault(wanted));
            }
        }
        Ok(())
    }

    fn add_call(
        &mut self,
        item: &mut Object<'a, '_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let id = item.take_text("call_id")?;
        let (id, signature) = split_id(id.ok_or_else(|| item.missing("call_id"))?);
        let name = item.take_text("name")?;
        let name = name.ok_or_else(|| item.missing("name"))?;
        self.called.insert(id.clone(), name.clone());
        let call = ToolCall {
            id,
            name,
            arguments: arguments(item.take("arguments")?),
            signature,
            cache: read_content::cache_mark(item, left_out)?,
        };
        self.push(Role::Assistant, vec![Part::ToolCall(call)]);
        Ok(())
    }

    fn add_result(
        &mut self,
        item: &mut Object<'a, '_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let id = item.take_text("call_id")?;
        let (id, _) = split_id(id.ok_or_else(|| item.missing("call_id"))?);
        let said = item.take_text("name")?;
        let called = self.called.get(&id).cloned();
        let place = item.member("output");
        let output = item.take("output")?;
        let output = output.ok_or_else(|| item.missing("output"))?;
        let result = ToolResult {
            name: called.or(said).unwrap_or_default(),
            id,
            parts: read_content::read(output, &place, left_out)?,
            is_error: false,
            cache: read_content::cache_mark(item, left_out)?,
        };
        self.push(Role::User, vec![Part::ToolResult(result)]);
        Ok(())
    }

    /// Reasoning that another has encrypted is told by its summary only.
    fn add_reasoning(
        &mut self,
        item: &mut Object<'a, '_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let place = item.member("encrypted_content");
        let summary = pieces(item, "summary")?;
        let content = pieces(item, "content")?;
        let text = content.or(summary);
        let encrypted = item.take_text("encrypted_content")?;
        let is_encrypted = encrypted.is_some();
        let thinking = match encrypted.and_then(Sealed::read) {
            Some(Sealed::Redacted(data)) => Some(Thinking::Redacted { data }),
            Some(Sealed::Signature(signature)) => Some(Thinking::Shown {
                text: text.unwrap_or_default(),
                signature: Some(signature),
            }),
            None => {
                if is_encrypted {
                    left_out.push(place.to_string().into());
                }
                text.map(|text| Thinking::Shown {
                    text,
                    signature: None,
                })
            }
        };
        if let Some(thinking) = thinking {
            self.push(Role::Assistant, vec![Part::Thinking(thinking)]);
        }
        Ok(())
    }
}

/// The texts of an array of pieces; `None`: there are none.
fn pieces<'a>(
    item: &mut Object<'a, '_>,
    name: &'static str,
) -> Result<Option<Cow<'a, str>>, RequestFault> {
    let place = item.member(name);
    let mut whole: Option<Cow<'a, str>> = None;
    for piece in item.take_objects(name)?.unwrap_or_default() {
        let text = piece.at(&place).take_text("text")?;
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            continue;
        };
        match &mut whole {
            None => whole = Some(text),
            Some(whole) => {
                let whole = whole.to_mut();
                whole.push_str(BETWEEN_PIECES);
                whole.push_str(&text);
            }
        }
    }
    Ok(whole)
}
