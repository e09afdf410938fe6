//! `turnpike-load`: see the library's documentation.
#![forbid(unsafe_code)]

use clap::Parser as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    bench::args::Args::parse().run().await
}
