//! Usage as this family's answers tell it.

use serde::Serialize;

use crate::usage::Usage;

/// A `usage` object. What OpenAI has no member for is where others put it: writes to the cache
/// beside the reads (OpenRouter), those that last an hour in Anthropic's own member.
#[derive(Serialize)]
pub(super) struct UsageShown {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_creation: Option<CacheCreation>,
}

#[derive(Serialize)]
struct PromptDetails {
    cached_tokens: u64,
    audio_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    cache_write_tokens: u64,
}

#[derive(Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
    audio_tokens: u64,
}

#[derive(Serialize)]
struct CacheCreation {
    ephemeral_1h_input_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl From<&Usage> for UsageShown {
    fn from(usage: &Usage) -> Self {
        let written_1h = usage.cache_write_1h;
        Self {
            prompt_tokens: usage.input,
            completion_tokens: usage.output,
            total_tokens: usage.total(),
            prompt_tokens_details: PromptDetails {
                cached_tokens: usage.cached_input,
                audio_tokens: usage.input_audio,
                cache_write_tokens: usage.cache_write,
            },
            completion_tokens_details: CompletionDetails {
                reasoning_tokens: usage.reasoning,
                audio_tokens: usage.output_audio,
            },
            cache_creation: (written_1h > 0).then_some(CacheCreation {
                ephemeral_1h_input_tokens: written_1h,
            }),
        }
    }
}
