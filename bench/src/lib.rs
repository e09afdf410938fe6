//! Load over sockets: a client that measures, and an upstream that answers as cheaply as it can,
//! so that what is measured is what stands between them.
//!
//! A client of our own, since the usual load tools know no time to the first token. It runs closed
//! loops: each connection sends its next request when its last answer has ended, so it never asks
//! for more than there is, and its rates and times are those of a busy gateway, not of an idle one.
//! Any answer but the expected one ends the run: an error is not a fast answer.
//!
//! It starts nothing and compares nothing: `cargo xtask bench` does. Read next: `closed_loop.rs`.
#![forbid(unsafe_code)]

pub mod args;
pub mod closed_loop;
pub mod connection;
pub mod figures;
pub mod hold;
pub mod upstream;
