//! An answer, or an event's data, as the provider tells it. What may be wrong stays raw, so that it
//! spoils nothing else.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::anthropic::Said;
use crate::conversation::Finish;

/// A whole answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer<'a> {
    #[serde(borrow)]
    pub(super) output: Output<'a>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<&'a str>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) additional_model_response_fields: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Output<'a> {
    #[serde(borrow)]
    pub(super) message: Message<'a>,
}

#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Vec<Block<'a>>,
}

/// A block of content: one of these.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Block<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_use: Option<ToolUse<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<Reasoning<'a>>,
    #[serde(borrow, default)]
    pub(super) citations_content: Option<Citations<'a>>,
}

/// A call: whole, as it begins, or a piece of its input, which then is a string.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse<'a> {
    #[serde(borrow, default)]
    pub(super) tool_use_id: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reasoning<'a> {
    #[serde(borrow, default)]
    pub(super) reasoning_text: Option<ReasoningText<'a>>,
    #[serde(borrow, default)]
    pub(super) redacted_content: Option<Said<'a>>,
}

/// Whole, or what is new of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReasoningText<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) redacted_content: Option<Said<'a>>,
}

/// Text with its sources; the text alone is told on.
#[derive(Deserialize)]
pub(super) struct Citations<'a> {
    #[serde(borrow, default)]
    pub(super) content: Vec<Cited<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Cited<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Said<'a>>,
}

/// The data of an event, whose name says which members there are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'a> {
    #[serde(default)]
    pub(super) content_block_index: u32,
    #[serde(borrow, default)]
    pub(super) start: Option<Start<'a>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<&'a str>,
    #[serde(borrow, default)]
    pub(super) additional_model_response_fields: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start<'a> {
    #[serde(borrow, default)]
    pub(super) tool_use: Option<ToolUse<'a>>,
}

/// What is new of a block: one of these.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Said<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_use: Option<ToolUse<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<ReasoningText<'a>>,
}

/// What a `stopReason` means.
pub(super) fn finish(word: &str) -> Finish {
    match word {
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "tool_use" => Finish::ToolCalls,
        "guardrail_intervened" | "content_filtered" => Finish::ContentFilter,
        "malformed_model_output" | "malformed_tool_use" => Finish::Error,
        // `end_turn`, `stop_sequence`.
        _ => Finish::Stop,
    }
}

/// The stop sequence among what Claude was asked to tell beside its answer.
pub(super) fn stop_sequence(fields: Option<&RawValue>) -> Option<std::borrow::Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow, default)]
        stop_sequence: Option<Said<'a>>,
    }
    let fields: Fields<'_> = serde_json::from_str(fields?.get()).ok()?;
    Said::filled(fields.stop_sequence)
}
