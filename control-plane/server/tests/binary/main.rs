//! The binary as an operator runs it, on a real Postgres that can go away.
//!
//! Needs `TURNPIKE_TEST_DATABASE_URL`, the URL of a superuser; each test makes its own database.

#[cfg(test)]
mod leases;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod postgres;
#[cfg(test)]
mod process;
#[cfg(test)]
mod start;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod webhook;
