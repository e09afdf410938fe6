//! What is asked.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// A request to continue a conversation.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    /// As the client named it; what is printed is the target's name.
    pub model: Cow<'a, str>,
    pub stream: bool,
    /// In order; developers' messages are among them, wherever they stood.
    pub system: Vec<System<'a>>,
    /// Neighbours may have the same role; printers merge them where their API wants turns.
    pub messages: Vec<Message<'a>>,
    pub tools: Vec<Tool<'a>>,
    /// `None`: not said, which is auto where there are tools.
    pub tool_choice: Option<ToolChoice<'a>>,
    pub parallel_tool_calls: Option<bool>,
    /// Tokens of one choice, reasoning included.
    pub max_output_tokens: Option<u64>,
    /// 0 to 2 as OpenAI has it; printers clamp it to what their API takes.
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub seed: Option<i64>,
    pub stop: Vec<Cow<'a, str>>,
    pub format: Format<'a>,
    /// `None`: as the model does by itself.
    pub reasoning: Option<Reasoning>,
    /// The caller's own user.
    pub user: Option<Cow<'a, str>>,
    /// Members, by path, that have no form here: `logit_bias`, `tools[2] (web_search)`.
    pub left_out: Vec<Cow<'a, str>>,
}

/// A piece of the instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct System<'a> {
    pub text: Cow<'a, str>,
    pub cache: Option<CacheMark>,
}

/// Everything up to here may be kept in the provider's prompt cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMark {
    FiveMinutes,
    OneHour,
}

/// One turn, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'a> {
    pub role: Role,
    pub parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Tools' results are the user's too.
    User,
    Assistant,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        cache: Option<CacheMark>,
    },
    Image(Media<'a>),
    Audio(Media<'a>),
    /// A document, such as a PDF.
    File(Media<'a>),
    ToolCall(ToolCall<'a>),
    ToolResult(ToolResult<'a>),
    Thinking(Thinking<'a>),
    /// The assistant's refusal, in its words.
    Refusal(Cow<'a, str>),
}

/// Something that is not text.
#[derive(Clone, Debug, PartialEq)]
pub struct Media<'a> {
    pub source: MediaSource<'a>,
    /// A file's name, where one is told.
    pub name: Option<Cow<'a, str>>,
    /// OpenAI's `detail` of an image.
    pub detail: Option<Cow<'a, str>>,
    pub cache: Option<CacheMark>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MediaSource<'a> {
    /// Base64 without line breaks, and its media type, such as `image/png`.
    Base64 {
        media_type: Cow<'a, str>,
        data: Cow<'a, str>,
    },
    /// A link that the provider fetches.
    Url(Cow<'a, str>),
    /// The provider's id of something uploaded there.
    Id(Cow<'a, str>),
}

/// The model's call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall<'a> {
    /// Made by the reader where its API has none, and then the same for the same request.
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// JSON text of an object; readers put `{}` for none. What a model wrote may be broken JSON.
    pub arguments: Cow<'a, str>,
    /// Gemini's signature of the thought that led here.
    pub signature: Option<Cow<'a, str>>,
    pub cache: Option<CacheMark>,
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult<'a> {
    /// The call's id.
    pub id: Cow<'a, str>,
    /// The tool's name, looked up by the reader among the calls before; empty: not found.
    pub name: Cow<'a, str>,
    /// Text, images and files only.
    pub parts: Vec<Part<'a>>,
    pub is_error: bool,
    pub cache: Option<CacheMark>,
}

/// The model's reasoning, as it was shown or hidden in an answer, and comes back in the next turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Thinking<'a> {
    /// A provider accepts it back only with its signature, if it signs.
    Shown {
        text: Cow<'a, str>,
        signature: Option<Cow<'a, str>>,
    },
    /// Encrypted by the provider.
    Redacted { data: Cow<'a, str> },
}

/// A function that the model may call.
#[derive(Clone, Debug)]
pub struct Tool<'a> {
    pub name: Cow<'a, str>,
    pub description: Option<Cow<'a, str>>,
    /// JSON schema of the arguments; `None`: it takes none.
    pub parameters: Option<Cow<'a, RawValue>>,
    pub strict: Option<bool>,
    pub cache: Option<CacheMark>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    Auto,
    None,
    /// Some tool, whichever.
    Required,
    Named(Cow<'a, str>),
}

/// The form of the answer's text.
#[derive(Clone, Debug, Default)]
pub enum Format<'a> {
    #[default]
    Text,
    /// Any JSON object.
    Json,
    Schema(Schema<'a>),
}

/// A JSON schema that the answer must fit.
#[derive(Clone, Debug)]
pub struct Schema<'a> {
    /// Empty: none was given.
    pub name: Cow<'a, str>,
    pub description: Option<Cow<'a, str>>,
    pub schema: Cow<'a, RawValue>,
    pub strict: Option<bool>,
}

/// How much is thought before the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// `None`: as the model likes; set with or without a budget.
    pub effort: Option<Effort>,
    /// Tokens; 0: no reasoning at all.
    pub budget_tokens: Option<u64>,
    /// Whether the answer shows it (summaries, thoughts); `None`: not said.
    pub is_shown: Option<bool>,
}

/// The steps that APIs know between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    ExtraHigh,
    Max,
}

impl Effort {
    /// OpenAI's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::ExtraHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The effort by its word.
    pub fn of(word: &str) -> Option<Self> {
        [
            Self::None,
            Self::Minimal,
            Self::Low,
            Self::Medium,
            Self::High,
            Self::ExtraHigh,
            Self::Max,
        ]
        .into_iter()
        .find(|effort| effort.as_str() == word)
    }

    /// A thinking budget for APIs that want one, in tokens; 0 for none.
    pub const fn budget_tokens(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Minimal | Self::Low => 1024,
            Self::Medium => 2048,
            Self::High => 4096,
            Self::ExtraHigh => 8192,
            Self::Max => 16_384,
        }
    }

    /// The smallest effort whose budget is no less than `tokens`.
    pub const fn of_budget(tokens: u64) -> Self {
        match tokens {
            0 => Self::None,
            1..=1024 => Self::Low,
            1025..=2048 => Self::Medium,
            2049..=4096 => Self::High,
            4097..=8192 => Self::ExtraHigh,
            _ => Self::Max,
        }
    }
}

impl Reasoning {
    /// The budget, said or meant by the effort; `None`: neither is said.
    pub fn budget(&self) -> Option<u64> {
        let meant = self.effort.map(Effort::budget_tokens);
        self.budget_tokens.or(meant)
    }

    /// The effort, said or meant by the budget; `None`: neither is said.
    pub fn level(&self) -> Option<Effort> {
        self.effort
            .or_else(|| self.budget_tokens.map(Effort::of_budget))
    }
}
