//! Reads messages, and their content: a string, or an array of blocks.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::conversation::{
    CacheMark, Media, MediaSource, Message, Part, Role, Thinking, ToolCall, ToolResult,
};
use crate::openai::chat::thought::split_id;
use crate::request::RequestFault;
use crate::request::object::{Members, Object, Place, objects, text};

/// What is known of the conversation before.
#[derive(Default)]
pub(super) struct Transcript<'a> {
    /// The tool that each call's id called.
    called: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

type LeftOut<'a> = Vec<Cow<'a, str>>;

pub(super) fn message<'a>(
    message: Members<'a>,
    place: &Place<'_>,
    transcript: &mut Transcript<'a>,
    left_out: &mut LeftOut<'a>,
) -> Result<Message<'a>, RequestFault> {
    let mut message = message.at(place);
    let role = match message.take_text("role")?.as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err(message.member("role").fault("`user` or `assistant`")),
    };
    let place = message.member("content");
    let content = message.take("content")?;
    let content = content.ok_or_else(|| message.missing("content"))?;
    let parts = read(content, &place, transcript, left_out)?;
    message.leave(left_out);
    Ok(Message { role, parts })
}

/// Reads content. Empty text is none.
pub(super) fn read<'a>(
    content: &'a RawValue,
    place: &Place<'_>,
    transcript: &mut Transcript<'a>,
    left_out: &mut LeftOut<'a>,
) -> Result<Vec<Part<'a>>, RequestFault> {
    if let Some(text) = text(content) {
        let said = Part::Text { text, cache: None };
        return Ok(Some(said)
            .filter(|part| !is_empty(part))
            .into_iter()
            .collect());
    }
    let wanted = "a string or an array of blocks";
    let blocks = objects(content).ok_or_else(|| place.fault(wanted))?;
    let mut parts = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.into_iter().enumerate() {
        let place = Place::Element(place, index);
        let part = read_block(block.at(&place), transcript, left_out)?;
        parts.extend(part.filter(|part| !is_empty(part)));
    }
    Ok(parts)
}

fn is_empty(part: &Part<'_>) -> bool {
    matches!(part, Part::Text { text, .. } if text.is_empty())
}

fn read_block<'a>(
    mut block: Object<'a, '_>,
    transcript: &mut Transcript<'a>,
    left_out: &mut LeftOut<'a>,
) -> Result<Option<Part<'a>>, RequestFault> {
    let kind = block.take_text("type")?;
    let kind = kind.ok_or_else(|| block.missing("type"))?;
    let cache = cache_mark(&mut block, left_out)?;
    let part = match kind.as_ref() {
        "text" => {
            let text = block.take_text("text")?;
            let text = text.ok_or_else(|| block.missing("text"))?;
            Part::Text { text, cache }
        }
        "image" => Part::Image(media(&mut block, cache)?),
        "document" => document(&mut block, cache)?,
        "tool_use" => Part::ToolCall(tool_call(&mut block, cache, transcript)?),
        "tool_result" => Part::ToolResult(result(&mut block, cache, transcript, left_out)?),
        "thinking" => Part::Thinking(Thinking::Shown {
            text: block.take_text("thinking")?.unwrap_or_default(),
            signature: block.take_text("signature")?.filter(|it| !it.is_empty()),
        }),
        "redacted_thinking" => {
            let data = block.take_text("data")?;
            let data = data.ok_or_else(|| block.missing("data"))?;
            Part::Thinking(Thinking::Redacted { data })
        }
        // Anthropic's own tools, and what they found.
        other => {
            left_out.push(block.told_as(other).into());
            return Ok(None);
        }
    };
    block.leave(left_out);
    Ok(Some(part))
}

fn tool_call<'a>(
    block: &mut Object<'a, '_>,
    cache: Option<CacheMark>,
    transcript: &mut Transcript<'a>,
) -> Result<ToolCall<'a>, RequestFault> {
    let id = block.take_text("id")?;
    let (id, signature) = split_id(id.ok_or_else(|| block.missing("id"))?);
    let name = block.take_text("name")?;
    let name = name.ok_or_else(|| block.missing("name"))?;
    let arguments = block.take("input")?.map_or("{}", RawValue::get);
    transcript.called.insert(id.clone(), name.clone());
    Ok(ToolCall {
        id,
        name,
        arguments: arguments.into(),
        signature,
        cache,
    })
}

fn result<'a>(
    block: &mut Object<'a, '_>,
    cache: Option<CacheMark>,
    transcript: &mut Transcript<'a>,
    left_out: &mut LeftOut<'a>,
) -> Result<ToolResult<'a>, RequestFault> {
    let id = block.take_text("tool_use_id")?;
    let (id, _) = split_id(id.ok_or_else(|| block.missing("tool_use_id"))?);
    let name = transcript.called.get(&id).cloned().unwrap_or_default();
    let place = block.member("content");
    let parts = match block.take("content")? {
        Some(content) => read(content, &place, transcript, left_out)?,
        None => Vec::new(),
    };
    Ok(ToolResult {
        id,
        name,
        parts,
        is_error: block.take_flag("is_error")?.unwrap_or(false),
        cache,
    })
}

fn media<'a>(
    block: &mut Object<'a, '_>,
    cache: Option<CacheMark>,
) -> Result<Media<'a>, RequestFault> {
    let place = block.member("source");
    let source = block.take("source")?;
    let mut source = Object::read(source.ok_or_else(|| block.missing("source"))?, &place)?;
    let kind = source.take_text("type")?;
    let read = match kind.as_deref() {
        Some("base64") => {
            let media_type = source.take_text("media_type")?;
            let data = source.take_text("data")?;
            MediaSource::Base64 {
                media_type: media_type.ok_or_else(|| source.missing("media_type"))?,
                data: data.ok_or_else(|| source.missing("data"))?,
            }
        }
        Some("url") => {
            let url = source.take_text("url")?;
            MediaSource::Url(url.ok_or_else(|| source.missing("url"))?)
        }
        Some("file") => {
            let id = source.take_text("file_id")?;
            MediaSource::Id(id.ok_or_else(|| source.missing("file_id"))?)
        }
        _ => return Err(source.member("type").fault("`base64`, `url` or `file`")),
    };
    Ok(Media {
        source: read,
        name: block.take_text("title")?,
        detail: None,
        cache,
    })
}

/// A document of plain text is text, with its title before it.
fn document<'a>(
    block: &mut Object<'a, '_>,
    cache: Option<CacheMark>,
) -> Result<Part<'a>, RequestFault> {
    let mut plain = None;
    block.take_if("source", |source| {
        plain = plain_text(source);
        plain.is_some()
    });
    let Some(data) = plain else {
        return Ok(Part::File(media(block, cache)?));
    };
    let text = match block.take_text("title")? {
        Some(title) => format!("{title}\n\n{data}"),
        None => data,
    };
    Ok(Part::Text {
        text: text.into(),
        cache,
    })
}

/// The text of a source of plain text.
fn plain_text(source: &RawValue) -> Option<String> {
    let place = Place::Body;
    let mut source = Object::read(source, &place).ok()?;
    let kind = source.take_text("type").ok()??;
    let data = source.take_text("data").ok()??;
    (kind == "text").then(|| data.into_owned())
}

/// Where the prompt up to here may be kept in the cache.
pub(super) fn cache_mark<'a>(
    object: &mut Object<'a, '_>,
    left_out: &mut LeftOut<'a>,
) -> Result<Option<CacheMark>, RequestFault> {
    let place = object.member("cache_control");
    let Some(mark) = object.take("cache_control")? else {
        return Ok(None);
    };
    let mut mark = Object::read(mark, &place)?;
    mark.take("type")?;
    let ttl = mark.take_text("ttl")?;
    mark.leave(left_out);
    Ok(Some(match ttl.as_deref() {
        Some("1h") => CacheMark::OneHour,
        _ => CacheMark::FiveMinutes,
    }))
}
