//! OpenAI's chat completions, completions and embeddings, as OpenAI and the providers compatible
//! with it speak them.

pub(crate) mod answer;
pub(crate) mod chat;
pub(crate) mod closing;
pub(crate) mod completions;
pub(crate) mod embeddings;
pub(crate) mod error;
mod input;
mod name;
mod print;
mod reported;
mod stream_options;
mod usage;
