//! The gRPC services over real sockets and a real Postgres.
//!
//! Needs `TURNPIKE_TEST_DATABASE_URL`, the URL of a superuser; each test makes its own database.

#[path = "services/admin.rs"]
mod admin;
#[path = "services/ads.rs"]
mod ads;
#[path = "services/harness.rs"]
mod harness;
#[path = "services/metering.rs"]
mod metering;
#[path = "services/node.rs"]
mod node;
#[path = "services/wait.rs"]
mod wait;
