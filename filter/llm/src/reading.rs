//! What a meter has read of an answer so far, in the same form for every dialect.

use crate::provider_error::ProviderError;
use crate::usage::Usage;

/// Everything known about an answer from the bytes seen so far.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Reading {
    /// As the provider reported it; a later report replaces an earlier one. `None`: none so far.
    pub usage: Option<Usage>,
    /// The tier the provider says it served, at most 64 bytes.
    pub service_tier: Option<String>,
    /// Why the first choice ended.
    pub finish: Option<Finish>,
    /// Text, a tool call, reasoning, a refusal or audio has been seen; a role alone is not content.
    pub has_content: bool,
    /// The answer has come to its own end: the end marker of a stream, or a whole document.
    pub is_done: bool,
    /// Bytes of output text, reasoning and tool arguments included.
    pub visible_bytes: u64,
    /// Of these, bytes of reasoning.
    pub reasoning_bytes: u64,
    /// The first error told inside the answer.
    pub error: Option<ProviderError>,
    /// The block of a stream that has begun and not ended, for APIs that know blocks.
    pub open_block: Option<u32>,
    /// The answer's id, at most 128 bytes, for APIs whose last event names it.
    pub id: Option<String>,
    /// The number that the next event has, for APIs that number them.
    pub next_sequence_number: u64,
    /// What `usage` has of the output is an early count: more has been or will be said.
    pub is_output_early: bool,
    /// Events with data seen; always 0 for an answer that is not a stream.
    pub events: u64,
    /// Events too large to be read; their bytes passed.
    pub oversized_events: u32,
    /// Events that could not be understood; their bytes passed.
    pub unreadable_events: u32,
}

/// Why a choice ended, in OpenAI's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finish {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
    /// The provider gave up.
    Error,
    /// A reason of the provider's own.
    Other,
}

impl Finish {
    /// The word that usage records and metrics show.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Error => "error",
            Self::Other => "other",
        }
    }
}
