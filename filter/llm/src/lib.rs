//! What is said between a client, the gateway and a model provider: requests, answers, event
//! streams, usage and prices. Pure: no clock, no I/O, no state beyond one request.
//!
//! It is not a client, and it decides nothing: routing, limits and settlement are in `filter-core`.
//!
//! A dialect is one module ([`openai`], [`anthropic`], [`gemini`], [`bedrock`]) that reads requests, meters
//! answers and writes errors of its wire protocol, and puts all three into the form of a
//! [`conversation`] and back. What every dialect shares stands beside it: edits of bytes
//! ([`splice`]), framing ([`event_stream`]), a scanner of JSON that arrives in pieces ([`json`]),
//! what was read ([`reading`]) and what it costs ([`usage`], [`estimate`], [`price`]).
//!
//! Read next: [`request`] for what decides, [`meter`] for the answer, [`translate`] for the rest.

#![forbid(unsafe_code)]

pub mod anthropic;
pub mod api;
pub mod bedrock;
pub mod closing;
pub mod conversation;
pub mod error;
pub mod estimate;
pub mod event_stream;
pub mod gemini;
pub mod json;
pub mod mask;
pub mod meter;
pub mod models;
pub mod openai;
pub mod price;
pub mod provider_error;
pub mod reading;
pub mod request;
pub mod splice;
pub mod translate;
pub mod usage;
