//! OpenAI's chat completions, as OpenAI and the providers compatible with it speak it.

mod answer;
pub mod chat;
pub mod closing;
pub mod error;
pub mod meter;
pub mod models;
mod name;
mod reported;
mod strip;
