//! The binary as an operator runs it, on a real Postgres that can go away.
//!
//! Needs `TURNPIKE_TEST_DATABASE_URL`, the URL of a superuser; each test makes its own database.

#[path = "binary/outage.rs"]
mod outage;
#[path = "binary/postgres.rs"]
mod postgres;
#[path = "binary/process.rs"]
mod process;
#[path = "binary/start.rs"]
mod start;
