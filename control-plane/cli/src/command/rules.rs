//! `turnpike rules`.

use clap::Subcommand;

use super::Session;
use super::singleton::{self, FileArgs};
use crate::resource::RuleSet;

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Show the rules
    #[command(after_help = "\
Examples:
  turnpike rules get
  turnpike rules get -o json > rules.json")]
    Get,
    /// Replace all rules at once; they are validated as a whole
    ///
    /// The first enabled rule by priority (highest first, then position) whose effort and
    /// attributes match wins. A rule with `matchModel` is for requests that name this model, every
    /// other one for `auto`; `auto` needs a catch-all (no attributes) for each effort.
    #[command(after_help = "\
A rule file:
  rules:
    - name: batch
      priority: 10
      attributes: {job: nightly}
      models: [cheap]
    - name: default
      models: [fast, cheap]
      maxAttempts: 2

Examples:
  turnpike rules replace -f rules.yaml --wait
  turnpike rules get -o json | jq '.spec.rules[0].disabled = true' | turnpike rules replace -f -")]
    Replace(FileArgs),
}

impl RulesCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Get => singleton::get::<RuleSet>(session).await,
            Self::Replace(args) => args.replace::<RuleSet>(session).await,
        }
    }
}
