//! The demo and test provider: OpenAI, Anthropic and Gemini, played over raw sockets, so that every byte,
//! chunk border, pause and cut is ours to choose.
//!
//! Each request may carry a [`script::Script`] that says how to answer it; without one it gets a
//! short demo text. What was served is kept request by request and can be read back
//! ([`served::Served`]): that is the ground truth a usage ledger is compared with.
//!
//! It is not a model, checks no credential, and speaks HTTP/1.1 only.
//!
//! Read next: `script.rs` for what can be asked for, `serve.rs` for the way of one request,
//! `delivery.rs` for how bytes leave.
#![forbid(unsafe_code)]

pub mod answer;
pub mod args;
pub mod case;
pub mod delivery;
pub mod generate_content;
pub mod gzip;
pub mod hash;
pub mod messages;
pub mod reply;
pub mod script;
pub mod serve;
pub mod served;
pub mod stream;
pub mod tokens;
pub mod wire;
