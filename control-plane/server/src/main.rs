//! `turnpike-control-plane`: keeps keys, rules, prices and usage in Postgres and brings config to
//! every node over gRPC.
//!
//! The binary only puts parts together: read `args` for what it takes, `run` for the order in
//! which it starts and stops, and the crate `control-plane-grpc` for what it serves.

#![forbid(unsafe_code)]

mod args;
mod files;
mod grpc;
mod http;
mod incoming;
mod log;
mod run;
mod tls;
mod webhook;

use std::process::ExitCode;

use clap::Parser as _;

#[tokio::main]
async fn main() -> ExitCode {
    let args = args::Args::parse();
    log::start(&args.log);
    let ended = run::run(args).await;
    ended.map_or_else(|error| log::last_words(&error), |()| ExitCode::SUCCESS)
}
