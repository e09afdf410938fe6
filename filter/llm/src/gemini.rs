//! Google's `generateContent`, as AI Studio and Vertex speak it.
//!
//! Members are told in camel case; requests may have them in snake case too, since Google's own
//! parser takes both.

pub(crate) mod answer;
pub(crate) mod closing;
mod document;
pub(crate) mod error;
mod facts;
mod name;
mod print_answer;
mod print_contents;
mod print_events;
mod print_request;
mod read_answer;
mod read_content;
mod read_request;
mod reported;
mod schema;

pub(crate) use facts::parse;
pub(crate) use print_answer::print_answer;
pub(crate) use print_events::GeminiPrinter;
pub(crate) use print_request::print_request;
pub(crate) use read_answer::{GeminiEvents, read_answer};
pub(crate) use read_request::read_request;
