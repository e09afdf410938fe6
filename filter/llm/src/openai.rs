//! OpenAI's chat completions, as OpenAI and the providers compatible with it speak it.

pub(crate) mod answer;
pub(crate) mod chat;
pub mod closing;
pub mod error;
pub mod models;
mod name;
mod reported;
