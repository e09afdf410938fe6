//! Prints the turns of a conversation as Anthropic wants them: the user's first, in turns, results
//! before anything else that the user says, and no text that is blank.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;

use super::block::{Block, CacheControl, Source, input};
use crate::conversation::{
    CacheMark, Media, MediaSource, Message, Part, Role, Thinking, ToolResult,
};
use crate::request::RequestFault;
use crate::translate::Quirks;

/// Marks that a request may have.
const MOST_MARKS: usize = 4;
/// What the user says first in a conversation that the assistant began.
const FIRST: &str = "Begin.";

#[derive(Serialize)]
pub(super) struct Turn<'r> {
    role: &'static str,
    content: Vec<Block<'r>>,
}

/// Turns, as far as they are printed, and what of them could not be told.
pub(super) struct Transcript<'r> {
    quirks: &'r Quirks,
    turns: Vec<Turn<'r>>,
    called: BTreeSet<&'r str>,
    marks: Marks,
    has_unsigned_thinking: bool,
}

/// Cache marks, counted.
#[derive(Default)]
pub(super) struct Marks(usize);

impl Marks {
    /// The mark as it is told; none beyond the last that is taken.
    pub(super) fn take(&mut self, mark: Option<CacheMark>) -> Option<CacheControl> {
        let mark = mark?;
        self.0 += 1;
        (self.0 <= MOST_MARKS).then(|| CacheControl::of(mark))
    }
}

impl<'r> Transcript<'r> {
    /// `marks`: those that stand before, in tools and instructions.
    pub(super) fn print(
        messages: &'r [Message<'_>],
        quirks: &'r Quirks,
        marks: Marks,
    ) -> Result<Self, RequestFault> {
        let mut transcript = Self {
            quirks,
            turns: Vec::with_capacity(messages.len()),
            called: BTreeSet::new(),
            marks,
            has_unsigned_thinking: false,
        };
        for message in messages {
            transcript.add(message)?;
        }
        for turn in transcript
            .turns
            .iter_mut()
            .filter(|turn| turn.role == "user")
        {
            // Stable: results keep their order, and so does the rest.
            turn.content.sort_by_key(|block| !block.is_result());
        }
        trim_last(&mut transcript.turns);
        Ok(transcript)
    }

    /// The turns; names what was left out.
    pub(super) fn finish(mut self, left_out: &mut Vec<String>) -> Vec<Turn<'r>> {
        if self.marks.0 > MOST_MARKS {
            left_out.push("cache marks (beyond the fourth)".to_owned());
        }
        if self.has_unsigned_thinking {
            left_out.push("thinking without a signature".to_owned());
        }
        if self
            .turns
            .first()
            .is_some_and(|turn| turn.role == "assistant")
        {
            left_out.push("messages (a first one of the user was put in)".to_owned());
            let text = Block::Text {
                text: FIRST,
                cache_control: None,
            };
            let first = Turn {
                role: "user",
                content: vec![text],
            };
            self.turns.insert(0, first);
        }
        self.turns
    }

    /// Whether the last calls, if there are any, have the thinking that led to them.
    pub(super) fn calls_are_thought(&self) -> bool {
        let last = self.turns.iter().rfind(|turn| turn.role == "assistant");
        let Some(last) = last else { return true };
        let has = |is: fn(&Block<'_>) -> bool| last.content.iter().any(is);
        let calls = has(|block| matches!(block, Block::ToolUse { .. }));
        let thought = has(|block| {
            matches!(
                block,
                Block::Thinking { .. } | Block::RedactedThinking { .. }
            )
        });
        !calls || thought
    }

    fn add(&mut self, message: &'r Message<'_>) -> Result<(), RequestFault> {
        let mut blocks = Vec::with_capacity(message.parts.len());
        for part in &message.parts {
            blocks.extend(self.block(part)?);
        }
        if blocks.is_empty() {
            return Ok(());
        }
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        match self.turns.last_mut() {
            Some(last) if last.role == role => last.content.append(&mut blocks),
            _ => self.turns.push(Turn {
                role,
                content: blocks,
            }),
        }
        Ok(())
    }

    fn block(&mut self, part: &'r Part<'_>) -> Result<Option<Block<'r>>, RequestFault> {
        Ok(Some(match part {
            Part::Text { text, .. } | Part::Refusal(text) if text.trim().is_empty() => {
                return Ok(None);
            }
            Part::Text { text, cache } => Block::Text {
                text,
                cache_control: self.marks.take(*cache),
            },
            Part::Refusal(text) => Block::Text {
                text,
                cache_control: None,
            },
            Part::Image(media) => Block::Image {
                source: self.source(media)?,
                cache_control: self.marks.take(media.cache),
            },
            Part::File(media) => Block::Document {
                source: self.source(media)?,
                title: media.name.as_deref(),
                cache_control: self.marks.take(media.cache),
            },
            Part::Audio(_) => return Err(RequestFault::untold("audio")),
            Part::ToolCall(call) => {
                self.called.insert(&call.id);
                Block::ToolUse {
                    id: plain_id(&call.id),
                    name: &call.name,
                    input: input(&call.arguments),
                    cache_control: self.marks.take(call.cache),
                }
            }
            Part::ToolResult(result) => self.result(result)?,
            Part::Thinking(Thinking::Redacted { data }) => Block::RedactedThinking { data },
            Part::Thinking(Thinking::Shown { text, signature }) => match signature {
                Some(signature) => Block::Thinking {
                    thinking: text,
                    signature,
                },
                None => {
                    self.has_unsigned_thinking = true;
                    return Ok(None);
                }
            },
        }))
    }

    fn result(&mut self, result: &'r ToolResult<'_>) -> Result<Block<'r>, RequestFault> {
        if !self.called.contains(result.id.as_ref()) {
            return Err(RequestFault::untold("a tool's result without its call"));
        }
        let mut content = Vec::with_capacity(result.parts.len());
        for part in &result.parts {
            content.extend(self.block(part)?);
        }
        Ok(Block::ToolResult {
            tool_use_id: plain_id(&result.id),
            content,
            is_error: result.is_error,
            cache_control: self.marks.take(result.cache),
        })
    }

    fn source(&self, media: &'r Media<'_>) -> Result<Source<'r>, RequestFault> {
        Ok(match &media.source {
            MediaSource::Base64 { media_type, data } => Source::Base64 { media_type, data },
            MediaSource::Url(_) if self.quirks.no_links => {
                return Err(RequestFault::untold("a link to an image or a file"));
            }
            MediaSource::Url(url) => Source::Url { url },
            MediaSource::Id(file_id) => Source::File { file_id },
        })
    }
}

/// The assistant's own last words, if it is to go on with them, may not end in blanks.
fn trim_last(turns: &mut [Turn<'_>]) {
    let last = turns.last_mut().filter(|turn| turn.role == "assistant");
    if let Some(Block::Text { text, .. }) = last.and_then(|turn| turn.content.last_mut()) {
        *text = text.trim_end();
    }
}

/// Ids may be of letters, digits, `_` and `-` only.
pub(crate) fn plain_id(id: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if id.chars().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let plain = |letter| if is_plain(letter) { letter } else { '_' };
    Cow::Owned(id.chars().map(plain).collect())
}
