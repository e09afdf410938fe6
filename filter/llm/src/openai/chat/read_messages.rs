//! Reads `messages`: who says what, and which call a result answers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::read_content::{self, cache_mark};
use super::read_tools::arguments;
use super::thought::{reasoning, split_id, thinking};
use crate::conversation::{Message, Part, Role, System, ToolCall, ToolResult};
use crate::request::RequestFault;
use crate::request::object::{Members, Object, Place};

/// The conversation so far.
#[derive(Default)]
pub(super) struct Transcript<'a> {
    pub(super) system: Vec<System<'a>>,
    pub(super) messages: Vec<Message<'a>>,
    /// The tool that each call's id called.
    called: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// The made id of the last call in the older form, which has none.
    function_call: Cow<'a, str>,
}

/// Takes `messages` of the body.
pub(super) fn read<'a>(
    body: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Transcript<'a>, RequestFault> {
    let place = body.member("messages");
    let messages = body
        .take_objects("messages")?
        .ok_or_else(|| body.missing("messages"))?;
    let mut transcript = Transcript::default();
    for (index, message) in messages.into_iter().enumerate() {
        transcript.add(message, &Place::Element(&place, index), index, left_out)?;
    }
    Ok(transcript)
}

impl<'a> Transcript<'a> {
    fn add(
        &mut self,
        message: Members<'a>,
        place: &Place<'_>,
        index: usize,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let mut message = message.at(place);
        let role = message.take_text("role")?;
        match role.as_deref() {
            Some("system" | "developer") => self.add_system(&mut message, left_out)?,
            Some("user") => {
                let parts = content(&mut message, left_out)?;
                self.push(Role::User, parts);
            }
            Some("assistant") => self.add_assistant(&mut message, index, left_out)?,
            Some("tool") => self.add_result(&mut message, left_out)?,
            Some("function") => self.add_function_result(&mut message, left_out)?,
            _ => {
                let wanted = "`system`, `developer`, `user`, `assistant`, `tool` or `function`";
                return Err(message.member("role").fault(wanted));
            }
        }
        message.leave(left_out);
        Ok(())
    }

    fn push(&mut self, role: Role, parts: Vec<Part<'a>>) {
        self.messages.push(Message { role, parts });
    }

    fn add_system(
        &mut self,
        message: &mut Object<'a, '_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        for part in content(message, left_out)? {
            let Part::Text { text, cache } = part else {
                return Err(message.member("content").fault("text"));
            };
            self.system.push(System { text, cache });
        }
        Ok(())
    }

    fn add_assistant(
        &mut self,
        message: &mut Object<'a, '_>,
        index: usize,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let text = reasoning(
            message.take("reasoning_content")?,
            message.take("reasoning")?,
        );
        let mut parts = thinking(message.take("thinking_blocks")?, text);
        parts.extend(content(message, left_out)?);
        let refusal = message.take_text("refusal")?;
        let refusal = refusal.filter(|refusal| !refusal.is_empty());
        parts.extend(refusal.map(Part::Refusal));
        let place = message.member("tool_calls");
        let calls = message.take_objects("tool_calls")?.unwrap_or_default();
        for (at, call) in calls.into_iter().enumerate() {
            let place = Place::Element(&place, at);
            let mut call = call.at(&place);
            parts.push(Part::ToolCall(self.tool_call(&mut call, left_out)?));
        }
        let place = message.member("function_call");
        if let Some(function) = message.take("function_call")? {
            let (name, arguments) = called(&mut Object::read(function, &place)?)?;
            let id: Cow<'a, str> = format!("function_call_{index}").into();
            self.function_call = id.clone();
            parts.push(Part::ToolCall(self.call(id, None, name, arguments)));
        }
        self.push(Role::Assistant, parts);
        Ok(())
    }

    fn tool_call(
        &mut self,
        call: &mut Object<'a, '_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<ToolCall<'a>, RequestFault> {
        let kind = call.take_text("type")?;
        if kind.is_some_and(|kind| kind != "function") {
            return Err(call.member("type").fault("`function` for this model"));
        }
        let id = call.take_text("id")?.ok_or_else(|| call.missing("id"))?;
        let (id, signature) = split_id(id);
        let place = call.member("function");
        let function = call.take("function")?;
        let function = function.ok_or_else(|| call.missing("function"))?;
        let (name, arguments) = called(&mut Object::read(function, &place)?)?;
        let cache = cache_mark(call, left_out)?;
        let read = self.call(id, signature, name, arguments);
        Ok(ToolCall { cache, ..read })
    }

    fn call(
        &mut self,
        id: Cow<'a, str>,
        signature: Option<Cow<'a, str>>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    ) -> ToolCall<'a> {
        self.called.insert(id.clone(), name.clone());
        ToolCall {
            id,
            name,
            arguments,
            signature,
            cache: None,
        }
    }

    fn add_result(
        &mut self,
        message: &mut Object<'a, '_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let id = message.take_text("tool_call_id")?;
        let id = id.ok_or_else(|| message.missing("tool_call_id"))?;
        let (id, _) = split_id(id);
        let name = self.called.get(&id).cloned();
        let said = message.take_text("name")?;
        let name = name.or(said).unwrap_or_default();
        self.push_result(id, name, message, left_out)
    }

    fn add_function_result(
        &mut self,
        message: &mut Object<'a, '_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let name = message.take_text("name")?;
        let name = name.ok_or_else(|| message.missing("name"))?;
        self.push_result(self.function_call.clone(), name, message, left_out)
    }

    fn push_result(
        &mut self,
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        message: &mut Object<'a, '_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let result = ToolResult {
            id,
            name,
            parts: content(message, left_out)?,
            is_error: false,
            cache: cache_mark(message, left_out)?,
        };
        self.push(Role::User, vec![Part::ToolResult(result)]);
        Ok(())
    }
}

fn content<'a>(
    message: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Vec<Part<'a>>, RequestFault> {
    let place = message.member("content");
    match message.take("content")? {
        Some(content) => read_content::read(content, &place, left_out),
        None => Ok(Vec::new()),
    }
}

/// The name and the arguments of a called function.
fn called<'a>(function: &mut Object<'a, '_>) -> Result<(Cow<'a, str>, Cow<'a, str>), RequestFault> {
    let name = function.take_text("name")?;
    let name = name.ok_or_else(|| function.missing("name"))?;
    Ok((name, arguments(function.take("arguments")?)))
}
