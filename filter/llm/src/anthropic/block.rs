//! Blocks of content as they are printed, in requests and in answers.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::conversation::CacheMark;
use crate::json::write_text;

/// A block.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'r> {
    Text {
        text: &'r str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'r>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Document {
        source: Source<'r>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'r str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: Cow<'r, str>,
        name: &'r str,
        input: Cow<'r, RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolResult {
        tool_use_id: Cow<'r, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Self>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'r str,
        signature: &'r str,
    },
    RedactedThinking {
        data: &'r str,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'r> {
    Base64 { media_type: &'r str, data: &'r str },
    Url { url: &'r str },
    File { file_id: &'r str },
}

/// A cache mark as it is told.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CacheControl {
    pub(super) const fn of(mark: CacheMark) -> Self {
        Self {
            kind: "ephemeral",
            ttl: match mark {
                CacheMark::FiveMinutes => None,
                CacheMark::OneHour => Some("1h"),
            },
        }
    }
}

impl Block<'_> {
    pub(super) const fn is_result(&self) -> bool {
        matches!(self, Self::ToolResult { .. })
    }
}

/// A call's input. What a model wrote may be no object: it is then told as the only member of one,
/// so that it is not lost.
pub(crate) fn input(arguments: &str) -> Cow<'_, RawValue> {
    let is_object = arguments.trim_ascii_start().starts_with('{');
    if let Ok(raw) = serde_json::from_str::<&RawValue>(arguments)
        && is_object
    {
        return Cow::Borrowed(raw);
    }
    let text = match arguments.trim_ascii() {
        "" => "{}".to_owned(),
        _ => {
            let mut json = br#"{"arguments":"#.to_vec();
            write_text(&mut json, arguments);
            json.push(b'}');
            String::from_utf8(json).unwrap_or_default()
        }
    };
    RawValue::from_string(text).map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned)
}
