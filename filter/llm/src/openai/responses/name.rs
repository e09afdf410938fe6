//! The members of a response, and of the events of its stream, that mean something to a meter.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    Unknown,
    /// An array's element.
    Element,
    Arguments,
    CacheWriteTokens,
    CachedTokens,
    /// `name`.
    Called,
    Code,
    Content,
    Delta,
    Error,
    Id,
    IncompleteDetails,
    /// `input` of a custom tool's call.
    Input,
    InputTokens,
    InputTokensDetails,
    /// `item` of an event.
    Item,
    Message,
    Output,
    OutputTokens,
    OutputTokensDetails,
    Reason,
    ReasoningTokens,
    Refusal,
    Response,
    SequenceNumber,
    ServiceTier,
    Status,
    Summary,
    Text,
    TotalTokens,
    Type,
    Usage,
}

impl Name {
    pub(super) fn of(key: &[u8]) -> Self {
        // By length first: one comparison of bytes then settles nearly every key.
        match (key.len(), key) {
            (2, b"id") => Self::Id,
            (4, b"code") => Self::Code,
            (4, b"item") => Self::Item,
            (4, b"name") => Self::Called,
            (4, b"text") => Self::Text,
            (4, b"type") => Self::Type,
            (5, b"delta") => Self::Delta,
            (5, b"error") => Self::Error,
            (5, b"input") => Self::Input,
            (5, b"usage") => Self::Usage,
            (6, b"output") => Self::Output,
            (6, b"reason") => Self::Reason,
            (6, b"status") => Self::Status,
            (7, b"content") => Self::Content,
            (7, b"message") => Self::Message,
            (7, b"refusal") => Self::Refusal,
            (7, b"summary") => Self::Summary,
            (8, b"response") => Self::Response,
            (9, b"arguments") => Self::Arguments,
            (12, b"input_tokens") => Self::InputTokens,
            (12, b"service_tier") => Self::ServiceTier,
            (12, b"total_tokens") => Self::TotalTokens,
            (13, b"cached_tokens") => Self::CachedTokens,
            (13, b"output_tokens") => Self::OutputTokens,
            (15, b"sequence_number") => Self::SequenceNumber,
            (16, b"reasoning_tokens") => Self::ReasoningTokens,
            (18, b"cache_write_tokens") => Self::CacheWriteTokens,
            (18, b"incomplete_details") => Self::IncompleteDetails,
            (20, b"input_tokens_details") => Self::InputTokensDetails,
            (21, b"output_tokens_details") => Self::OutputTokensDetails,
            _ => Self::Unknown,
        }
    }
}
