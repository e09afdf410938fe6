//! What each command does: one file a noun, over the shared verbs of `collection` and `singleton`.

pub(crate) mod audit;
mod collection;
pub(crate) mod credentials;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod models;
pub(crate) mod nodes;
mod paging;
pub(crate) mod prices;
mod provider_presets;
pub(crate) mod providers;
pub(crate) mod rules;
pub(crate) mod settings;
mod singleton;
pub(crate) mod teams;
pub(crate) mod usage;

use crate::access::Access;
use crate::args::Command;
use crate::link::Link;
use crate::output::Output;

/// What every command gets: the way to the control plane, and the way to the terminal.
pub(crate) struct Session<'a> {
    pub(crate) access: Access,
    pub(crate) output: Output<'a>,
}

impl Session<'_> {
    pub(crate) async fn link(&mut self) -> anyhow::Result<Link> {
        self.access.connect(&mut self.output).await
    }
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> anyhow::Result<()> {
    match command {
        Command::Teams(command) => Box::pin(command.run(session)).await,
        Command::Keys(command) => Box::pin(command.run(session)).await,
        Command::Providers(command) => Box::pin(command.run(session)).await,
        Command::Credentials(command) => Box::pin(command.run(session)).await,
        Command::Models(command) => Box::pin(command.run(session)).await,
        Command::Rules(command) => Box::pin(command.run(session)).await,
        Command::Prices(command) => Box::pin(command.run(session)).await,
        Command::Limits(command) => Box::pin(command.run(session)).await,
        Command::Settings(command) => Box::pin(command.run(session)).await,
        Command::Usage(command) => Box::pin(command.run(session)).await,
        Command::Nodes(command) => Box::pin(command.run(session)).await,
        Command::Wait(command) => Box::pin(command.run(session)).await,
        Command::Audit(command) => Box::pin(command.run(session)).await,
        Command::Apply(command) => Box::pin(command.run(session)).await,
    }
}
