//! An error as a provider told it, in one form for every dialect.

/// Bytes kept of a message, and of each other part.
pub const MESSAGE_BYTES: usize = 1_024;
pub const PART_BYTES: usize = 128;

/// A provider's error, each part bounded; an empty part was not told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderError {
    pub message: String,
    pub kind: String,
    pub code: String,
}

impl ProviderError {
    /// An error told as mere text.
    pub fn of_text(text: &[u8]) -> Self {
        let text = text.get(..MESSAGE_BYTES).unwrap_or(text);
        Self {
            message: String::from_utf8_lossy(text).into_owned(),
            ..Self::default()
        }
    }

    /// The prompt does not fit the model's context window.
    pub fn is_context_length(&self) -> bool {
        // OpenAI's code; then the words of Anthropic, Bedrock, Gemini and vLLM.
        self.code == "context_length_exceeded"
            || self.says(&[
                "prompt is too long",
                "input is too long",
                "exceeds the maximum number of tokens",
                "maximum context length",
            ])
    }

    /// The credential's account has no balance or quota left; waiting does not help.
    pub fn is_quota(&self) -> bool {
        let words = [
            "insufficient_quota",
            "billing_error",
            "insufficient_balance",
        ];
        words.contains(&self.code.as_str()) || words.contains(&self.kind.as_str())
    }

    /// The prompt or its answer was refused for its content.
    pub fn is_content_policy(&self) -> bool {
        let words = ["content_policy_violation", "content_filter"];
        words.contains(&self.code.as_str()) || words.contains(&self.kind.as_str())
    }

    /// The provider does not know the model.
    pub fn is_unknown_model(&self) -> bool {
        self.code == "model_not_found"
            || self.code == "DeploymentNotFound"
            || self.kind == "ResourceNotFoundException"
            || self.says(&["the provided model identifier is invalid"])
    }

    /// The message has one of these texts, which are in lower case.
    pub fn says(&self, texts: &[impl AsRef<str>]) -> bool {
        let message = self.message.to_ascii_lowercase();
        texts.iter().any(|text| message.contains(text.as_ref()))
    }
}
