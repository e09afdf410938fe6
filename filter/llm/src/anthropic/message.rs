//! A message as it is printed: whole, or at a stream's start.

use std::borrow::Cow;

use serde::Serialize;

use super::block::Block;
use crate::conversation::Finish;
use crate::openai::chat::thought::SignedId;
use crate::usage::Usage;

#[derive(Serialize)]
pub(super) struct MessageShown<'r> {
    pub(super) id: Cow<'r, str>,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) role: &'static str,
    pub(super) model: &'r str,
    pub(super) content: Vec<Block<'r>>,
    pub(super) stop_reason: Option<&'static str>,
    pub(super) stop_sequence: Option<&'r str>,
    pub(super) usage: UsageShown,
}

impl<'r> MessageShown<'r> {
    /// One that has said nothing yet. `id` is the provider's; the request's stands for one that is
    /// empty.
    pub(super) fn new(id: &'r str, request_id: &str, model: &'r str, usage: &Usage) -> Self {
        let id = match id {
            "" => Cow::Owned(format!("msg_{request_id}")),
            id => Cow::Borrowed(id),
        };
        Self {
            id,
            kind: "message",
            role: "assistant",
            model,
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            usage: UsageShown::of(usage),
        }
    }
}

/// A usage as it is told: what was cached stands beside the input.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct UsageShown {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl UsageShown {
    pub(super) const fn of(usage: &Usage) -> Self {
        let beside = usage.cached_input.saturating_add(usage.cache_write);
        Self {
            input_tokens: usage.input.saturating_sub(beside),
            cache_creation_input_tokens: usage.cache_write,
            cache_read_input_tokens: usage.cached_input,
            output_tokens: usage.output,
        }
    }
}

/// The word of a finish.
pub(super) const fn stop_reason(finish: Finish, has_sequence: bool) -> &'static str {
    match finish {
        Finish::Stop if has_sequence => "stop_sequence",
        Finish::Stop | Finish::Error => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
        Finish::ContentFilter | Finish::Refusal => "refusal",
    }
}

/// A call's id with the signature in it, which comes back with the result.
pub(super) fn signed_id<'r>(id: &'r str, signature: Option<&str>) -> Cow<'r, str> {
    match signature {
        None => Cow::Borrowed(id),
        signature => Cow::Owned(SignedId { id, signature }.to_string()),
    }
}
