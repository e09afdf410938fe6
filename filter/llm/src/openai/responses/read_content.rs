//! Reads the content of a message or of a call's result: a string, or an array of parts.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::conversation::{CacheMark, Media, MediaSource, Part};
use crate::openai::chat::read_content::{self as chat, audio, link, media};
use crate::request::RequestFault;
use crate::request::object::{Members, Object, Place, objects, text};

/// Reads content. Empty text is none.
pub(super) fn read<'a>(
    content: &'a RawValue,
    place: &Place<'_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Vec<Part<'a>>, RequestFault> {
    let mut parts = Vec::new();
    if let Some(text) = text(content) {
        say(text, None, &mut parts);
        return Ok(parts);
    }
    let wanted = "a string or an array of parts";
    let members = objects(content).ok_or_else(|| place.fault(wanted))?;
    for (index, part) in members.into_iter().enumerate() {
        read_part(part, &Place::Element(place, index), &mut parts, left_out)?;
    }
    Ok(parts)
}

fn say<'a>(text: Cow<'a, str>, cache: Option<CacheMark>, parts: &mut Vec<Part<'a>>) {
    if !text.is_empty() {
        parts.push(Part::Text { text, cache });
    }
}

fn read_part<'a>(
    part: Members<'a>,
    place: &Place<'_>,
    parts: &mut Vec<Part<'a>>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<(), RequestFault> {
    let mut part = part.at(place);
    let kind = part.take_text("type")?.unwrap_or_default();
    let cache = cache_mark(&mut part, left_out)?;
    match kind.as_ref() {
        "input_text" | "output_text" | "text" => {
            let text = part.take_text("text")?;
            say(text.ok_or_else(|| part.missing("text"))?, cache, parts);
            // What answers have, and clients send back with them.
            part.take_if("annotations", is_empty);
            part.take_if("logprobs", is_empty);
        }
        "input_image" => parts.push(Part::Image(image(&mut part, cache)?)),
        "input_file" => parts.push(Part::File(file(&mut part, cache)?)),
        "input_audio" => parts.push(Part::Audio(audio(&mut part, cache)?)),
        "refusal" => {
            let refusal = part.take_text("refusal")?;
            let refusal = refusal.ok_or_else(|| part.missing("refusal"))?;
            parts.push(Part::Refusal(refusal));
        }
        _ => {
            let wanted = "`input_text`, `output_text`, `input_image`, `input_file`, \
                          `input_audio` or `refusal`";
            return Err(part.member("type").fault(wanted));
        }
    }
    part.leave(left_out);
    Ok(())
}

fn is_empty(value: &RawValue) -> bool {
    let inner = value.get().strip_prefix('[');
    inner.is_some_and(|inner| inner.trim_ascii_start().starts_with(']'))
}

fn image<'a>(
    part: &mut Object<'a, '_>,
    cache: Option<CacheMark>,
) -> Result<Media<'a>, RequestFault> {
    let source = match (part.take_text("image_url")?, part.take_text("file_id")?) {
        (Some(url), _) => link(url, &part.member("image_url"))?,
        (None, Some(id)) => MediaSource::Id(id),
        (None, None) => return Err(part.missing("image_url")),
    };
    Ok(Media {
        detail: part.take_text("detail")?,
        ..media(source, cache)
    })
}

fn file<'a>(
    part: &mut Object<'a, '_>,
    cache: Option<CacheMark>,
) -> Result<Media<'a>, RequestFault> {
    let data = part.take_text("file_data")?;
    let url = part.take_text("file_url")?;
    let id = part.take_text("file_id")?;
    let source = match (data, url, id) {
        (Some(data), ..) if data.starts_with("data:") => link(data, &part.member("file_data"))?,
        // Bare Base64 is of the one kind of file that OpenAI began with.
        (Some(data), ..) => MediaSource::Base64 {
            media_type: "application/pdf".into(),
            data,
        },
        (None, Some(url), _) => MediaSource::Url(url),
        (None, None, Some(id)) => MediaSource::Id(id),
        (None, None, None) => return Err(part.missing("file_data")),
    };
    Ok(Media {
        name: part.take_text("filename")?,
        ..media(source, cache)
    })
}

/// Where a prefix ends that is to be cached: OpenAI's `prompt_cache_breakpoint`, or Anthropic's
/// mark. OpenAI says how long at least, so that the longest mark that others know stands for what
/// is longer than the shortest.
pub(super) fn cache_mark<'a>(
    part: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Option<CacheMark>, RequestFault> {
    let place = part.member("prompt_cache_breakpoint");
    let mark = chat::cache_mark(part, left_out)?;
    let Some(end) = part.take("prompt_cache_breakpoint")? else {
        return Ok(mark);
    };
    let mut end = Object::read(end, &place)?;
    end.take("mode")?;
    let is_short = end.take_text("ttl")?.is_none();
    end.leave(left_out);
    let lasts = if is_short {
        CacheMark::FiveMinutes
    } else {
        CacheMark::OneHour
    };
    Ok(Some(mark.unwrap_or(lasts)))
}
