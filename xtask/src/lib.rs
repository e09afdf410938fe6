//! The parts of `cargo xtask`: fetch what is pinned, run Postgres, Envoy and our own processes,
//! put them together into a stack, and run everything that CI runs.
//!
//! Tests use the same parts, so that what they start is what `cargo xtask up` starts. Nothing here
//! is shipped, and nothing here is needed to run Turnpike in production.
//!
//! Read next: `stack.rs` for what is started and in which order, `up.rs` and `ci.rs` for the two
//! commands.
#![forbid(unsafe_code)]

pub mod bench;
pub mod build;
pub mod ci;
pub mod cli;
pub mod codegen;
pub mod debian;
pub mod foreign;
pub mod hash;
pub mod http;
pub mod interrupt;
pub mod layout;
pub mod pins;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod render;
pub mod sdks;
pub mod seed;
pub mod sqlx_prepare;
pub mod stack;
pub mod steps;
pub mod tail;
pub mod up;
