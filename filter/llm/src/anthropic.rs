//! Anthropic's Messages, as Anthropic, Vertex and Azure speak it.

pub(crate) mod answer;
mod block;
pub(crate) mod closing;
pub(crate) mod count_tokens;
mod document;
pub(crate) mod error;
mod event;
mod facts;
mod message;
mod model;
mod name;
mod print_answer;
mod print_events;
mod print_messages;
mod print_reasoning;
mod print_request;
mod read_answer;
mod read_content;
mod read_events;
mod read_request;
mod reported;

#[cfg(test)]
mod round_trip;

// What Bedrock shares, since it serves the same models.
pub(crate) use block::input;
pub(crate) use document::Said;
pub(crate) use print_messages::plain_id;
pub(crate) use print_reasoning::{Sampling, Thinking, ThinkingShown};
pub(crate) use print_request::no_input;

pub(crate) use facts::parse;
pub(crate) use print_answer::print_answer;
pub(crate) use print_events::MessageEvents;
pub(crate) use print_request::print_request;
pub(crate) use read_answer::read_answer;
pub(crate) use read_events::AnthropicEvents;
pub(crate) use read_request::read_request;
