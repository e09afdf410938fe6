//! `turnpike teams`.

use clap::{Args, Subcommand};

use super::Session;
use super::collection::{self, DeleteArgs, GetArgs, LimitArgs};
use crate::resource::{Team, TeamSpec};
use crate::wait::WaitArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum TeamsCommand {
    /// Create a team
    #[command(after_help = "\
Examples:
  turnpike teams create acme --display-name 'Acme Corp.'
  turnpike teams create research --models gpt-4o,anthropic/* --wait")]
    Create(CreateTeam),
    /// List every team, by id
    #[command(after_help = "Examples:\n  turnpike teams list -o json")]
    List(LimitArgs),
    /// Show one team
    #[command(after_help = "Examples:\n  turnpike teams get acme")]
    Get(GetArgs),
    /// Change a team; what is not named stays as it is
    #[command(
        override_usage = "turnpike teams update [OPTIONS] <ID>",
        after_help = "\
Examples:
  turnpike teams update acme --models gpt-4o,gpt-4o-mini --wait
  turnpike teams update acme --disable --wait=30"
    )]
    Update(UpdateTeam),
    /// Delete a team that has neither keys nor credentials
    #[command(after_help = "Examples:\n  turnpike teams delete acme --wait")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateTeam {
    /// Id, 1-64 characters of a-z, 0-9 and `-`
    id: String,

    /// Name for people
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    display_name: String,

    /// Public model names its keys may use, or `prefix/*`; several with commas [default: every model]
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    models: Vec<String>,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateTeam {
    /// Id, as `list` shows it
    id: String,

    #[command(flatten)]
    change: TeamChange,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct TeamChange {
    /// Name for people
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,

    /// Public model names its keys may use, or `prefix/*`; several with commas; replaces the list
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    models: Option<Vec<String>>,

    /// Let its keys use every model
    #[arg(long, conflicts_with = "models")]
    all_models: bool,

    /// Refuse every key of the team
    #[arg(long)]
    disable: bool,

    /// Accept its keys again
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
}

impl TeamsCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Create(args) => args.run(session).await,
            Self::List(limit) => collection::list::<Team>(session, "", limit).await,
            Self::Get(args) => args.run::<Team>(session).await,
            Self::Update(args) => args.run(session).await,
            Self::Delete(args) => args.run::<Team>(session).await,
        }
    }
}

impl CreateTeam {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let spec = TeamSpec {
            display_name: self.display_name,
            disabled: false,
            models: self.models,
        };
        collection::create::<Team>(session, &self.id, &spec, None, self.wait).await
    }
}

impl UpdateTeam {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let Self { id, change, wait } = self;
        collection::update::<Team>(session, &id, None, wait, |spec| change.edit(spec)).await
    }
}

impl TeamChange {
    fn edit(self, spec: &mut TeamSpec) {
        spec.display_name = self
            .display_name
            .unwrap_or(std::mem::take(&mut spec.display_name));
        if let Some(models) = self.models {
            spec.models = models;
        }
        if self.all_models {
            spec.models.clear();
        }
        spec.disabled = (spec.disabled || self.disable) && !self.enable;
    }
}
