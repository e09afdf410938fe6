//! Blocks of content as they are printed: an object with one member, which says what it is.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::conversation::CacheMark;

/// A block of a message, of a tool's result or of the instructions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Block<'r> {
    Text(&'r str),
    Image(Media<'r>),
    Audio(Media<'r>),
    Document(Document<'r>),
    ToolUse(ToolUse<'r>),
    ToolResult(ToolResult<'r>),
    ReasoningContent(Reasoning<'r>),
    CachePoint(CachePoint),
}

/// An image or sound.
#[derive(Serialize)]
pub(super) struct Media<'r> {
    pub(super) format: &'static str,
    pub(super) source: Source<'r>,
}

#[derive(Serialize)]
pub(super) struct Document<'r> {
    pub(super) format: &'static str,
    pub(super) name: String,
    pub(super) source: Source<'r>,
}

/// Base64.
#[derive(Serialize)]
pub(super) struct Source<'r> {
    pub(super) bytes: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse<'r> {
    pub(super) tool_use_id: Cow<'r, str>,
    pub(super) name: &'r str,
    pub(super) input: Cow<'r, RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult<'r> {
    pub(super) tool_use_id: Cow<'r, str>,
    pub(super) content: Vec<Block<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Reasoning<'r> {
    ReasoningText {
        text: &'r str,
        signature: &'r str,
    },
    /// Base64.
    RedactedContent(&'r str),
}

/// Everything before it may be kept in the prompt cache.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CachePoint {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CachePoint {
    const fn of(mark: CacheMark) -> Self {
        Self {
            kind: "default",
            ttl: match mark {
                CacheMark::FiveMinutes => None,
                CacheMark::OneHour => Some("1h"),
            },
        }
    }
}

/// Cache points that a request may have (Bedrock's guide, "Prompt caching").
const MOST_POINTS: usize = 4;

/// Cache points, counted.
#[derive(Default)]
pub(super) struct CachePoints(usize);

impl CachePoints {
    /// The point of a mark; none beyond the last that is taken.
    pub(super) fn take(&mut self, mark: Option<CacheMark>) -> Option<CachePoint> {
        let mark = mark?;
        self.0 += 1;
        (self.0 <= MOST_POINTS).then(|| CachePoint::of(mark))
    }

    pub(super) const fn are_too_many(&self) -> bool {
        self.0 > MOST_POINTS
    }
}
