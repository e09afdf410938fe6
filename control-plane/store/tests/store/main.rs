//! The store against a real Postgres: each promise once.
//!
//! `TURNPIKE_TEST_DATABASE_URL` names a server and a role that may create databases; each test
//! makes its own. Without it the tests fail.

#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, also in what it shares with others"
)]

mod audit;
mod config;
mod credentials;
mod database;
mod ledger;
mod ledger_races;
mod limits;
mod publishing;
mod repricing;
mod retention;
mod schema;
mod watching;
