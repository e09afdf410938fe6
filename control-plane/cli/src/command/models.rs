//! `turnpike models`.

use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};

use super::Session;
use super::collection::{self, DeleteArgs, GetArgs, LimitArgs};
use crate::moment::parse_length;
use crate::resource::{Capability, Effort, Model, ModelSpec, TargetSpec};
use crate::unpriced;
use crate::wait::WaitArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Publish a model name
    ///
    /// A target without a price in the price book is told on stderr.
    #[command(after_help = "\
Examples:
  turnpike models create gpt-4o-mini --target openai --context-window 128000
  turnpike models create fast --target groq:llama-3.1-8b-instant --target openai:gpt-4o-mini \\
      --capability tools,json-schema --first-token-timeout 10s --wait")]
    Create(CreateModel),
    /// List every model, by name
    #[command(after_help = "Examples:\n  turnpike models list")]
    List(LimitArgs),
    /// Show one model
    #[command(after_help = "Examples:\n  turnpike models get gpt-4o-mini")]
    Get(GetArgs),
    /// Change a model; what is not named stays as it is
    #[command(
        override_usage = "turnpike models update [OPTIONS] <NAME>",
        after_help = "\
Examples:
  turnpike models update fast --target openai:gpt-4o-mini --wait
  turnpike models update fast --disable"
    )]
    Update(UpdateModel),
    /// Delete a model that no rule names
    #[command(after_help = "Examples:\n  turnpike models delete fast --wait")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateModel {
    /// Public name, 1-128 characters; may contain `/`
    name: String,

    /// Where it is served, PROVIDER[:UPSTREAM_MODEL]; given several times, they are tried in this
    /// order [default upstream model: the public name]
    #[arg(long = "target", value_name = "TARGET", required = true)]
    targets: Vec<TargetSpec>,

    /// Longest wait of each target for the first content, for example 30s [default: 2m]
    #[arg(long, value_name = "LENGTH", value_parser = parse_length)]
    first_token_timeout: Option<Duration>,

    /// What it can do; several with commas
    #[arg(
        long = "capability",
        value_enum,
        value_name = "CAPABILITY",
        value_delimiter = ','
    )]
    capabilities: Vec<Capability>,

    /// Efforts it serves; several with commas [default: all]
    #[arg(
        long = "effort",
        value_enum,
        value_name = "EFFORT",
        value_delimiter = ','
    )]
    efforts: Vec<Effort>,

    /// Tokens of input and output together; 0: unknown
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    context_window: u64,

    /// Do not offer it yet
    #[arg(long)]
    disabled: bool,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateModel {
    /// Public name, as `list` shows it
    name: String,

    #[command(flatten)]
    change: ModelChange,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct ModelChange {
    /// Where it is served, PROVIDER[:UPSTREAM_MODEL], in this order; replaces every target
    #[arg(long = "target", value_name = "TARGET")]
    targets: Option<Vec<TargetSpec>>,

    /// Longest wait of each target for the first content, for example 30s
    #[arg(long, value_name = "LENGTH", value_parser = parse_length)]
    first_token_timeout: Option<Duration>,

    /// What it can do; several with commas; replaces the list
    #[arg(
        long = "capability",
        value_enum,
        value_name = "CAPABILITY",
        value_delimiter = ','
    )]
    capabilities: Option<Vec<Capability>>,

    /// It can do none of them
    #[arg(long, conflicts_with = "capabilities")]
    no_capabilities: bool,

    /// Efforts it serves; several with commas; replaces the list
    #[arg(
        long = "effort",
        value_enum,
        value_name = "EFFORT",
        value_delimiter = ','
    )]
    efforts: Option<Vec<Effort>>,

    /// It serves all efforts
    #[arg(long, conflicts_with = "efforts")]
    all_efforts: bool,

    /// Tokens of input and output together; 0: unknown
    #[arg(long, value_name = "TOKENS")]
    context_window: Option<u64>,

    /// Do not offer it
    #[arg(long)]
    disable: bool,

    /// Offer it again
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
}

impl ModelsCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Create(args) => args.run(session).await,
            Self::List(limit) => collection::list::<Model>(session, "", limit).await,
            Self::Get(args) => args.run::<Model>(session).await,
            Self::Update(args) => args.run(session).await,
            Self::Delete(args) => args.run::<Model>(session).await,
        }
    }
}

impl CreateModel {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let mut spec = ModelSpec {
            targets: self.targets,
            capabilities: self.capabilities,
            efforts: self.efforts,
            context_window: self.context_window,
            disabled: self.disabled,
        };
        if let Some(timeout) = self.first_token_timeout {
            set_timeout(&mut spec.targets, timeout_ms(timeout)?);
        }
        let link = session.link().await?;
        let name = self.name.as_str();
        collection::create_on::<Model>(&link, session, name, &spec, None, self.wait).await?;
        unpriced::note(&link, &mut session.output, [(name, &spec)]).await
    }
}

impl UpdateModel {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let Self { name, change, wait } = self;
        let timeout_ms = change.first_token_timeout.map(timeout_ms).transpose()?;
        let edit = |spec: &mut ModelSpec| change.edit(timeout_ms, spec);
        let link = session.link().await?;
        let updated = collection::update_on::<Model>(&link, session, &name, None, wait, edit).await;
        let spec = updated?;
        unpriced::note(&link, &mut session.output, [(name.as_str(), &spec)]).await
    }
}

impl ModelChange {
    fn edit(self, timeout_ms: Option<u32>, spec: &mut ModelSpec) {
        if let Some(targets) = self.targets {
            spec.targets = targets;
        }
        if let Some(timeout_ms) = timeout_ms {
            set_timeout(&mut spec.targets, timeout_ms);
        }
        if let Some(capabilities) = self.capabilities {
            spec.capabilities = capabilities;
        }
        if self.no_capabilities {
            spec.capabilities.clear();
        }
        if let Some(efforts) = self.efforts {
            spec.efforts = efforts;
        }
        if self.all_efforts {
            spec.efforts.clear();
        }
        spec.context_window = self.context_window.unwrap_or(spec.context_window);
        spec.disabled = (spec.disabled || self.disable) && !self.enable;
    }
}

fn timeout_ms(timeout: Duration) -> anyhow::Result<u32> {
    u32::try_from(timeout.as_millis()).context("--first-token-timeout is longer than 49 days")
}

fn set_timeout(targets: &mut [TargetSpec], timeout_ms: u32) {
    for target in targets {
        target.first_token_timeout_ms = timeout_ms;
    }
}
