//! Prints the turns of a conversation for Gemini: neighbours of one role are one turn.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::conversation::{
    Media, MediaSource, Message, Part as Said, Role, Thinking, ToolCall, ToolResult,
};
use crate::json::write_text;
use crate::request::RequestFault;
use crate::translate::Quirks;

#[derive(Serialize)]
pub(super) struct Content<'r> {
    role: &'static str,
    parts: Vec<Part<'r>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<FileData<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'r> {
    mime_type: &'r str,
    data: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileData<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'static str>,
    file_uri: &'r str,
}

#[derive(Serialize)]
pub(super) struct FunctionCall<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'r str>,
    name: &'r str,
    args: Cow<'r, RawValue>,
}

#[derive(Serialize)]
struct FunctionResponse<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'r str>,
    name: &'r str,
    response: Box<RawValue>,
}

impl<'r> Part<'r> {
    pub(super) fn text(text: &'r str) -> Self {
        Self {
            text: Some(text),
            ..Self::default()
        }
    }

    /// A thought, or a signature without words.
    pub(super) fn thought(text: &'r str, signature: Option<&'r str>) -> Self {
        Self {
            text: Some(text),
            thought: true,
            thought_signature: signature,
            ..Self::default()
        }
    }

    pub(super) fn call(
        id: Option<&'r str>,
        name: &'r str,
        arguments: &'r str,
        signature: Option<&'r str>,
    ) -> Self {
        Self {
            thought_signature: signature,
            function_call: Some(FunctionCall {
                id,
                name,
                args: object(arguments),
            }),
            ..Self::default()
        }
    }

    fn can_be_signed(&self) -> bool {
        self.thought_signature.is_none() && (self.text.is_some() || self.function_call.is_some())
    }
}

/// A call's arguments. What a model wrote may be no object: it is then told as the only member of
/// one, so that it is not lost.
fn object(arguments: &str) -> Cow<'_, RawValue> {
    let is_object = arguments.trim_ascii_start().starts_with('{');
    if let Ok(raw) = serde_json::from_str::<&RawValue>(arguments)
        && is_object
    {
        return Cow::Borrowed(raw);
    }
    wrapped("arguments", arguments).map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned)
}

/// `{"name":"text"}`.
fn wrapped(name: &str, text: &str) -> Option<Box<RawValue>> {
    let mut json = br#"{""#.to_vec();
    json.extend_from_slice(name.as_bytes());
    json.extend_from_slice(br#"":"#);
    write_text(&mut json, text);
    json.push(b'}');
    RawValue::from_string(String::from_utf8(json).ok()?).ok()
}

/// Turns, as far as they are printed.
pub(super) struct ContentsPrinter<'r> {
    quirks: &'r Quirks,
    contents: Vec<Content<'r>>,
    has_marks: bool,
}

impl<'r> ContentsPrinter<'r> {
    pub(super) const fn new(quirks: &'r Quirks) -> Self {
        Self {
            quirks,
            contents: Vec::new(),
            has_marks: false,
        }
    }

    /// The turns, and whether there were cache marks.
    pub(super) fn finish(self) -> (Vec<Content<'r>>, bool) {
        (self.contents, self.has_marks)
    }

    pub(super) fn add(&mut self, message: &'r Message<'_>) -> Result<(), RequestFault> {
        let mut parts = Vec::with_capacity(message.parts.len());
        for part in &message.parts {
            self.add_part(part, &mut parts)?;
        }
        sign(&mut parts);
        if parts.is_empty() {
            return Ok(());
        }
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "model",
        };
        match self.contents.last_mut() {
            Some(last) if last.role == role => last.parts.append(&mut parts),
            _ => self.contents.push(Content { role, parts }),
        }
        Ok(())
    }

    fn add_part(
        &mut self,
        part: &'r Said<'_>,
        parts: &mut Vec<Part<'r>>,
    ) -> Result<(), RequestFault> {
        match part {
            Said::Text { text, cache } => {
                self.has_marks |= cache.is_some();
                if !text.is_empty() {
                    parts.push(Part::text(text));
                }
            }
            Said::Refusal(text) => parts.push(Part::text(text)),
            Said::Image(media) | Said::Audio(media) | Said::File(media) => {
                parts.push(self.media(media)?);
            }
            Said::ToolCall(call) => parts.push(self.call(call)),
            Said::ToolResult(result) => self.result(result, parts)?,
            Said::Thinking(Thinking::Shown { text, signature }) => {
                parts.push(Part::thought(text, signature.as_deref()));
            }
            // Another provider's secret.
            Said::Thinking(Thinking::Redacted { .. }) => {}
        }
        Ok(())
    }

    fn media(&mut self, media: &'r Media<'_>) -> Result<Part<'r>, RequestFault> {
        self.has_marks |= media.cache.is_some();
        let file_uri = match &media.source {
            MediaSource::Base64 { media_type, data } => {
                let inline_data = Some(InlineData {
                    mime_type: media_type,
                    data,
                });
                return Ok(Part {
                    inline_data,
                    ..Part::default()
                });
            }
            MediaSource::Url(_) if self.quirks.no_links => {
                return Err(RequestFault::untold("a link to an image or a file"));
            }
            MediaSource::Url(uri) | MediaSource::Id(uri) => uri,
        };
        Ok(Part {
            file_data: Some(FileData {
                mime_type: guessed_type(file_uri),
                file_uri,
            }),
            ..Part::default()
        })
    }

    fn call(&mut self, call: &'r ToolCall<'_>) -> Part<'r> {
        self.has_marks |= call.cache.is_some();
        let id = (!self.quirks.is_vertex).then_some(call.id.as_ref());
        Part::call(id, &call.name, &call.arguments, call.signature.as_deref())
    }

    /// A result's text is its response; what is no text follows it.
    fn result(
        &mut self,
        result: &'r ToolResult<'_>,
        parts: &mut Vec<Part<'r>>,
    ) -> Result<(), RequestFault> {
        self.has_marks |= result.cache.is_some();
        if result.name.is_empty() {
            return Err(RequestFault::untold("a tool's result without its call"));
        }
        let texts = result.parts.iter().filter_map(|part| match part {
            Said::Text { text, .. } => Some(text.as_ref()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        parts.push(Part {
            function_response: Some(FunctionResponse {
                id: (!self.quirks.is_vertex).then_some(result.id.as_ref()),
                name: &result.name,
                response: response(text, result.is_error),
            }),
            ..Part::default()
        });
        for part in &result.parts {
            if !matches!(part, Said::Text { .. }) {
                self.add_part(part, parts)?;
            }
        }
        Ok(())
    }
}

/// An object stays the object that it is.
fn response(text: String, is_error: bool) -> Box<RawValue> {
    if is_error {
        return wrapped("error", &text).unwrap_or_else(null);
    }
    if text.trim_ascii_start().starts_with('{')
        && let Ok(raw) = RawValue::from_string(text.clone())
    {
        return raw;
    }
    wrapped("result", &text).unwrap_or_else(null)
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// A signature without words belongs to what comes after it.
fn sign(parts: &mut Vec<Part<'_>>) {
    let mut at = 0;
    while let (Some(thought), Some(next)) = (parts.get(at), parts.get(at + 1)) {
        let is_bare = thought.thought && thought.text == Some("") && !next.thought;
        if is_bare && next.can_be_signed() {
            let signature = parts.remove(at).thought_signature;
            if let Some(next) = parts.get_mut(at) {
                next.thought_signature = signature;
            }
        }
        at += 1;
    }
}

/// The media type that a link's ending tells.
fn guessed_type(uri: &str) -> Option<&'static str> {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let (_, ending) = path.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "pdf" => "application/pdf",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "txt" => "text/plain",
        _ => return None,
    })
}
