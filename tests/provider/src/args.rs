//! Command line of `turnpike-provider`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;

/// An OpenAI-compatible provider for demos and tests: no model behind it, scripted by its requests.
#[derive(Debug, Clone, Parser)]
#[command(name = "turnpike-provider", version)]
pub struct Args {
    /// Address to listen on; port 0 takes a free one. The address taken is printed as the first line.
    #[arg(long, default_value = "127.0.0.1:9092")]
    pub listen: SocketAddr,
    /// Seed of the token counts.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder of recorded cases that a script's `case` may name.
    #[arg(long)]
    pub cases_dir: Option<PathBuf>,
    /// File that gets one JSON line for each finished request.
    #[arg(long)]
    pub record_file: Option<PathBuf>,
    /// Count tokens as a model does that keeps to `max_tokens`, where no script says otherwise:
    /// by the length of what was asked and answered, in place of counts that tell requests apart.
    #[arg(long)]
    pub demo_tokens: bool,
    /// Keep request bodies in what `/_served` shows, not their hashes only.
    #[arg(long)]
    pub keep_bodies: bool,
    /// Models that `/v1/models` lists; every model name is answered.
    #[arg(long = "model", default_values_t = ["demo-small".to_owned(), "demo-large".to_owned()])]
    pub models: Vec<String>,
}
