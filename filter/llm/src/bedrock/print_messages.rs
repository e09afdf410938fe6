//! Prints the turns of a conversation as Converse wants them: the user's first, in turns, results
//! before anything else that the user says, reasoning before anything else that the assistant says,
//! and no text that is blank.

use std::borrow::Cow;

use serde::Serialize;

use super::block::{Block, CachePoint, CachePoints, Reasoning, ToolResult as ResultShown, ToolUse};
use super::media;
use crate::anthropic::input;
use crate::conversation::{Message, Part, Role, Thinking, ToolResult};
use crate::request::RequestFault;

const MOST_ID_BYTES: usize = 64;
/// What the user says first in a conversation that the assistant began.
const FIRST: &str = "Begin.";

#[derive(Serialize)]
pub(super) struct TurnShown<'r> {
    role: &'static str,
    content: Vec<Block<'r>>,
}

struct Turn<'r> {
    role: Role,
    content: Vec<Marked<'r>>,
}

/// A block, and the cache point that follows it wherever it is put.
struct Marked<'r> {
    block: Block<'r>,
    point: Option<CachePoint>,
}

/// Turns, as far as they are printed, and what of them could not be told.
pub(super) struct Transcript<'r> {
    turns: Vec<Turn<'r>>,
    /// Ids and names of the calls, in order.
    called: Vec<(&'r str, &'r str)>,
    documents: usize,
    points: CachePoints,
    has_unsigned_thinking: bool,
}

impl<'r> Transcript<'r> {
    /// `points`: those that stand before, in tools and instructions.
    pub(super) fn print(
        messages: &'r [Message<'_>],
        points: CachePoints,
    ) -> Result<Self, RequestFault> {
        let mut transcript = Self {
            turns: Vec::with_capacity(messages.len()),
            called: Vec::new(),
            documents: 0,
            points,
            has_unsigned_thinking: false,
        };
        for message in messages {
            transcript.add(message)?;
        }
        for turn in &mut transcript.turns {
            // Stable: what goes first keeps its order, and so does the rest.
            turn.content.sort_by_key(|told| !told.goes_first());
        }
        trim_last(&mut transcript.turns);
        Ok(transcript)
    }

    /// The names of the tools that were called, each once.
    pub(super) fn called_names(&self) -> Vec<&'r str> {
        let mut names: Vec<&str> = Vec::new();
        for (_, name) in &self.called {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names
    }

    /// Whether the last calls, if there are any, have the thinking that led to them.
    pub(super) fn calls_are_thought(&self) -> bool {
        let last = self.turns.iter().rfind(|turn| turn.role == Role::Assistant);
        let Some(last) = last else { return true };
        let has = |is: fn(&Block<'_>) -> bool| last.content.iter().any(|told| is(&told.block));
        let calls = has(|block| matches!(block, Block::ToolUse(_)));
        !calls || has(|block| matches!(block, Block::ReasoningContent(_)))
    }

    /// The turns; names what was left out.
    pub(super) fn finish(self, left_out: &mut Vec<String>) -> Vec<TurnShown<'r>> {
        if self.points.are_too_many() {
            left_out.push("cache marks (beyond the fourth)".to_owned());
        }
        if self.has_unsigned_thinking {
            left_out.push("thinking without a signature".to_owned());
        }
        let mut shown = Vec::with_capacity(self.turns.len() + 1);
        let first = self.turns.first();
        if first.is_some_and(|turn| turn.role == Role::Assistant) {
            left_out.push("messages (a first one of the user was put in)".to_owned());
            shown.push(TurnShown {
                role: "user",
                content: vec![Block::Text(FIRST)],
            });
        }
        shown.extend(self.turns.into_iter().map(Turn::show));
        shown
    }

    fn add(&mut self, message: &'r Message<'_>) -> Result<(), RequestFault> {
        let mut content = Vec::with_capacity(message.parts.len());
        for part in &message.parts {
            content.extend(self.marked(part)?);
        }
        if content.is_empty() {
            return Ok(());
        }
        let role = message.role;
        match self.turns.last_mut() {
            Some(last) if last.role == role => last.content.append(&mut content),
            _ => self.turns.push(Turn { role, content }),
        }
        Ok(())
    }

    fn marked(&mut self, part: &'r Part<'_>) -> Result<Option<Marked<'r>>, RequestFault> {
        let Some(block) = self.block(part)? else {
            return Ok(None);
        };
        let mark = match part {
            Part::Text { cache, .. } => *cache,
            Part::Image(media) | Part::Audio(media) | Part::File(media) => media.cache,
            Part::ToolCall(call) => call.cache,
            // A result holds no points of its own: that of a part of it follows all of it.
            Part::ToolResult(result) => result.cache.or_else(|| {
                let parts = result.parts.iter();
                parts.filter_map(mark_within_result).next_back()
            }),
            Part::Thinking(_) | Part::Refusal(_) => None,
        };
        let point = self.points.take(mark);
        Ok(Some(Marked { block, point }))
    }

    fn block(&mut self, part: &'r Part<'_>) -> Result<Option<Block<'r>>, RequestFault> {
        Ok(Some(match part {
            Part::Text { text, .. } | Part::Refusal(text) if text.trim().is_empty() => {
                return Ok(None);
            }
            Part::Text { text, .. } | Part::Refusal(text) => Block::Text(text),
            Part::Image(said) => Block::Image(media::image(said)?),
            Part::Audio(said) => Block::Audio(media::audio(said)?),
            Part::File(said) => {
                self.documents += 1;
                Block::Document(media::document(said, self.documents)?)
            }
            Part::ToolCall(call) => {
                self.called.push((&call.id, &call.name));
                Block::ToolUse(ToolUse {
                    tool_use_id: told_id(&call.id, self.called.len()),
                    name: &call.name,
                    input: input(&call.arguments),
                })
            }
            Part::ToolResult(result) => self.result(result)?,
            Part::Thinking(Thinking::Redacted { data }) => {
                Block::ReasoningContent(Reasoning::RedactedContent(data))
            }
            Part::Thinking(Thinking::Shown { text, signature }) => {
                let Some(signature) = signature else {
                    self.has_unsigned_thinking = true;
                    return Ok(None);
                };
                Block::ReasoningContent(Reasoning::ReasoningText { text, signature })
            }
        }))
    }

    fn result(&mut self, result: &'r ToolResult<'_>) -> Result<Block<'r>, RequestFault> {
        let call = self.called.iter().rposition(|(id, _)| *id == result.id);
        let Some(call) = call else {
            return Err(RequestFault::untold("a tool's result without its call"));
        };
        let mut content = Vec::with_capacity(result.parts.len());
        for part in &result.parts {
            content.extend(self.block(part)?);
        }
        Ok(Block::ToolResult(ResultShown {
            tool_use_id: told_id(&result.id, call + 1),
            content,
            status: result.is_error.then_some("error"),
        }))
    }
}

fn mark_within_result(part: &Part<'_>) -> Option<crate::conversation::CacheMark> {
    match part {
        Part::Text { cache, .. } => *cache,
        Part::Image(media) | Part::File(media) => media.cache,
        _ => None,
    }
}

impl Marked<'_> {
    const fn goes_first(&self) -> bool {
        matches!(
            self.block,
            Block::ToolResult(_) | Block::ReasoningContent(_)
        )
    }
}

impl<'r> Turn<'r> {
    fn show(self) -> TurnShown<'r> {
        let blocks = self.content.into_iter().flat_map(|told| {
            let point = told.point.map(Block::CachePoint);
            std::iter::once(told.block).chain(point)
        });
        TurnShown {
            role: match self.role {
                Role::User => "user",
                Role::Assistant => "assistant",
            },
            content: blocks.collect(),
        }
    }
}

/// The assistant's own last words, if it is to go on with them, may not end in blanks.
fn trim_last(turns: &mut [Turn<'_>]) {
    let last = turns.last_mut().filter(|turn| turn.role == Role::Assistant);
    if let Some(Block::Text(text)) = last.and_then(|turn| Some(&mut turn.content.last_mut()?.block))
    {
        *text = text.trim_end();
    }
}

/// Ids are of letters, digits, `_` and `-`, and short; a longer one is told by its call's number,
/// which stays the same as the conversation goes on.
fn told_id(id: &str, number: usize) -> Cow<'_, str> {
    if id.is_empty() || id.len() > MOST_ID_BYTES {
        return Cow::Owned(format!("call_{number}"));
    }
    crate::anthropic::plain_id(id)
}
