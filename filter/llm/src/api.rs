//! What is spoken: the APIs that clients call and providers serve.

/// The form of requests, answers, streams and errors of one endpoint. A client calls one; a
/// provider's dialect serves some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI, `POST /v1/chat/completions`.
    ChatCompletions,
    /// OpenAI, `POST /v1/completions`.
    Completions,
    /// OpenAI, `POST /v1/embeddings`.
    Embeddings,
    /// OpenAI, `POST /v1/responses`.
    Responses,
    /// Anthropic, `POST /v1/messages`.
    Messages,
    /// Anthropic, `POST /v1/messages/count_tokens`.
    CountTokens,
    /// Gemini, `models/…:generateContent` and `:streamGenerateContent`.
    GenerateContent,
    /// Bedrock, `model/…/converse` and `/converse-stream`. Of providers only.
    Converse,
    /// `turnpike.inference.v1`, over gRPC. Of clients only.
    Inference,
}

impl Api {
    /// Every one.
    pub const ALL: [Self; 9] = [
        Self::ChatCompletions,
        Self::Completions,
        Self::Embeddings,
        Self::Responses,
        Self::Messages,
        Self::CountTokens,
        Self::GenerateContent,
        Self::Converse,
        Self::Inference,
    ];

    /// The name that usage records and metrics show.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "openai.chat_completions",
            Self::Completions => "openai.completions",
            Self::Embeddings => "openai.embeddings",
            Self::Responses => "openai.responses",
            Self::Messages => "anthropic.messages",
            Self::CountTokens => "anthropic.count_tokens",
            Self::GenerateContent => "gemini.generate_content",
            Self::Converse => "bedrock.converse",
            Self::Inference => "turnpike.inference",
        }
    }

    /// Whether its requests and answers have a form in [`crate::conversation`], and can so be
    /// translated into another's.
    pub const fn is_conversation(self) -> bool {
        match self {
            Self::ChatCompletions
            | Self::Responses
            | Self::Messages
            | Self::GenerateContent
            | Self::Converse
            | Self::Inference => true,
            Self::Completions | Self::Embeddings | Self::CountTokens => false,
        }
    }
}

/// The family of APIs that a provider serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI and every provider compatible with it.
    OpenAi,
    Anthropic,
    /// Gemini, of Google's AI Studio or Vertex.
    Gemini,
    /// Bedrock's Converse.
    Converse,
}

impl Dialect {
    /// The API that translated requests go to.
    pub const fn main_api(self) -> Api {
        match self {
            Self::OpenAi => Api::ChatCompletions,
            Self::Anthropic => Api::Messages,
            Self::Gemini => Api::GenerateContent,
            Self::Converse => Api::Converse,
        }
    }

    /// Whether requests of this API can pass untranslated. Not every OpenAI-compatible provider
    /// serves all of its dialect's.
    pub const fn has(self, api: Api) -> bool {
        match self {
            Self::OpenAi => matches!(
                api,
                Api::ChatCompletions | Api::Completions | Api::Embeddings | Api::Responses
            ),
            Self::Anthropic => matches!(api, Api::Messages | Api::CountTokens),
            Self::Gemini => matches!(api, Api::GenerateContent),
            Self::Converse => matches!(api, Api::Converse),
        }
    }
}
