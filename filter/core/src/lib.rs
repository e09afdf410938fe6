//! The decision core: what becomes of a request to a model, from its first header to its usage
//! record. Pure and sans-I/O: time, entropy and what Envoy knows are arguments, so the same path
//! runs in Envoy, in unit tests and in a simulator. It moves no bytes and knows no socket; that is
//! `filter-module`. Wire formats of providers are `filter-llm`.
//!
//! # Life of a request
//!
//! ① is the downstream filter, ② the cluster specifier, ③ the upstream filter of one attempt.
//!
//! | phase | [`exchange::Exchange`] | decided in |
//! |---|---|---|
//! | ① begin | `begin`, `edit_request_head` | `head`, `authenticate`, `models` |
//! | ① body | `on_request_bytes`, `on_request_body`, `edit_forward_head` | `route`, `admit` |
//! | ① limits | `wait`, `on_credit`, `on_wait_over` | `admit`, `exchange/admission` |
//! | ② attempt | `select` | `exchange/attempts`, `exchange/turn`, `health` |
//! | ③ request | `begin_attempt`, `rewrite_body`, `on_request_sent` | `forward` |
//! | ③ answer | `on_response_head`, `observe` or `transform`, `guard`, `on_response_end` | `respond`, `exchange/guard` |
//! | ① answer | `edit_client_head`, `restore_request_head`, `on_local_reply` | `exchange/answer`, `exchange/local_reply` |
//! | ① settle | `settle` | `attempt`, `exchange/settle` |
//!
//! Every refusal is in `error`. What all of this decides by is [`config`].
//!
//! Read next: `exchange`.

#![forbid(unsafe_code)]

mod admit;
mod attempt;
mod authenticate;
pub mod config;
pub mod crashed;
pub mod credit;
mod error;
pub mod exchange;
mod forward;
mod head;
pub mod health;
pub mod host;
pub mod key;
pub mod limits;
mod models;
mod respond;
mod route;
pub mod sigv4;
mod text;

#[cfg(test)]
mod fixture;
