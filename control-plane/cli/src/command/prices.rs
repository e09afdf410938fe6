//! `turnpike prices`.

use clap::Subcommand;

use super::Session;
use super::singleton::{self, FileArgs};
use crate::resource::PriceBook;

#[derive(Debug, Subcommand)]
pub(crate) enum PricesCommand {
    /// Show the prices, in USD per million tokens; `-` is unknown, which is not zero
    #[command(after_help = "\
Examples:
  turnpike prices get
  turnpike prices get -o json > prices.json")]
    Get,
    /// Replace the whole price book under a new version
    ///
    /// Prices are USD per million tokens, decimals with at most 6 places, kept exactly. Of several
    /// entries for one upstream model, the latest whose `effectiveFrom` is not after the attempt's
    /// start holds. Absent `cachedInput` and `cacheWrite` cost as `input`, absent `reasoning` as
    /// `output`; an absent `input` or `output` is unknown, and what it would cost is counted apart.
    #[command(after_help = "\
A price file:
  prices:
    - provider: openai
      upstreamModel: gpt-4o-mini
      effectiveFrom: 2026-12-01
      input: 0.15
      cachedInput: 0.075
      output: 0.60

Examples:
  turnpike prices replace -f prices.yaml --wait")]
    Replace(FileArgs),
}

impl PricesCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Get => singleton::get::<PriceBook>(session).await,
            Self::Replace(args) => args.replace::<PriceBook>(session).await,
        }
    }
}
