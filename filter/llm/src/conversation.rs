//! A request and its answer in the one form that lies between APIs. Each API reads its own
//! requests into a [`Request`] and prints a [`Request`] as its own; it reads its own answers as an
//! [`Answer`] or as [`Event`]s, and prints both. So a pair of APIs needs no code of its own.
//!
//! It holds what at least two APIs can say. What only one can say is named in
//! [`Request::left_out`], so that it can be told or refused, and is never lost in silence.
//!
//! Borrowed from the bytes that were read, wherever they have no escapes.

mod answer;
#[cfg(test)]
pub(crate) mod arbitrary;
mod request;

pub use answer::{Answer, Event, EventQueue, Finish};
pub use request::{
    CacheMark, Effort, Format, Media, MediaSource, Message, Part, Reasoning, Request, Role, Schema,
    System, Thinking, Tool, ToolCall, ToolChoice, ToolResult,
};
