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
mod run;
mod tls;
mod webhook;

use std::io::IsTerminal as _;

use clap::Parser as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = args::Args::parse();
    tracing_subscriber::fmt()
        .with_env_filter(&args.log)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    run::run(args).await
}
