//! Prints what a message is made of.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::conversation::{Media, MediaSource, Part};
use crate::request::RequestFault;
use crate::translate::Quirks;

/// A string where that is enough, since not every provider takes arrays everywhere.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ContentShown<'r> {
    Text(Cow<'r, str>),
    Parts(Vec<PartShown<'r>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum PartShown<'r> {
    Text { text: Cow<'r, str> },
    ImageUrl { image_url: ImageShown<'r> },
    InputAudio { input_audio: AudioShown<'r> },
    File { file: FileShown<'r> },
}

#[derive(Serialize)]
pub(super) struct ImageShown<'r> {
    url: Link<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'r str>,
}

#[derive(Serialize)]
pub(super) struct AudioShown<'r> {
    data: &'r str,
    format: &'r str,
}

#[derive(Serialize)]
pub(super) struct FileShown<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Link<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'r str>,
}

/// A link to something, or with it inside.
pub(super) enum Link<'r> {
    Url(&'r str),
    Base64 { media_type: &'r str, data: &'r str },
}

impl<'r> ContentShown<'r> {
    /// `None`: there is none.
    pub(super) fn of(mut parts: Vec<PartShown<'r>>) -> Option<Self> {
        match parts.pop()? {
            PartShown::Text { text } if parts.is_empty() => Some(Self::Text(text)),
            last => {
                parts.push(last);
                Some(Self::Parts(parts))
            }
        }
    }
}

/// Prints a part that is neither call nor result nor thinking nor refusal.
pub(super) fn part<'r>(part: &'r Part<'_>, quirks: &Quirks) -> Result<PartShown<'r>, RequestFault> {
    match part {
        Part::Text { text, .. } | Part::Refusal(text) => Ok(PartShown::Text {
            text: Cow::Borrowed(text),
        }),
        Part::Image(image) => Ok(PartShown::ImageUrl {
            image_url: image_shown(image, quirks)?,
        }),
        Part::Audio(audio) => Ok(PartShown::InputAudio {
            input_audio: audio_shown(audio)?,
        }),
        Part::File(file) => Ok(PartShown::File {
            file: file_shown(file)?,
        }),
        Part::ToolCall(_) | Part::ToolResult(_) | Part::Thinking(_) => {
            Err(fault("a call, a result or thinking in the other's place"))
        }
    }
}

fn fault(what: &str) -> RequestFault {
    RequestFault {
        param: Some("messages"),
        message: format!("`messages` has {what}, which this model's provider does not take"),
        code: Some("invalid_value"),
    }
}

fn image_shown<'r>(image: &'r Media<'_>, quirks: &Quirks) -> Result<ImageShown<'r>, RequestFault> {
    let url = match &image.source {
        MediaSource::Url(_) if quirks.no_links => return Err(fault("an image by its link")),
        MediaSource::Url(url) => Link::Url(url),
        MediaSource::Base64 { media_type, data } => Link::Base64 { media_type, data },
        MediaSource::Id(_) => return Err(fault("an image by its id")),
    };
    Ok(ImageShown {
        url,
        detail: image.detail.as_deref(),
    })
}

fn audio_shown<'r>(audio: &'r Media<'_>) -> Result<AudioShown<'r>, RequestFault> {
    let MediaSource::Base64 { media_type, data } = &audio.source else {
        return Err(fault("audio by its link or id"));
    };
    let format = match media_type.as_ref() {
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        other => other.strip_prefix("audio/").unwrap_or(other),
    };
    Ok(AudioShown { data, format })
}

fn file_shown<'r>(file: &'r Media<'_>) -> Result<FileShown<'r>, RequestFault> {
    let name = file.name.as_deref();
    match &file.source {
        MediaSource::Base64 { media_type, data } => Ok(FileShown {
            // OpenAI wants one beside the data.
            filename: name.or(Some("file")),
            file_data: Some(Link::Base64 { media_type, data }),
            file_id: None,
        }),
        MediaSource::Id(id) => Ok(FileShown {
            filename: name,
            file_data: None,
            file_id: Some(id),
        }),
        MediaSource::Url(_) => Err(fault("a file by its link")),
    }
}

impl fmt::Display for Link<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Base64 { media_type, data } => write!(f, "data:{media_type};base64,{data}"),
        }
    }
}

impl Serialize for Link<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
