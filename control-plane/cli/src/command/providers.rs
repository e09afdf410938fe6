//! `turnpike providers`.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};

use super::Session;
use super::collection::{self, DeleteArgs, GetArgs, LimitArgs};
use crate::resource::{CredentialPlace, Dialect, Provider, ProviderSpec};
use crate::wait::WaitArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ProvidersCommand {
    /// Register a provider
    #[command(after_help = "\
Examples:
  turnpike providers create openai --base-url https://api.openai.com/v1
  turnpike providers create mistral --base-url https://api.mistral.ai/v1 --no-stream-usage-option
  turnpike providers create vllm --base-url http://vllm.svc:8000/v1 --credential-place none")]
    Create(CreateProvider),
    /// List every provider, by id
    #[command(after_help = "Examples:\n  turnpike providers list")]
    List(LimitArgs),
    /// Show one provider
    #[command(after_help = "Examples:\n  turnpike providers get openai")]
    Get(GetArgs),
    /// Change a provider; what is not named stays as it is
    #[command(
        override_usage = "turnpike providers update [OPTIONS] <ID>",
        after_help = "\
Examples:
  turnpike providers update openai --base-url https://eu.api.openai.com/v1 --wait
  turnpike providers update vllm --ca-file ca.pem"
    )]
    Update(UpdateProvider),
    /// Delete a provider that no model and no credential names
    #[command(after_help = "Examples:\n  turnpike providers delete vllm --wait")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateProvider {
    /// Id, 1-64 characters of a-z, 0-9 and `-`
    id: String,

    /// Base URL as SDKs write it, http or https
    #[arg(long, value_name = "URL")]
    base_url: String,

    /// The wire protocol it speaks
    #[arg(long, value_enum, value_name = "DIALECT", default_value_t = Dialect::Openai)]
    dialect: Dialect,

    /// Where the credential goes
    #[arg(long, value_enum, value_name = "PLACE", default_value_t = CredentialPlace::Bearer)]
    credential_place: CredentialPlace,

    /// Name for people
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    display_name: String,

    /// Envoy cluster that the mesh owns [default: one is built from the base URL]
    #[arg(
        long,
        value_name = "CLUSTER",
        default_value = "",
        hide_default_value = true
    )]
    existing_cluster: String,

    /// PEM file of the certificate authorities to trust [default: the node's system store]
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// It refuses `stream_options`: streams that report no usage by themselves are estimated
    #[arg(long)]
    no_stream_usage_option: bool,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateProvider {
    /// Id, as `list` shows it
    id: String,

    #[command(flatten)]
    change: ProviderChange,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct ProviderChange {
    /// Base URL as SDKs write it, http or https
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// The wire protocol it speaks
    #[arg(long, value_enum, value_name = "DIALECT")]
    dialect: Option<Dialect>,

    /// Where the credential goes
    #[arg(long, value_enum, value_name = "PLACE")]
    credential_place: Option<CredentialPlace>,

    /// Name for people
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,

    /// Envoy cluster that the mesh owns; empty: build one from the base URL
    #[arg(long, value_name = "CLUSTER")]
    existing_cluster: Option<String>,

    /// PEM file of the certificate authorities to trust
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// Trust the node's system store
    #[arg(long, conflicts_with = "ca_file")]
    system_ca: bool,

    /// It refuses `stream_options`
    #[arg(long)]
    no_stream_usage_option: bool,

    /// It accepts `stream_options`
    #[arg(long, conflicts_with = "no_stream_usage_option")]
    stream_usage_option: bool,
}

impl ProvidersCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Create(args) => args.run(session).await,
            Self::List(limit) => collection::list::<Provider>(session, "", limit).await,
            Self::Get(args) => args.run::<Provider>(session).await,
            Self::Update(args) => args.run(session).await,
            Self::Delete(args) => args.run::<Provider>(session).await,
        }
    }
}

impl CreateProvider {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let ca_pem = self.ca_file.map(read_pem).transpose()?;
        let spec = ProviderSpec {
            display_name: self.display_name,
            dialect: self.dialect,
            base_url: self.base_url,
            existing_cluster: self.existing_cluster,
            ca_pem: ca_pem.unwrap_or_default(),
            credential_place: self.credential_place,
            no_stream_usage_option: self.no_stream_usage_option,
        };
        collection::create::<Provider>(session, &self.id, &spec, None, self.wait).await
    }
}

impl UpdateProvider {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let Self {
            id,
            mut change,
            wait,
        } = self;
        let ca_pem = change.ca_file.take().map(read_pem).transpose()?;
        collection::update::<Provider>(session, &id, None, wait, |spec| change.edit(ca_pem, spec))
            .await
    }
}

impl ProviderChange {
    fn edit(self, ca_pem: Option<String>, spec: &mut ProviderSpec) {
        if let Some(base_url) = self.base_url {
            spec.base_url = base_url;
        }
        if let Some(display_name) = self.display_name {
            spec.display_name = display_name;
        }
        if let Some(existing_cluster) = self.existing_cluster {
            spec.existing_cluster = existing_cluster;
        }
        if let Some(ca_pem) = ca_pem {
            spec.ca_pem = ca_pem;
        }
        if self.system_ca {
            spec.ca_pem.clear();
        }
        spec.dialect = self.dialect.unwrap_or(spec.dialect);
        spec.credential_place = self.credential_place.unwrap_or(spec.credential_place);
        spec.no_stream_usage_option = (spec.no_stream_usage_option || self.no_stream_usage_option)
            && !self.stream_usage_option;
    }
}

fn read_pem(path: PathBuf) -> anyhow::Result<String> {
    let pem = std::fs::read_to_string(&path);
    pem.with_context(|| format!("read certificate authorities from {}", path.display()))
}
