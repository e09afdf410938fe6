//! OpenAI's chat completions, responses, completions and embeddings, as OpenAI and the providers compatible
//! with it speak them.

pub(crate) mod answer;
pub(crate) mod chat;
pub(crate) mod closing;
pub(crate) mod completions;
pub(crate) mod embeddings;
pub(crate) mod error;
mod input;
mod name;
pub(crate) mod print;
mod reported;
pub(crate) mod responses;
mod stream_options;
mod usage;
