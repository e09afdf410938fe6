//! `turnpike settings`.

use clap::Subcommand;

use super::Session;
use super::singleton::{self, FileArgs};
use crate::resource::Settings;

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Show the settings in force beside their defaults
    #[command(after_help = "Examples:\n  turnpike settings get")]
    Get,
    /// Replace all settings; what the file leaves out gets its default
    #[command(after_help = "\
Settings and their defaults:
  maxRequestBodyBytes   33554432   largest request body; larger ones get 413
  maxHeldBodyBytes      536870912  request bodies that one Envoy process may hold at a time
  maxStreamEventBytes   16777216   largest single event of a stream
  firstTokenHoldBytes   262144     bytes of a stream held back while waiting for the first content
  firstTokenHoldMs      60000      milliseconds of that wait, from the first event on
  onUnknownUsage        estimate   cost of an attempt without reported usage: estimate, void
  maxStaleS             86400      seconds a node may serve while the control plane is away
  streamIdleTimeoutMs   300000     milliseconds of silence after which a stream is cut

Examples:
  echo 'maxStaleS: 3600' | turnpike settings update -f - --wait
  turnpike settings get -o json | jq '.spec.maxStaleS = 3600' | turnpike settings update -f -")]
    Update(FileArgs),
}

impl SettingsCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Get => singleton::get::<Settings>(session).await,
            Self::Update(args) => args.replace::<Settings>(session).await,
        }
    }
}
