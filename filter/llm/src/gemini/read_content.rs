//! Reads `contents`: who says what, and which call a response answers.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read_request::{is_of_model, take};
use crate::conversation::{
    Media, MediaSource, Message, Part, Role, Thinking, ToolCall, ToolResult,
};
use crate::request::RequestFault;
use crate::request::object::{Members, Object, Place, text};

/// The conversation so far.
#[derive(Default)]
pub(super) struct Contents<'a> {
    pub(super) messages: Vec<Message<'a>>,
    calls: Vec<Called<'a>>,
}

/// A call, for the response that will come.
struct Called<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    is_answered: bool,
}

impl<'a> Contents<'a> {
    pub(super) fn add(
        &mut self,
        content: Members<'a>,
        place: &Place<'_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let mut content = content.at(place);
        let role = match content.take_text("role")?.as_deref() {
            None | Some("user" | "function") => Role::User,
            Some("model") => Role::Assistant,
            Some(_) => return Err(content.member("role").fault("`user` or `model`")),
        };
        let place = content.member("parts");
        let mut parts = Vec::new();
        for (index, part) in content
            .take_objects("parts")?
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            let place = Place::Element(&place, index);
            self.add_part(part.at(&place), &mut parts, left_out)?;
        }
        content.leave(left_out);
        if role == Role::User && parts.iter().any(is_of_model) {
            return Err(place.fault("without calls and thoughts of the model"));
        }
        self.messages.push(Message { role, parts });
        Ok(())
    }

    fn add_part(
        &mut self,
        mut part: Object<'a, '_>,
        parts: &mut Vec<Part<'a>>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), RequestFault> {
        let signature = take(&mut part, "thoughtSignature", "thought_signature")?.and_then(text);
        let is_thought = part.take_flag("thought")?.unwrap_or(false);
        if let Some(text) = part.take_text("text")? {
            parts.extend(said(text, is_thought, signature));
        } else if let Some(call) = take(&mut part, "functionCall", "function_call")? {
            let place = part.member("functionCall");
            let call = self.call(Object::read(call, &place)?, signature, left_out)?;
            parts.push(Part::ToolCall(call));
        } else if let Some(response) = take(&mut part, "functionResponse", "function_response")? {
            let place = part.member("functionResponse");
            let result = self.result(Object::read(response, &place)?, left_out)?;
            parts.push(Part::ToolResult(result));
        } else if let Some(data) = take(&mut part, "inlineData", "inline_data")? {
            let place = part.member("inlineData");
            parts.push(inline_data(Object::read(data, &place)?, left_out)?);
        } else if let Some(data) = take(&mut part, "fileData", "file_data")? {
            let place = part.member("fileData");
            parts.push(file_data(Object::read(data, &place)?, left_out)?);
        }
        part.leave(left_out);
        Ok(())
    }

    fn call(
        &mut self,
        mut call: Object<'a, '_>,
        signature: Option<Cow<'a, str>>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<ToolCall<'a>, RequestFault> {
        let name = call.take_text("name")?;
        let name = name.ok_or_else(|| call.missing("name"))?;
        let made = || Cow::Owned(format!("call_{}", self.calls.len()));
        let id = call.take_text("id")?.unwrap_or_else(made);
        let arguments = call.take("args")?.map_or("{}", RawValue::get);
        call.leave(left_out);
        self.calls.push(Called {
            id: id.clone(),
            name: name.clone(),
            is_answered: false,
        });
        Ok(ToolCall {
            id,
            name,
            arguments: arguments.into(),
            signature,
            cache: None,
        })
    }

    /// A response without an id answers the first call of its name that has no answer.
    fn result(
        &mut self,
        mut response: Object<'a, '_>,
        left_out: &mut Vec<Cow<'a, str>>,
    ) -> Result<ToolResult<'a>, RequestFault> {
        let name = response.take_text("name")?;
        let name = name.ok_or_else(|| response.missing("name"))?;
        let said = response.take_text("id")?;
        let is_its = |called: &&mut Called<'_>| match &said {
            Some(id) => called.id == *id,
            None => called.name == name && !called.is_answered,
        };
        let called = self.calls.iter_mut().find(is_its);
        let id = called.map(|called| {
            called.is_answered = true;
            called.id.clone()
        });
        let unasked = || response.member("name").fault("of a call before it");
        let id = id.or(said).ok_or_else(unasked)?;
        let (text, is_error) = response.take("response")?.map(output).unwrap_or_default();
        response.leave(left_out);
        let part = Part::Text { text, cache: None };
        Ok(ToolResult {
            id,
            name,
            parts: vec![part],
            is_error,
            cache: None,
        })
    }
}

/// A signature of text that is no thought stands before it, as a thought without words.
fn said<'a>(
    text: Cow<'a, str>,
    is_thought: bool,
    signature: Option<Cow<'a, str>>,
) -> impl Iterator<Item = Part<'a>> {
    let is_empty = text.is_empty();
    let (thought, words) = match (is_thought, signature) {
        (true, signature) => (Some((text, signature)), None),
        (false, Some(signature)) => (Some((Cow::Borrowed(""), Some(signature))), Some(text)),
        (false, None) => (None, Some(text)),
    };
    let thought =
        thought.map(|(text, signature)| Part::Thinking(Thinking::Shown { text, signature }));
    let words = words.filter(|_| !is_empty);
    let words = words.map(|text| Part::Text { text, cache: None });
    thought.into_iter().chain(words)
}

/// What a tool gave back, and whether it failed: the one member that Google's SDKs put results
/// into, or else the whole object.
fn output(response: &RawValue) -> (Cow<'_, str>, bool) {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wrapped<'a> {
        #[serde(borrow, alias = "output")]
        result: &'a RawValue,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Failed<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    let plain = |value| text(value).unwrap_or(Cow::Borrowed(RawValue::get(value)));
    if let Ok(Failed { error }) = serde_json::from_str(response.get()) {
        return (plain(error), true);
    }
    match serde_json::from_str(response.get()) {
        Ok(Wrapped { result }) => (plain(result), false),
        Err(_) => (Cow::Borrowed(response.get()), false),
    }
}

fn inline_data<'a>(
    mut data: Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Part<'a>, RequestFault> {
    let media_type = take(&mut data, "mimeType", "mime_type")?.and_then(text);
    let media_type = media_type.ok_or_else(|| data.missing("mimeType"))?;
    let bytes = data.take_text("data")?;
    let bytes = bytes.ok_or_else(|| data.missing("data"))?;
    let name = take(&mut data, "displayName", "display_name")?.and_then(text);
    data.leave(left_out);
    let source = MediaSource::Base64 {
        media_type: media_type.clone(),
        data: bytes,
    };
    Ok(media(&media_type, source, name))
}

fn file_data<'a>(
    mut data: Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Part<'a>, RequestFault> {
    let media_type = take(&mut data, "mimeType", "mime_type")?.and_then(text);
    let uri = take(&mut data, "fileUri", "file_uri")?.and_then(text);
    let uri = uri.ok_or_else(|| data.missing("fileUri"))?;
    let name = take(&mut data, "displayName", "display_name")?.and_then(text);
    data.leave(left_out);
    let media_type = media_type.unwrap_or_default();
    Ok(media(&media_type, MediaSource::Url(uri), name))
}

fn media<'a>(media_type: &str, source: MediaSource<'a>, name: Option<Cow<'a, str>>) -> Part<'a> {
    let media = Media {
        source,
        name,
        detail: None,
        cache: None,
    };
    match media_type.split('/').next() {
        Some("image") => Part::Image(media),
        Some("audio") => Part::Audio(media),
        _ => Part::File(media),
    }
}
