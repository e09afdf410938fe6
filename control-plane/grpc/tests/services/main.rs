//! The gRPC services over real sockets and a real Postgres.
//!
//! Needs `TURNPIKE_TEST_DATABASE_URL`, the URL of a superuser; each test makes its own database.

#[cfg(test)]
mod admin;
#[cfg(test)]
mod ads;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod metering;
#[cfg(test)]
mod node;
#[cfg(test)]
mod session;
#[cfg(test)]
mod wait;
