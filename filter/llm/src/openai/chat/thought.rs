//! How a client of chat completions gets thinking with its signatures, and sends it back.
//!
//! OpenAI's own API has no place for either, so they go where clients keep what they do not know:
//!
//! - The text is the assistant message's `reasoning_content`, which many clients show. It is also
//!   in the message's `thinking_blocks`, beside its signature, as
//!   `{"type":"thinking","thinking":"…","signature":"…"}`, or as
//!   `{"type":"redacted_thinking","data":"…"}` where it is encrypted. In streams the delta has
//!   pieces of them with an `index`, by which OpenAI's SDKs put them together. A client that sends
//!   the message back as it got it sends the blocks too, and they count; one that does not know
//!   them sends at most `reasoning_content`, which then is thinking without a signature.
//! - A signature that belongs to a tool's call is in the call's id: `<id>__thought__<signature>`.
//!   Every client sends ids back, in the call and in its result.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::conversation::{Part, Thinking};
use crate::request::object::text;

const MARK: &str = "__thought__";

/// A call's id as clients see it.
pub(crate) struct SignedId<'a> {
    pub(crate) id: &'a str,
    pub(crate) signature: Option<&'a str>,
}

impl fmt::Display for SignedId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)?;
        match self.signature {
            Some(signature) => write!(f, "{MARK}{signature}"),
            None => Ok(()),
        }
    }
}

impl Serialize for SignedId<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The id and the signature in an id that a client sent.
pub(crate) fn split_id(id: Cow<'_, str>) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
    match id {
        Cow::Borrowed(id) => match id.split_once(MARK) {
            Some((id, signature)) => (id.into(), Some(signature.into())),
            None => (id.into(), None),
        },
        Cow::Owned(id) => match id.split_once(MARK) {
            Some((id, signature)) => (id.to_owned().into(), Some(signature.to_owned().into())),
            None => (id.into(), None),
        },
    }
}

/// One of `thinking_blocks`, whole or a piece of it.
#[derive(Serialize)]
pub(crate) struct BlockShown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<u32>,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<&'a str>,
}

impl<'a> BlockShown<'a> {
    pub(crate) fn thinking(thinking: Option<&'a str>, signature: Option<&'a str>) -> Self {
        Self {
            index: None,
            kind: "thinking",
            thinking,
            signature,
            data: None,
        }
    }

    pub(crate) fn redacted(data: &'a str) -> Self {
        Self {
            index: None,
            kind: "redacted_thinking",
            thinking: None,
            signature: None,
            data: Some(data),
        }
    }

    pub(crate) fn of(thinking: &'a Thinking<'_>) -> Self {
        match thinking {
            Thinking::Shown { text, signature } => Self::thinking(Some(text), signature.as_deref()),
            Thinking::Redacted { data } => Self::redacted(data),
        }
    }

    pub(crate) fn at(self, index: u32) -> Self {
        Self {
            index: Some(index),
            ..self
        }
    }
}

/// One of `thinking_blocks` as a client or another gateway sends it.
#[derive(Deserialize)]
pub(crate) struct Block<'a> {
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default)]
    signature: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

impl<'a> Block<'a> {
    pub(crate) fn text(&self) -> Option<Cow<'a, str>> {
        filled(self.thinking)
    }

    pub(crate) fn signature(&self) -> Option<Cow<'a, str>> {
        filled(self.signature)
    }

    pub(crate) fn data(&self) -> Option<Cow<'a, str>> {
        filled(self.data)
    }

    fn into_thinking(self) -> Option<Thinking<'a>> {
        if let Some(data) = self.data() {
            return Some(Thinking::Redacted { data });
        }
        let (text, signature) = (self.text(), self.signature());
        (text.is_some() || signature.is_some()).then(|| Thinking::Shown {
            text: text.unwrap_or_default(),
            signature,
        })
    }
}

/// The blocks of a message or a delta; empty if they are none.
pub(crate) fn blocks(member: Option<&RawValue>) -> Vec<Block<'_>> {
    let blocks = member.and_then(|blocks| serde_json::from_str(blocks.get()).ok());
    blocks.unwrap_or_default()
}

/// The reasoning's text of a message or a delta, which some providers tell under two names.
pub(crate) fn reasoning<'a>(
    reasoning_content: Option<&'a RawValue>,
    reasoning: Option<&'a RawValue>,
) -> Option<Cow<'a, str>> {
    filled(reasoning_content).or_else(|| filled(reasoning))
}

/// A message's thinking: its blocks, or else the mere text.
pub(crate) fn thinking<'a>(
    thinking_blocks: Option<&'a RawValue>,
    text: Option<Cow<'a, str>>,
) -> Vec<Part<'a>> {
    let blocks: Vec<Part<'a>> = blocks(thinking_blocks)
        .into_iter()
        .filter_map(Block::into_thinking)
        .map(Part::Thinking)
        .collect();
    if !blocks.is_empty() {
        return blocks;
    }
    let unsigned = |text| {
        Part::Thinking(Thinking::Shown {
            text,
            signature: None,
        })
    };
    text.map(unsigned).into_iter().collect()
}

/// A string that is not empty.
pub(crate) fn filled(member: Option<&RawValue>) -> Option<Cow<'_, str>> {
    member.and_then(text).filter(|text| !text.is_empty())
}
