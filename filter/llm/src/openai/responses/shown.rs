//! The response object and what is in it, as clients get it. Members and their order are those of
//! OpenAI's API; what asks for something that was not done, or is not known here, is null.

use std::fmt;

use serde::{Serialize, Serializer};

use super::thought::Sealed;
use crate::conversation::Finish;
use crate::openai::chat::thought::SignedId;
use crate::usage::Usage;

/// A response; `O`: its output.
#[derive(Serialize)]
pub(super) struct ResponseShown<'a, O: Serialize> {
    id: &'a str,
    object: &'static str,
    created_at: u64,
    status: &'static str,
    background: bool,
    error: Option<ErrorShown>,
    incomplete_details: Option<Incomplete>,
    instructions: Option<()>,
    max_output_tokens: Option<()>,
    model: &'a str,
    output: O,
    parallel_tool_calls: bool,
    previous_response_id: Option<()>,
    reasoning: Reasoning,
    store: bool,
    temperature: Option<()>,
    text: TextShown,
    tool_choice: &'static str,
    tools: [(); 0],
    top_p: Option<()>,
    truncation: &'static str,
    usage: Option<UsageShown>,
    user: Option<()>,
    metadata: Metadata,
}

/// What a provider told, or else what stands for it.
pub(super) fn or_else<'a>(told: &'a str, otherwise: &'a str) -> &'a str {
    if told.is_empty() { otherwise } else { told }
}

/// What a response is named by.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) id: &'a str,
    pub(super) model: &'a str,
    pub(super) created_at_s: u64,
}

#[derive(Serialize)]
struct ErrorShown {
    code: &'static str,
    message: &'static str,
}

#[derive(Serialize)]
struct Incomplete {
    reason: &'static str,
}

#[derive(Serialize)]
struct Reasoning {
    effort: Option<()>,
    summary: Option<()>,
}

#[derive(Serialize)]
struct TextShown {
    format: Format,
}

#[derive(Serialize)]
struct Format {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Metadata {}

impl<'a, O: Serialize> ResponseShown<'a, O> {
    pub(super) fn new(head: Head<'a>, outcome: Outcome, output: O, usage: Option<&Usage>) -> Self {
        Self {
            id: head.id,
            object: "response",
            created_at: head.created_at_s,
            status: outcome.status(),
            background: false,
            error: (outcome == Outcome::Failed).then_some(ErrorShown {
                code: "server_error",
                message: "the model's provider ended the answer with an error",
            }),
            incomplete_details: outcome.reason().map(|reason| Incomplete { reason }),
            instructions: None,
            max_output_tokens: None,
            model: head.model,
            output,
            parallel_tool_calls: true,
            previous_response_id: None,
            reasoning: Reasoning {
                effort: None,
                summary: None,
            },
            store: false,
            temperature: None,
            text: TextShown {
                format: Format { kind: "text" },
            },
            tool_choice: "auto",
            tools: [],
            top_p: None,
            truncation: "disabled",
            usage: usage.map(UsageShown::from),
            user: None,
            metadata: Metadata {},
        }
    }
}

/// How far a response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    InProgress,
    Completed,
    /// It came to its limit of tokens.
    Cut,
    Filtered,
    Failed,
}

impl Outcome {
    /// Of an answer that has ended. A refusal in words is a whole answer; one without is a
    /// filter's.
    pub(super) fn of(finish: Option<Finish>, has_refusal: bool) -> Self {
        match finish {
            None | Some(Finish::Stop | Finish::ToolCalls) => Self::Completed,
            Some(Finish::Refusal) if has_refusal => Self::Completed,
            Some(Finish::Refusal | Finish::ContentFilter) => Self::Filtered,
            Some(Finish::Length) => Self::Cut,
            Some(Finish::Error) => Self::Failed,
        }
    }

    fn status(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Cut | Self::Filtered => "incomplete",
            Self::Failed => "failed",
        }
    }

    fn reason(self) -> Option<&'static str> {
        match self {
            Self::Cut => Some("max_output_tokens"),
            Self::Filtered => Some("content_filter"),
            Self::InProgress | Self::Completed | Self::Failed => None,
        }
    }

    /// The event that tells it.
    pub(super) fn event(self) -> &'static str {
        match self {
            Self::InProgress => "response.in_progress",
            Self::Completed => "response.completed",
            Self::Cut | Self::Filtered => "response.incomplete",
            Self::Failed => "response.failed",
        }
    }

    /// Of the item that was the last one.
    pub(super) fn item_status(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Cut | Self::Filtered | Self::Failed => "incomplete",
        }
    }
}

/// An item of the output.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Message {
        id: ItemId<'a>,
        status: &'static str,
        role: &'static str,
        content: Vec<Content<'a>>,
    },
    Reasoning {
        id: ItemId<'a>,
        summary: Vec<Summary<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<Sealed<'a>>,
    },
    FunctionCall {
        id: ItemId<'a>,
        status: &'static str,
        call_id: SignedId<'a>,
        name: &'a str,
        arguments: &'a str,
    },
}

/// What items' ids begin with.
impl Item<'_> {
    pub(super) const MESSAGE: &'static str = "msg";
    pub(super) const REASONING: &'static str = "rs";
    pub(super) const CALL: &'static str = "fc";
}

/// A piece of a message.
#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content<'a> {
    OutputText {
        annotations: [(); 0],
        logprobs: [(); 0],
        text: &'a str,
    },
    Refusal {
        refusal: &'a str,
    },
}

impl<'a> Content<'a> {
    pub(super) const fn text(text: &'a str) -> Self {
        Self::OutputText {
            annotations: [],
            logprobs: [],
            text,
        }
    }
}

/// A piece of reasoning.
#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Summary<'a> {
    SummaryText { text: &'a str },
}

impl<'a> Summary<'a> {
    /// Of text that may be none.
    pub(super) fn of(text: &'a str) -> Vec<Self> {
        let is_some = !text.is_empty();
        is_some
            .then_some(Self::SummaryText { text })
            .into_iter()
            .collect()
    }
}

/// The id of an item: the same for the same answer, and another in another one.
#[derive(Clone, Copy)]
pub(super) struct ItemId<'a> {
    pub(super) prefix: &'static str,
    pub(super) answer: &'a str,
    pub(super) output_index: usize,
}

/// Longest part of an item's id that names the answer; OpenAI takes no more than 64 bytes in all.
const ANSWER_BYTES: usize = 40;

/// How items' ids name an answer.
pub(super) fn answer_name(id: &str) -> String {
    let letters = id.chars().filter(char::is_ascii_alphanumeric);
    letters.take(ANSWER_BYTES).collect()
}

impl fmt::Display for ItemId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            prefix,
            answer,
            output_index,
        } = self;
        write!(f, "{prefix}_{answer}_{output_index}")
    }
}

impl Serialize for ItemId<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[derive(Serialize)]
pub(super) struct UsageShown {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Serialize)]
struct InputDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Serialize)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl From<&Usage> for UsageShown {
    fn from(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input,
            input_tokens_details: InputDetails {
                cached_tokens: usage.cached_input,
                cache_write_tokens: usage.cache_write,
            },
            output_tokens: usage.output,
            output_tokens_details: OutputDetails {
                reasoning_tokens: usage.reasoning,
            },
            total_tokens: usage.total(),
        }
    }
}
