//! End-to-end tests: one per promise to a user, over a real Envoy, control plane and Postgres.
//! The provider is the test provider, scripted by the request itself.
#![forbid(unsafe_code)]

mod answers;
mod cases;
mod counted;
mod keys;
mod refusals;
mod retries;
