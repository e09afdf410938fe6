//! OpenAI's chat completions, as OpenAI and the providers compatible with it speak it.

pub(crate) mod answer;
pub(crate) mod chat;
pub(crate) mod closing;
pub(crate) mod error;
mod name;
mod reported;
