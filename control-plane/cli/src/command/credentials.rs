//! `turnpike credentials`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::Session;
use super::collection::{self, DeleteArgs, GetArgs, LimitArgs};
use crate::resource::{Credential, CredentialSpec};
use crate::secret::Secret;
use crate::wait::WaitArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum CredentialsCommand {
    /// Add a provider's secret, for everyone, a team or a key
    #[command(after_help = "\
Examples:
  turnpike credentials create --provider openai --secret-file openai.key
  pass show openai | turnpike credentials create --provider openai --team acme --secret-file -
  turnpike credentials create --provider openai --env OPENAI_API_KEY
  turnpike credentials create --provider azure --file azure/api-key --weight 3")]
    Create(CreateCredential),
    /// List every credential, by id; secrets are never shown
    #[command(after_help = "Examples:\n  turnpike credentials list --provider openai")]
    List(ListCredentials),
    /// Show one credential; its secret is never shown
    #[command(after_help = "Examples:\n  turnpike credentials get openai")]
    Get(GetArgs),
    /// Rotate a credential or change its weight; what is not named stays as it is
    #[command(
        override_usage = "turnpike credentials update [OPTIONS] <ID>",
        after_help = "\
Examples:
  turnpike credentials update openai --secret-file new.key --wait
  turnpike credentials update openai --weight 10"
    )]
    Update(UpdateCredential),
    /// Delete a credential
    #[command(after_help = "Examples:\n  turnpike credentials delete openai --wait")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["secret_file", "file", "env"]))]
pub(crate) struct CreateCredential {
    /// Id, 1-64 characters of a-z, 0-9 and `-` [default: the provider's id, then the team's or
    /// the key's]
    id: Option<String>,

    /// Id of the provider it opens; fixed at creation
    #[arg(long, value_name = "PROVIDER")]
    provider: String,

    /// Only for keys of this team
    #[arg(long, value_name = "TEAM", conflicts_with = "key")]
    team: Option<String>,

    /// Only for this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Share among credentials of the same kind, 1-1000
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = weight())]
    weight: u32,

    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    wait: WaitArgs,
}

/// Where the secret is; never an argument, which other processes could see.
#[derive(Debug, Args)]
struct SourceArgs {
    /// Local file with the secret (`-`: stdin), sent to the control plane and kept encrypted
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "env"])]
    secret_file: Option<PathBuf>,

    /// File in the control plane's secrets directory, read at each publish
    #[arg(long, value_name = "PATH", conflicts_with = "env")]
    file: Option<String>,

    /// Environment variable of the control plane: `TURNPIKE_SECRET_...`, or a well-known
    /// `..._API_KEY`
    #[arg(long, value_name = "NAME")]
    env: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListCredentials {
    /// Only credentials of this provider
    #[arg(
        long,
        value_name = "PROVIDER",
        default_value = "",
        hide_default_value = true
    )]
    provider: String,

    #[command(flatten)]
    limit: LimitArgs,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true)
    .args(["weight", "secret_file", "file", "env"]))]
pub(crate) struct UpdateCredential {
    /// Id, as `list` shows it
    id: String,

    /// Share among credentials of the same kind, 1-1000
    #[arg(long, value_name = "N", value_parser = weight())]
    weight: Option<u32>,

    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    wait: WaitArgs,
}

fn weight() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=1000)
}

impl CredentialsCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Create(args) => args.run(session).await,
            Self::List(args) => {
                collection::list::<Credential>(session, &args.provider, args.limit).await
            }
            Self::Get(args) => args.run::<Credential>(session).await,
            Self::Update(args) => args.run(session).await,
            Self::Delete(args) => args.run::<Credential>(session).await,
        }
    }
}

impl CreateCredential {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let SourceArgs {
            secret_file,
            file,
            env,
        } = self.source;
        let secret = secret_file.as_deref().map(Secret::read).transpose()?;
        let owner = self.team.as_ref().or(self.key.as_ref());
        let id = self.id.unwrap_or_else(|| match owner {
            Some(owner) => format!("{}-{owner}", self.provider),
            None => self.provider.clone(),
        });
        let spec = CredentialSpec {
            provider: self.provider,
            team: self.team,
            virtual_key: self.key,
            weight: self.weight,
            secret_file: None,
            file,
            environment_variable: env,
        };
        collection::create::<Credential>(session, &id, &spec, secret.as_ref(), self.wait).await
    }
}

impl UpdateCredential {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let Self {
            id,
            weight,
            source,
            wait,
        } = self;
        let SourceArgs {
            secret_file,
            file,
            env,
        } = source;
        let secret = secret_file.as_deref().map(Secret::read).transpose()?;
        let names_source = file.is_some() || env.is_some();
        let edit = |spec: &mut CredentialSpec| {
            spec.weight = weight.unwrap_or(spec.weight);
            if names_source {
                (spec.file, spec.environment_variable) = (file, env);
            }
        };
        collection::update::<Credential>(session, &id, secret.as_ref(), wait, edit).await
    }
}
