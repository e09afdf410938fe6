//! `turnpike-provider`: see the library's documentation.
#![forbid(unsafe_code)]

use clap::Parser as _;
use tests_provider::{args::Args, serve};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    serve::run(Args::parse()).await
}
