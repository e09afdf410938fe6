//! `apply`: makes the control plane hold what the documents say, one resource after the other.

mod check;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde::Serialize;

use self::check::Checked;
use crate::command::Session;
use crate::document::{Body, Document, Source};
use crate::link::Link;
use crate::output::{Format, Output};
use crate::resource::{
    Collection, Credential, Kind, Limit, Model, ModelSpec, PriceBook, Provider, RuleSet, Settings,
    Singleton, Team, VirtualKey,
};
use crate::secret::Secret;
use crate::unpriced;
use crate::wait::WaitArgs;

#[derive(Debug, Args)]
#[command(after_long_help = include_str!("apply/help.txt"))]
pub(crate) struct ApplyArgs {
    /// YAML or JSON file, folder of such files, or `-` for stdin; may be given several times
    #[arg(short, long = "file", value_name = "PATH", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Created,
    Updated,
    Unchanged,
}

/// What became of one document.
#[derive(Debug)]
struct Applied {
    kind: Kind,
    id: String,
    outcome: Outcome,
    config_version: u64,
    /// Of a key that was just made.
    secret: Option<Secret>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AppliedView<'a> {
    kind: Kind,
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    outcome: Outcome,
    config_version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
}

// === impl ApplyArgs ===

impl ApplyArgs {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let documents = read(&self.files)?.into_iter().map(check::by_itself);
        let mut documents = documents.collect::<anyhow::Result<Vec<_>>>()?;
        let link = session.link().await?.of_documents();
        check::on_the_server(&link, &mut documents).await?;
        let output = &mut session.output;
        let mut done = Vec::new();
        let result = apply_all(&link, &documents, output, &mut done).await;
        if output.format == Format::Json {
            // After a failure, too: a secret that was made is shown now or never.
            let views: Vec<AppliedView<'_>> = done.iter().map(Applied::view).collect();
            output.json(&views)?;
        }
        result?;
        let models = documents.iter().filter_map(Checked::model);
        unpriced::note(&link, output, models).await?;
        let newest = done.iter().map(|applied| applied.config_version).max();
        match newest {
            Some(version) => self.wait.settle(&link, output, version).await,
            None => Ok(()),
        }
    }
}

/// Reads every document before anything is sent, in the order in which they can be applied.
fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    for path in paths {
        for source in Source::read_all(path)? {
            documents.extend(source.documents()?);
        }
    }
    if documents.is_empty() {
        bail!("there is no resource in what was given");
    }
    let mut places = BTreeMap::new();
    for Document {
        place, id, body, ..
    } in &documents
    {
        if let Some(earlier) = places.insert((body.kind(), id), place) {
            bail!(
                "{place}: {} is in {earlier} already",
                body.kind().sentence(id)
            );
        }
    }
    documents.sort_by_key(|document| document.body.kind());
    Ok(documents)
}

async fn apply_all(
    link: &Link,
    documents: &[Checked],
    output: &mut Output<'_>,
    done: &mut Vec<Applied>,
) -> anyhow::Result<()> {
    for checked in documents {
        let applied = Box::pin(apply(link, checked)).await;
        let applied = applied.with_context(|| checked.document.place.clone())?;
        if output.format == Format::Table {
            applied.print(output)?;
        }
        done.push(applied);
    }
    Ok(())
}

async fn apply(link: &Link, checked: &Checked) -> anyhow::Result<Applied> {
    let Checked { document, secret } = checked;
    let Document { id, body, .. } = document;
    let secret = secret.as_ref();
    match body {
        Body::Provider(spec) => upsert::<Provider>(link, id, spec, secret).await,
        Body::Team(spec) => upsert::<Team>(link, id, spec, secret).await,
        Body::VirtualKey(spec) => upsert::<VirtualKey>(link, id, spec, secret).await,
        Body::Credential(spec) => upsert::<Credential>(link, id, spec, secret).await,
        Body::Model(spec) => upsert::<Model>(link, id, spec, secret).await,
        Body::RuleSet(spec) => replace::<RuleSet>(link, spec).await,
        Body::PriceBook(spec) => replace::<PriceBook>(link, spec).await,
        Body::Limit(spec) => upsert::<Limit>(link, id, spec, secret).await,
        Body::Settings(spec) => replace::<Settings>(link, spec).await,
    }
}

async fn upsert<C: Collection>(
    link: &Link,
    id: &str,
    spec: &C::Spec,
    secret: Option<&Secret>,
) -> anyhow::Result<Applied> {
    let what = C::KIND.sentence(id);
    let found = match C::get(link, id).await {
        Ok(stored) => Some(stored),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(link.explain(format_args!("get {what}"), error)),
    };
    // A stored secret cannot be compared, so a document that brings one is always sent.
    let secret = secret.filter(|_| found.is_none() || C::UPDATES_SECRET);
    ensure!(
        found.is_some() || secret.is_some() || C::secret_file(spec).is_none(),
        "{what} was deleted meanwhile: apply it again"
    );
    let (stored, outcome, made) = match found {
        None => {
            let created = C::create(link, id, spec, secret).await;
            let (stored, made) =
                created.map_err(|error| link.explain(format_args!("create {what}"), error))?;
            (stored, Outcome::Created, made)
        }
        Some(stored) if secret.is_none() && C::is_same(&stored.spec, spec) => {
            (stored, Outcome::Unchanged, None)
        }
        Some(_) => {
            let updated = C::update(link, id, spec, secret).await;
            let stored =
                updated.map_err(|error| link.explain(format_args!("update {what}"), error))?;
            (stored, Outcome::Updated, None)
        }
    };
    Ok(Applied {
        kind: C::KIND,
        id: id.to_owned(),
        outcome,
        config_version: stored.status.config_version,
        secret: made,
    })
}

async fn replace<S: Singleton>(link: &Link, spec: &S::Spec) -> anyhow::Result<Applied> {
    let what = S::KIND.noun();
    let found = S::get(link).await;
    let found = found.map_err(|error| link.explain(format_args!("get the {what}"), error))?;
    let (stored, outcome) = if S::is_same(&found.spec, spec) {
        (found, Outcome::Unchanged)
    } else {
        let replaced = S::replace(link, spec).await;
        let stored =
            replaced.map_err(|error| link.explain(format_args!("replace the {what}"), error))?;
        (stored, Outcome::Updated)
    };
    Ok(Applied {
        kind: S::KIND,
        id: String::new(),
        outcome,
        config_version: stored.status.config_version,
        secret: None,
    })
}

// === impl Checked ===

impl Checked {
    fn model(&self) -> Option<(&str, &ModelSpec)> {
        match &self.document.body {
            Body::Model(spec) => Some((&self.document.id, spec)),
            _ => None,
        }
    }
}

// === impl Applied ===

impl Applied {
    fn print(&self, output: &mut Output<'_>) -> anyhow::Result<()> {
        let what = self.kind.sentence(&self.id);
        output.line(format_args!("{what} {}", self.outcome.word()))?;
        if let Some(secret) = &self.secret {
            output.line(format_args!(
                "  secret, shown this once: {}",
                secret.expose()
            ))?;
        }
        Ok(())
    }

    fn view(&self) -> AppliedView<'_> {
        AppliedView {
            kind: self.kind,
            id: &self.id,
            outcome: self.outcome,
            config_version: self.config_version,
            secret: self.secret.as_ref().map(Secret::expose),
        }
    }
}

// === impl Outcome ===

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
        }
    }
}
