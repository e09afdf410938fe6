//! `turnpike prices`.

use anyhow::bail;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::Session;
use super::singleton::{self, FileArgs};
use crate::money::UsdPerMillion;
use crate::output::Format;
use crate::resource::defaults::{self, Imported, Vendor};
use crate::resource::{Kind, PriceBook, Singleton};
use crate::table::{Column, Table};
use crate::wait::WaitArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum PricesCommand {
    /// Show the prices, in USD per million tokens; `-` is unknown, which is not zero
    #[command(after_help = "\
Examples:
  turnpike prices get
  turnpike prices get -o json > prices.json")]
    Get,
    /// Replace the whole price book under a new version
    ///
    /// Prices are USD per million tokens, decimals with at most 6 places, kept exactly. Of several
    /// entries for one upstream model, the latest whose `effectiveFrom` is not after the attempt's
    /// start holds. Absent `cachedInput`, `cacheWrite` and `inputAudio` cost as `input`, absent
    /// `reasoning` and `outputAudio` as `output`, absent `cacheWrite1h` as `cacheWrite`; an absent
    /// `input` or `output` is unknown, and what it would cost is counted apart, unless the setting
    /// `onUnknownPrice` says otherwise.
    ///
    /// `longContext` has the rates of a whole request whose input is longer than a threshold,
    /// `tiers` what a request costs by the `service_tier` of its answer, and `timesOfDay` by the
    /// UTC time of the attempt's start: by a `factor`, or `rates` of their own. A tier's own rates go
    /// before those of the time of day, factors of both are multiplied.
    #[command(after_help = "\
A price file:
  prices:
    - provider: openai
      upstreamModel: gpt-4o-mini
      effectiveFrom: 2026-12-01
      input: 0.15
      cachedInput: 0.075
      output: 0.60
      tiers:
        - {tier: flex, factor: 0.5}
    - provider: deepseek
      upstreamModel: deepseek-flash
      input: 0.15
      output: 0.60
      timesOfDay:
        - {from: \"01:00\", to: \"04:00\", weekdays: [mon, tue, wed, thu, fri], factor: 2}

Examples:
  turnpike prices replace -f prices.yaml --wait")]
    Replace(FileArgs),
    /// Show the list prices of well-known models that this program comes with
    #[command(after_help = "\
Examples:
  turnpike prices defaults
  turnpike prices defaults --vendor openai -o json")]
    Defaults(ShowDefaults),
    /// Put a vendor's list prices into the price book, for a provider that serves its models
    ///
    /// Models that have prices in the book already keep them. They are list prices, as of a date:
    /// compare them with what you pay.
    #[command(after_help = "\
Examples:
  turnpike prices import-defaults --provider openai --dry-run
  turnpike prices import-defaults --provider openai-eu --vendor openai --wait")]
    ImportDefaults(ImportDefaults),
}

#[derive(Debug, Args)]
pub(crate) struct ShowDefaults {
    /// Only this vendor
    #[arg(long, value_name = "VENDOR")]
    vendor: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportDefaults {
    /// The provider that the prices are for
    #[arg(long, value_name = "PROVIDER")]
    provider: String,

    /// Whose models it serves [default: the vendor of the provider's name]
    #[arg(long, value_name = "VENDOR")]
    vendor: Option<String>,

    /// Replace the prices that these models have in the book
    #[arg(long)]
    overwrite: bool,

    /// Show what would be done
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Serialize)]
struct ImportView<'a> {
    provider: &'a str,
    vendor: &'a str,
    source: &'a str,
    date: &'a str,
    #[serde(flatten)]
    imported: &'a Imported,
}

impl PricesCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Get => singleton::get::<PriceBook>(session).await,
            Self::Replace(args) => args.replace::<PriceBook>(session).await,
            Self::Defaults(args) => args.run(session),
            Self::ImportDefaults(args) => args.run(session).await,
        }
    }
}

// === impl ShowDefaults ===

impl ShowDefaults {
    fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let vendors = match &self.vendor {
            Some(name) => vec![vendor(name)?],
            None => defaults::vendors()?,
        };
        match session.output.format {
            Format::Json => session.output.json(&vendors)?,
            Format::Table => session.output.table(&table(&vendors))?,
        }
        Ok(())
    }
}

fn table(vendors: &[Vendor]) -> Table {
    let mut table = Table::new(&[
        Column::text("VENDOR"),
        Column::text("UPSTREAM MODEL"),
        Column::number("INPUT"),
        Column::number("CACHED"),
        Column::number("OUTPUT"),
        Column::text("AS OF"),
        Column::text("SOURCE"),
    ]);
    let money =
        |price: Option<UsdPerMillion>| price.map(|price| price.to_string()).unwrap_or_default();
    for vendor in vendors {
        for price in &vendor.prices {
            table.push(vec![
                vendor.vendor.clone(),
                price.upstream_model.clone(),
                money(price.input),
                money(price.cached_input),
                money(price.output),
                vendor.date.clone(),
                vendor.source.clone(),
            ]);
        }
    }
    table
}

fn vendor(name: &str) -> anyhow::Result<Vendor> {
    let vendors = defaults::vendors()?;
    let names: Vec<&str> = vendors.iter().map(|it| it.vendor.as_str()).collect();
    let names = names.join(", ");
    match vendors.into_iter().find(|it| it.vendor == name) {
        Some(vendor) => Ok(vendor),
        None => bail!("there are no list prices of `{name}`: name one of {names} with --vendor"),
    }
}

// === impl ImportDefaults ===

impl ImportDefaults {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let vendor = vendor(self.vendor.as_deref().unwrap_or(&self.provider))?;
        let link = session.link().await?;
        let what = Kind::PriceBook.noun();
        let stored = PriceBook::get(&link).await;
        let mut book = stored
            .map_err(|error| link.explain(format_args!("get the {what}"), error))?
            .spec;
        let imported = defaults::import(&mut book, &vendor, &self.provider, self.overwrite);
        let mut config_version = 0;
        if !self.dry_run && !imported.added.is_empty() {
            let stored = PriceBook::replace(&link, &book).await;
            let stored =
                stored.map_err(|error| link.explain(format_args!("replace the {what}"), error))?;
            config_version = stored.status.config_version;
        }
        let output = &mut session.output;
        let done = if self.dry_run { "would be put" } else { "put" };
        match output.format {
            Format::Json => output.json(&ImportView {
                provider: &self.provider,
                vendor: &vendor.vendor,
                source: &vendor.source,
                date: &vendor.date,
                imported: &imported,
            })?,
            Format::Table => {
                for model in &imported.added {
                    output.line(format_args!(
                        "{model}: list price of {} {done} in",
                        vendor.date
                    ))?;
                }
                for model in &imported.kept {
                    output.line(format_args!("{model}: has prices, kept"))?;
                }
            }
        }
        if !vendor.note.is_empty() {
            output.note(&vendor.note)?;
        }
        if config_version == 0 {
            return Ok(());
        }
        self.wait.settle(&link, output, config_version).await
    }
}
