//! The verbs that are the same for every kind of which there is one: get and replace.

use std::path::PathBuf;

use clap::Args;

use super::Session;
use crate::document::Source;
use crate::output::Format;
use crate::resource::Singleton;
use crate::wait::WaitArgs;

#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// YAML or JSON file with the whole of it, bare or as a document with `kind` and `spec`;
    /// `-`: stdin
    #[arg(short, long = "file", value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    wait: WaitArgs,
}

pub(crate) async fn get<S: Singleton>(session: &mut Session<'_>) -> anyhow::Result<()> {
    let link = session.link().await?;
    let what = S::KIND.noun();
    let stored = S::get(&link).await;
    let stored = stored.map_err(|error| link.explain(format_args!("get the {what}"), error))?;
    match session.output.format {
        Format::Json => session.output.json(&stored.view(S::KIND, None))?,
        Format::Table => session.output.table(&S::table(&stored))?,
    }
    Ok(())
}

// === impl FileArgs ===

impl FileArgs {
    pub(crate) async fn replace<S: Singleton>(
        self,
        session: &mut Session<'_>,
    ) -> anyhow::Result<()> {
        let spec: S::Spec = Source::read(&self.file)?.singleton(S::KIND)?;
        let link = session.link().await?.of_documents();
        let what = S::KIND.noun();
        let stored = S::replace(&link, &spec).await;
        let stored =
            stored.map_err(|error| link.explain(format_args!("replace the {what}"), error))?;
        let output = &mut session.output;
        match output.format {
            Format::Json => output.json(&stored.view(S::KIND, None))?,
            Format::Table => output.line(format_args!("{what} replaced"))?,
        }
        self.wait
            .settle(&link, output, stored.status.config_version)
            .await
    }
}
