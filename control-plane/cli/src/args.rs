//! The command line: global flags, and one subcommand a noun.

use clap::{Parser, Subcommand};

use crate::access::Access;
use crate::apply::ApplyArgs;
use crate::command::audit::AuditCommand;
use crate::command::credentials::CredentialsCommand;
use crate::command::keys::KeysCommand;
use crate::command::limits::LimitsCommand;
use crate::command::models::ModelsCommand;
use crate::command::nodes::{NodesCommand, WaitCommand};
use crate::command::prices::PricesCommand;
use crate::command::providers::ProvidersCommand;
use crate::command::rules::RulesCommand;
use crate::command::settings::SettingsCommand;
use crate::command::teams::TeamsCommand;
use crate::command::usage::UsageCommand;
use crate::output::Format;

/// Administer a Turnpike LLM gateway from a terminal.
///
/// Everything that the control plane's admin API can do: teams and their keys, providers and their
/// credentials, models, rules, prices, limits, settings, usage, nodes, and the audit log. Results go to
/// stdout, notes and errors to stderr. Exit code 0: done; 1: failed, and stderr says why in one
/// line; 2: wrong usage.
#[derive(Debug, Parser)]
#[command(name = "turnpike", version, max_term_width = 100, after_long_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) access: Access,

    /// How results are printed
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub(crate) output: Format,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  export TURNPIKE_ADMIN_ADDR=127.0.0.1:9090 TURNPIKE_ADMIN_TOKEN=...
  turnpike teams create acme --display-name 'Acme Corp.'
  KEY=$(turnpike keys create acme-ci --team acme --expires 90d --wait)
  turnpike usage query --by team,model --since 24h
  turnpike apply -f gateway.yaml --wait";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Groups of keys that are billed and limited together
    #[command(subcommand)]
    Teams(TeamsCommand),
    /// Virtual keys, which callers present instead of a provider's secret
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Where models are served
    #[command(subcommand)]
    Providers(ProvidersCommand),
    /// The providers' own secrets
    #[command(subcommand)]
    Credentials(CredentialsCommand),
    /// Public model names and what answers them
    #[command(subcommand)]
    Models(ModelsCommand),
    /// The rule set, which chooses models for `auto` and for public names
    #[command(subcommand)]
    Rules(RulesCommand),
    /// The price book, in USD per million tokens
    #[command(subcommand)]
    Prices(PricesCommand),
    /// How much teams, keys and end users may use
    #[command(subcommand)]
    Limits(LimitsCommand),
    /// Settings of the whole deployment
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Who used what, and what it cost
    #[command(subcommand)]
    Usage(UsageCommand),
    /// The Envoys that run the config
    #[command(subcommand)]
    Nodes(NodesCommand),
    /// Wait until every connected node runs a config version
    Wait(WaitCommand),
    /// Who changed what, and when
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Create or update resources from YAML or JSON documents
    Apply(ApplyArgs),
}
