//! What the end-to-end tests share: a stack of real components, a client that shows every byte,
//! the ledger as the admin API gives it, and the provider's own account of what it served.
//!
//! Nothing here stands in for a part of the product. A component that is missing is an error.
#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what is wrong by a panic"
)]

pub mod admin;
pub mod balancer;
pub mod http;
pub mod ledger;
pub mod metrics;
pub mod stack;
pub mod truth;
pub mod wait;

/// Writes a line for whoever watches the tests (`--nocapture`).
pub fn say(line: &str) {
    use std::io::Write as _;
    drop(writeln!(std::io::stderr(), "{line}"));
}
