//! A response as it is printed: a whole one, or a chunk of a stream.

use serde::Serialize;

use super::print_contents::Part;
use crate::conversation::Finish;
use crate::usage::Usage;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document<'r> {
    pub(super) candidates: [Candidate<'r>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage_metadata: Option<UsageMetadata>,
    pub(super) model_version: &'r str,
    pub(super) response_id: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'r> {
    pub(super) content: Content<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish_reason: Option<&'static str>,
    pub(super) index: u32,
}

#[derive(Serialize)]
pub(super) struct Content<'r> {
    pub(super) parts: Vec<Part<'r>>,
    pub(super) role: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    prompt_token_count: u64,
    #[serde(skip_serializing_if = "is_none")]
    cached_content_token_count: u64,
    candidates_token_count: u64,
    #[serde(skip_serializing_if = "is_none")]
    thoughts_token_count: u64,
    total_token_count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
const fn is_none(tokens: &u64) -> bool {
    *tokens == 0
}

impl UsageMetadata {
    pub(super) fn of(usage: &Usage) -> Self {
        Self {
            prompt_token_count: usage.input,
            cached_content_token_count: usage.cached_input,
            candidates_token_count: usage.output.saturating_sub(usage.reasoning),
            thoughts_token_count: usage.reasoning,
            total_token_count: usage.total(),
        }
    }
}

impl<'r> Document<'r> {
    pub(super) fn new(
        parts: Vec<Part<'r>>,
        finish: Option<Finish>,
        model: &'r str,
        id: &'r str,
    ) -> Self {
        let content = Content {
            parts,
            role: "model",
        };
        let candidate = Candidate {
            content,
            finish_reason: finish.map(word),
            index: 0,
        };
        Self {
            candidates: [candidate],
            usage_metadata: None,
            model_version: model,
            response_id: id,
        }
    }

    pub(super) fn with_usage(self, usage: Option<&Usage>) -> Self {
        Self {
            usage_metadata: usage.map(UsageMetadata::of),
            ..self
        }
    }
}

/// Google has no word for a refusal of the model's own, and ends calls as a plain stop.
pub(super) const fn word(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::ToolCalls => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter | Finish::Refusal => "SAFETY",
        Finish::Error => "OTHER",
    }
}
