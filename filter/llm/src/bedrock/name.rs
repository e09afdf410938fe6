//! The members of Converse's documents that mean something to meters.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    Unknown,
    Item,
    CacheDetails,
    CacheReadInputTokens,
    CacheWriteInputTokens,
    /// `name`.
    Called,
    CitationsContent,
    Content,
    Delta,
    Input,
    InputTokens,
    Message,
    Output,
    OutputTokens,
    ReasoningContent,
    ReasoningText,
    RedactedContent,
    ServiceTier,
    Start,
    StopReason,
    Text,
    ToolUse,
    Ttl,
    Type,
    /// `__type`, by which AWS names an error in its body.
    ErrorType,
    Usage,
}

impl Name {
    pub(super) fn of(key: &[u8]) -> Self {
        match key {
            b"cacheDetails" => Self::CacheDetails,
            b"cacheReadInputTokens" => Self::CacheReadInputTokens,
            b"cacheWriteInputTokens" => Self::CacheWriteInputTokens,
            b"name" => Self::Called,
            b"citationsContent" => Self::CitationsContent,
            b"content" => Self::Content,
            b"delta" => Self::Delta,
            b"input" => Self::Input,
            b"inputTokens" => Self::InputTokens,
            // Some of AWS's front doors write it large.
            b"message" | b"Message" => Self::Message,
            b"output" => Self::Output,
            b"outputTokens" => Self::OutputTokens,
            b"reasoningContent" => Self::ReasoningContent,
            b"reasoningText" => Self::ReasoningText,
            b"redactedContent" => Self::RedactedContent,
            b"serviceTier" => Self::ServiceTier,
            b"start" => Self::Start,
            b"stopReason" => Self::StopReason,
            b"text" => Self::Text,
            b"toolUse" => Self::ToolUse,
            b"ttl" => Self::Ttl,
            b"type" => Self::Type,
            b"__type" => Self::ErrorType,
            b"usage" => Self::Usage,
            _ => Self::Unknown,
        }
    }
}
