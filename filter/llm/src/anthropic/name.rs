//! The members of Anthropic's documents that mean something to meters.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    Unknown,
    Item,
    CacheCreation,
    CacheCreationInputTokens,
    CacheReadInputTokens,
    Content,
    ContentBlock,
    Delta,
    Ephemeral1hInputTokens,
    Error,
    Index,
    Input,
    InputTokens,
    Message,
    /// `name`.
    Called,
    OutputTokens,
    PartialJson,
    ServiceTier,
    Source,
    StopReason,
    Text,
    Thinking,
    Type,
    Usage,
}

impl Name {
    pub(super) fn of(key: &[u8]) -> Self {
        match key {
            b"cache_creation" => Self::CacheCreation,
            b"cache_creation_input_tokens" => Self::CacheCreationInputTokens,
            b"cache_read_input_tokens" => Self::CacheReadInputTokens,
            b"content" => Self::Content,
            b"content_block" => Self::ContentBlock,
            b"delta" => Self::Delta,
            b"ephemeral_1h_input_tokens" => Self::Ephemeral1hInputTokens,
            b"error" => Self::Error,
            b"index" => Self::Index,
            b"input" => Self::Input,
            b"input_tokens" => Self::InputTokens,
            b"message" => Self::Message,
            b"name" => Self::Called,
            b"output_tokens" => Self::OutputTokens,
            b"partial_json" => Self::PartialJson,
            b"service_tier" => Self::ServiceTier,
            b"source" => Self::Source,
            b"stop_reason" => Self::StopReason,
            b"text" => Self::Text,
            b"thinking" => Self::Thinking,
            b"type" => Self::Type,
            b"usage" => Self::Usage,
            _ => Self::Unknown,
        }
    }
}
