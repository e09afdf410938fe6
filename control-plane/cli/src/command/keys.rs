//! `turnpike keys`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Session;
use super::collection::{self, DeleteArgs, GetArgs, LimitArgs};
use crate::link::Link;
use crate::moment::{Expiry, Moment};
use crate::output::{Format, Output};
use crate::presence::Presence;
use crate::resource::{Collection, Kind, Stored, VirtualKey, VirtualKeySpec};
use crate::secret::Secret;
use crate::wait::WaitArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key and print its secret, this once and alone, on stdout
    #[command(after_help = "\
Examples:
  turnpike keys create acme-ci --team acme --expires 90d
  KEY=$(turnpike keys create --team acme --models gpt-4o,gpt-4o-mini --wait)
  turnpike keys create legacy --team acme --import-secret-file legacy.key
  turnpike keys create --team acme -o json | jq -r .secret")]
    Create(CreateKey),
    /// List every key, by id
    #[command(after_help = "\
Examples:
  turnpike keys list --team acme
  turnpike keys list -o json | jq -r '.[] | select(.spec.disabled) | .id'")]
    List(ListKeys),
    /// Show one key (its secret cannot be shown again)
    #[command(after_help = "Examples:\n  turnpike keys get acme-ci")]
    Get(GetArgs),
    /// Change a key; what is not named stays as it is
    #[command(
        override_usage = "turnpike keys update [OPTIONS] <ID>",
        after_help = "\
Examples:
  turnpike keys update acme-ci --expires 2027-01-01
  turnpike keys update acme-ci --all-models --expires never --wait"
    )]
    Update(UpdateKey),
    /// Refuse a key until it is enabled again
    #[command(after_help = "Examples:\n  turnpike keys disable acme-ci --wait")]
    Disable(SwitchKey),
    /// Accept a disabled key again
    #[command(after_help = "Examples:\n  turnpike keys enable acme-ci --wait")]
    Enable(SwitchKey),
    /// Delete a key; every connected node refuses it within about a second
    #[command(after_help = "Examples:\n  turnpike keys delete acme-ci --wait")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// Id, 1-64 characters of a-z, 0-9 and `-` [default: one is made]
    #[arg(default_value = "", hide_default_value = true)]
    id: String,

    /// Id of the team that owns the key; fixed at creation
    #[arg(long, value_name = "TEAM")]
    team: String,

    /// Name for people
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    display_name: String,

    /// Public model names the key may use, or `prefix/*`; several with commas [default: whatever the team may use]
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    models: Vec<String>,

    /// When its secret ends: a length from now (90d, 12h, 1h30m; units w, d, h, m, s), RFC 3339, a
    /// UTC date, or `never`
    #[arg(long, value_name = "WHEN", default_value = "never")]
    expires: Expiry,

    /// Import the secret in this file (`-`: stdin), 16-512 visible ASCII characters, instead of
    /// making one; only its hash is kept
    #[arg(long, value_name = "FILE")]
    import_secret_file: Option<PathBuf>,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListKeys {
    /// Only keys of this team
    #[arg(
        long,
        value_name = "TEAM",
        default_value = "",
        hide_default_value = true
    )]
    team: String,

    #[command(flatten)]
    limit: LimitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateKey {
    /// Id, as `list` shows it
    id: String,

    #[command(flatten)]
    change: KeyChange,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct KeyChange {
    /// Name for people
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,

    /// Public model names the key may use, or `prefix/*`; several with commas; replaces the list
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    models: Option<Vec<String>>,

    /// Let the key use whatever its team may use
    #[arg(long, conflicts_with = "models")]
    all_models: bool,

    /// When its secrets end: a length from now (90d, 12h), RFC 3339, a UTC date, or `never`
    #[arg(long, value_name = "WHEN")]
    expires: Option<Expiry>,
}

#[derive(Debug, Args)]
pub(crate) struct SwitchKey {
    /// Id, as `list` shows it
    id: String,

    #[command(flatten)]
    wait: WaitArgs,
}

impl KeysCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Create(args) => args.run(session).await,
            Self::List(args) => {
                collection::list::<VirtualKey>(session, &args.team, args.limit).await
            }
            Self::Get(args) => args.run::<VirtualKey>(session).await,
            Self::Update(args) => args.run(session).await,
            Self::Disable(args) => args.run(session, true).await,
            Self::Enable(args) => args.run(session, false).await,
            Self::Delete(args) => args.run::<VirtualKey>(session).await,
        }
    }
}

impl CreateKey {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let import = self
            .import_secret_file
            .as_deref()
            .map(Secret::read)
            .transpose()?;
        let spec = VirtualKeySpec {
            team: self.team,
            display_name: self.display_name,
            disabled: false,
            models: self.models,
            expire_time: self.expires.resolve(Moment::now())?,
            import_secret_file: None,
        };
        let link = session.link().await?;
        let created = VirtualKey::create(&link, &self.id, &spec, import.as_ref()).await;
        let what = VirtualKey::KIND.sentence(&self.id);
        let (stored, secret) =
            created.map_err(|error| link.explain(format_args!("create {what}"), error))?;
        print_created(&mut session.output, &stored, secret.as_ref())?;
        note_models(&link, &mut session.output, &spec.models).await?;
        let version = stored.status.config_version;
        self.wait.settle(&link, &mut session.output, version).await
    }
}

/// An allow list may name what is yet to come; a typo in it is found here or never.
async fn note_models(
    link: &Link,
    output: &mut Output<'_>,
    models: &[String],
) -> anyhow::Result<()> {
    let models = models.iter().map(String::as_str);
    Presence::new(link)
        .note_absent(output, Kind::Model, models)
        .await
}

/// The secret goes out before anything else can fail: it is shown now or never.
fn print_created(
    output: &mut Output<'_>,
    stored: &Stored<VirtualKeySpec>,
    secret: Option<&Secret>,
) -> anyhow::Result<()> {
    let id = &stored.id;
    match (output.format, secret) {
        (Format::Json, secret) => output.json(&stored.view(VirtualKey::KIND, secret))?,
        (Format::Table, Some(secret)) => {
            output.line(secret.expose())?;
            output.note(format_args!(
                "virtual key {id} created; its secret is shown this once"
            ))?;
        }
        (Format::Table, None) => {
            output.note(format_args!(
                "virtual key {id} created with the imported secret"
            ))?;
        }
    }
    Ok(())
}

impl UpdateKey {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let Self { id, change, wait } = self;
        let expires = change
            .expires
            .map(|expiry| expiry.resolve(Moment::now()))
            .transpose()?;
        let models = change.models.clone().unwrap_or_default();
        let link = session.link().await?;
        collection::update_on::<VirtualKey>(&link, session, &id, None, wait, |spec| {
            if let Some(display_name) = change.display_name {
                spec.display_name = display_name;
            }
            if let Some(models) = change.models {
                spec.models = models;
            }
            if change.all_models {
                spec.models.clear();
            }
            if let Some(expire_time) = expires {
                spec.expire_time = expire_time;
            }
        })
        .await?;
        note_models(&link, &mut session.output, &models).await
    }
}

impl SwitchKey {
    async fn run(self, session: &mut Session<'_>, disabled: bool) -> anyhow::Result<()> {
        let edit = |spec: &mut VirtualKeySpec| spec.disabled = disabled;
        collection::update::<VirtualKey>(session, &self.id, None, self.wait, edit).await
    }
}
