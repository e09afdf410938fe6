//! `turnpike providers`.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};

use super::Session;
use super::collection::{self, DeleteArgs, GetArgs, LimitArgs};
use super::provider_presets as presets;
use crate::resource::{CredentialPlace, Dialect, Provider, ProviderSpec, Quirk};
use crate::wait::WaitArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ProvidersCommand {
    /// Register a provider
    #[command(after_help = "\
Examples:
  turnpike providers create openai --preset openai
  turnpike providers create claude --preset anthropic
  turnpike providers create azure --preset azure-openai --set resource=acme
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

    /// A well-known provider to begin from: anthropic, azure-openai, gemini, mistral…
    /// (`--preset help` lists them)
    #[arg(long, value_name = "PRESET")]
    preset: Option<String>,

    /// What stands for `{NAME}` in the preset
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "preset")]
    set: Vec<(String, String)>,

    /// Base URL as SDKs write it, http or https; `{model}` in its path stands for the model
    #[arg(long, value_name = "URL", required_unless_present = "preset")]
    base_url: Option<String>,

    /// The wire protocol it speaks [default: openai]
    #[arg(long, value_enum, value_name = "DIALECT")]
    dialect: Option<Dialect>,

    /// Where the credential goes [default: as the dialect's first provider has it]
    #[arg(long, value_enum, value_name = "PLACE")]
    credential_place: Option<CredentialPlace>,

    /// Query of every request, without its question mark
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,

    /// Header of every request; may be given up to 16 times
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    header: Vec<(String, String)>,

    /// AWS region that requests are signed for
    #[arg(long, value_name = "REGION")]
    region: Option<String>,

    /// In what it differs from the first of its dialect; may be given several times
    #[arg(long, value_enum, value_name = "QUIRK")]
    quirk: Vec<Quirk>,

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

    /// Query of every request, without its question mark; empty: none
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,

    /// Headers of every request, in place of those before; `=`: none
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    header: Vec<(String, String)>,

    /// AWS region that requests are signed for
    #[arg(long, value_name = "REGION")]
    region: Option<String>,

    /// In what it differs from the first of its dialect, in place of what was said before
    #[arg(long, value_enum, value_name = "QUIRK")]
    quirk: Vec<Quirk>,

    /// It differs in nothing
    #[arg(long, conflicts_with = "quirk")]
    no_quirks: bool,

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
        if self.preset.as_deref() == Some("help") {
            session.output.line(presets::names().join("\n"))?;
            return Ok(());
        }
        let spec = self.spec()?;
        collection::create::<Provider>(session, &self.id, &spec, None, self.wait).await
    }
}

impl CreateProvider {
    /// The preset, if one is named, with what the flags say.
    fn spec(&self) -> anyhow::Result<ProviderSpec> {
        let mut spec = match &self.preset {
            Some(preset) => presets::preset(preset, &self.set)?,
            None => ProviderSpec::default(),
        };
        if let Some(base_url) = &self.base_url {
            spec.base_url.clone_from(base_url);
        }
        if let Some(query) = &self.query {
            spec.query.clone_from(query);
        }
        if let Some(region) = &self.region {
            spec.region.clone_from(region);
        }
        if let Some(path) = &self.ca_file {
            spec.ca_pem = read_pem(path.clone())?;
        }
        spec.dialect = self.dialect.unwrap_or(spec.dialect);
        spec.credential_place = self.credential_place.or(spec.credential_place);
        spec.display_name.clone_from(&self.display_name);
        spec.existing_cluster.clone_from(&self.existing_cluster);
        spec.no_stream_usage_option |= self.no_stream_usage_option;
        spec.headers.extend(self.header.iter().cloned());
        spec.quirks.extend(&self.quirk);
        spec.quirks.sort_unstable();
        spec.quirks.dedup();
        Ok(spec)
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
        spec.credential_place = self.credential_place.or(spec.credential_place);
        if let Some(query) = self.query {
            spec.query = query;
        }
        if let Some(region) = self.region {
            spec.region = region;
        }
        if !self.header.is_empty() {
            spec.headers = self
                .header
                .into_iter()
                .filter(|(name, _)| !name.is_empty())
                .collect();
        }
        if !self.quirk.is_empty() {
            spec.quirks = self.quirk;
        }
        if self.no_quirks {
            spec.quirks.clear();
        }
        spec.no_stream_usage_option = (spec.no_stream_usage_option || self.no_stream_usage_option)
            && !self.stream_usage_option;
    }
}

/// `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn read_pem(path: PathBuf) -> anyhow::Result<String> {
    let pem = std::fs::read_to_string(&path);
    pem.with_context(|| format!("read certificate authorities from {}", path.display()))
}
