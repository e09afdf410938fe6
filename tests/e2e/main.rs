//! End-to-end tests: one per promise to a user, over a real Envoy, control plane and Postgres.
//! The provider is the test provider, scripted by the request itself.
#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what is wrong by a panic"
)]

mod answers;
mod cases;
mod chaos;
mod counted;
mod crash;
mod dialects;
mod keys;
mod limit_cut;
mod limits;
mod outage;
mod panics;
mod refusals;
mod retries;
mod sdks;
mod spool;
mod symbols;
mod tls;
mod unconnected;
