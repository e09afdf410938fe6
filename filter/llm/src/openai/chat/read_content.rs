//! Reads the content of a message: a string, or an array of parts.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::thought::{filled, thinking};
use crate::conversation::{CacheMark, Media, MediaSource, Part};
use crate::request::RequestFault;
use crate::request::object::{Members, Object, Place, objects, text};

/// Reads content. Empty text is none.
pub(super) fn read<'a>(
    content: &'a RawValue,
    place: &Place<'_>,
    left_out: &mut Vec<Cow<'a, str>>,
) -> Result<Vec<Part<'a>>, RequestFault> {
    if let Some(text) = text(content) {
        let is_said = !text.is_empty();
        return Ok(is_said
            .then_some(Part::Text { text, cache: None })
            .into_iter()
            .collect());
    }
    let wanted = "a string or an array of parts";
    let members = objects(content).ok_or_else(|| place.fault(wanted))?;
    let mut parts = Vec::with_capacity(members.len());
    for (index, part) in members.into_iter().enumerate() {
        read_part(part, &Place::Element(place, index), &mut parts, left_out)?;
    }
    Ok(parts)
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
        "text" => {
            let text = part.take_text("text")?;
            let text = text.ok_or_else(|| part.missing("text"))?;
            if !text.is_empty() {
                parts.push(Part::Text { text, cache });
            }
        }
        "image_url" => parts.push(Part::Image(image(&mut part, cache)?)),
        "input_audio" => parts.push(Part::Audio(audio(&mut part, cache)?)),
        "file" => parts.push(Part::File(file(&mut part, cache)?)),
        "refusal" => {
            let refusal = part.take_text("refusal")?;
            parts.push(Part::Refusal(
                refusal.ok_or_else(|| part.missing("refusal"))?,
            ));
        }
        "thinking" => parts.extend(thinking(None, thought(part.take("thinking")?))),
        _ => {
            let wanted = "`text`, `image_url`, `input_audio`, `file` or `refusal`";
            return Err(part.member("type").fault(wanted));
        }
    }
    part.leave(left_out);
    Ok(())
}

/// The text of Mistral's thinking: parts of text, or a string.
pub(super) fn thought(member: Option<&RawValue>) -> Option<Cow<'_, str>> {
    if let Some(text) = filled(member) {
        return Some(text);
    }
    let mut whole = String::new();
    for part in objects(member?)? {
        let mut part = part.at(&Place::Body);
        let text = part.take_text("text").ok().flatten();
        whole.push_str(text.as_deref().unwrap_or_default());
    }
    (!whole.is_empty()).then_some(whole.into())
}

pub(in crate::openai) fn media(source: MediaSource<'_>, cache: Option<CacheMark>) -> Media<'_> {
    Media {
        source,
        name: None,
        detail: None,
        cache,
    }
}

fn image<'a>(
    part: &mut Object<'a, '_>,
    cache: Option<CacheMark>,
) -> Result<Media<'a>, RequestFault> {
    let place = part.member("image_url");
    let image = part.take("image_url")?;
    let image = image.ok_or_else(|| part.missing("image_url"))?;
    // Some clients give the link in the place of the object.
    if let Some(url) = text(image) {
        return Ok(media(link(url, &place)?, cache));
    }
    let mut image = Object::read(image, &place)?;
    let url = image.take_text("url")?;
    let source = link(url.ok_or_else(|| image.missing("url"))?, &place)?;
    Ok(Media {
        detail: image.take_text("detail")?,
        ..media(source, cache)
    })
}

pub(in crate::openai) fn audio<'a>(
    part: &mut Object<'a, '_>,
    cache: Option<CacheMark>,
) -> Result<Media<'a>, RequestFault> {
    let place = part.member("input_audio");
    let audio = part.take("input_audio")?;
    let mut audio = Object::read(audio.ok_or_else(|| part.missing("input_audio"))?, &place)?;
    let data = audio.take_text("data")?;
    let format = audio.take_text("format")?;
    let media_type = match format.as_deref() {
        None | Some("wav") => "audio/wav".into(),
        Some("mp3") => "audio/mpeg".into(),
        Some(other) => format!("audio/{other}").into(),
    };
    let data = data.ok_or_else(|| audio.missing("data"))?;
    Ok(media(MediaSource::Base64 { media_type, data }, cache))
}

fn file<'a>(
    part: &mut Object<'a, '_>,
    cache: Option<CacheMark>,
) -> Result<Media<'a>, RequestFault> {
    let place = part.member("file");
    let file = part.take("file")?;
    let mut file = Object::read(file.ok_or_else(|| part.missing("file"))?, &place)?;
    let source = match (file.take_text("file_data")?, file.take_text("file_id")?) {
        (Some(data), _) if data.starts_with("data:") || data.starts_with("http") => {
            link(data, &file.member("file_data"))?
        }
        // Bare Base64 is of the one kind of file that OpenAI began with.
        (Some(data), _) => MediaSource::Base64 {
            media_type: "application/pdf".into(),
            data,
        },
        (None, Some(id)) => MediaSource::Id(id),
        (None, None) => return Err(file.missing("file_data")),
    };
    Ok(Media {
        name: file.take_text("filename")?,
        ..media(source, cache)
    })
}

/// What a link holds, or leads to.
pub(in crate::openai) fn link<'a>(
    url: Cow<'a, str>,
    place: &Place<'_>,
) -> Result<MediaSource<'a>, RequestFault> {
    if !url.starts_with("data:") {
        return Ok(MediaSource::Url(url));
    }
    let (media_type, data) = match url {
        Cow::Borrowed(url) => {
            let (media_type, data) = data_url(url).unzip();
            (media_type.map(Cow::Borrowed), data.map(Cow::Borrowed))
        }
        Cow::Owned(url) => {
            let owned = |text: &str| Cow::Owned(text.to_owned());
            let (media_type, data) = data_url(&url).unzip();
            (media_type.map(owned), data.map(owned))
        }
    };
    match media_type.zip(data) {
        Some((media_type, data)) => Ok(MediaSource::Base64 { media_type, data }),
        None => Err(place.fault("a link, or a `data:` URL with Base64")),
    }
}

/// The media type and the Base64 of a `data:` URL; its other parameters mean nothing to images.
fn data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let parameters = head.strip_suffix(";base64")?;
    let media_type = parameters.split(';').next().unwrap_or_default();
    (!media_type.is_empty()).then_some((media_type, data))
}

/// The mark with which some clients of OpenAI's API name the end of what is to be cached, in
/// Anthropic's form.
pub(in crate::openai) fn cache_mark<'a>(
    object: &mut Object<'a, '_>,
    left_out: &mut Vec<Cow<'a, str>>,
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
