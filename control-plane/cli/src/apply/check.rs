//! What is checked before the first change: files, amounts, and that what is named is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::document::{Body, Document};
use crate::link::Link;
use crate::presence::Presence;
use crate::resource::{Kind, LimitSpec, LimitSubject};
use crate::secret::Secret;

/// A document that can be applied.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) document: Document,
    /// Goes along with it.
    pub(super) secret: Option<Secret>,
}

/// A name in a document that must be there when the document is applied.
#[derive(Debug)]
struct Reference<'a> {
    field: String,
    kind: Kind,
    id: &'a str,
}

/// What needs no control plane: amounts fit their units, sources do not contradict each other, and
/// the secrets that are sent in any case can be read.
pub(super) fn by_itself(document: Document) -> anyhow::Result<Checked> {
    let fault = document.body.fault();
    let secret = match (fault, document.body.secret_sent_always()) {
        (Some(fault), _) => Err(anyhow::anyhow!(fault)),
        (None, Some(file)) => Secret::read(&beside(&document.folder, file)).map(Some),
        (None, None) => Ok(None),
    };
    let secret = secret.with_context(|| document.title())?;
    Ok(Checked { document, secret })
}

/// What only the control plane knows: whether what the documents name is there, or comes with
/// them, and which keys are new and import a secret.
pub(super) async fn on_the_server(link: &Link, documents: &mut [Checked]) -> anyhow::Result<()> {
    let given: BTreeSet<(Kind, String)> = documents
        .iter()
        .map(|Checked { document, .. }| (document.body.kind(), document.id.clone()))
        .collect();
    let mut presence = Presence::new(link);
    for Checked { document, secret } in documents {
        let title = document.title();
        for Reference { field, kind, id } in document.body.references() {
            let is_given = given.contains(&(kind, id.to_owned()));
            if is_given
                || presence
                    .has(kind, id)
                    .await
                    .with_context(|| title.clone())?
            {
                continue;
            }
            // A limit outlives its subject.
            let is_limit = document.body.kind() == Kind::Limit;
            if is_limit && presence.has(Kind::Limit, &document.id).await? {
                continue;
            }
            let noun = kind.noun();
            bail!(
                "{title}: {field}: there is no {noun} `{id}`, neither in what was given nor on the \
                 control plane"
            );
        }
        if let Body::VirtualKey(spec) = &document.body
            && let Some(file) = &spec.import_secret_file
            && !presence.has(Kind::VirtualKey, &document.id).await?
        {
            let read = Secret::read(&beside(&document.folder, file));
            *secret = Some(read.with_context(|| title.clone())?);
        }
    }
    Ok(())
}

/// A file that a document names, seen from the folder of that document.
fn beside(folder: &Path, file: &Path) -> PathBuf {
    if file == Path::new("-") {
        return file.to_owned();
    }
    folder.join(file)
}

// === impl Document ===

impl Document {
    /// For example `gateway.yaml, document 2: team acme`.
    fn title(&self) -> String {
        format!("{}: {}", self.place, self.body.kind().sentence(&self.id))
    }
}

// === impl Body ===

impl Body {
    /// What is wrong with it whatever the control plane holds.
    fn fault(&self) -> Option<String> {
        match self {
            Self::Credential(spec) => {
                let sources = [
                    spec.secret_file.is_some(),
                    spec.file.is_some(),
                    spec.environment_variable.is_some(),
                ];
                if sources.into_iter().filter(|&is_set| is_set).count() > 1 {
                    return Some("one of secretFile, file and environmentVariable".to_owned());
                }
                let has_two = spec.team.is_some() && spec.virtual_key.is_some();
                has_two.then(|| "one of team and virtualKey".to_owned())
            }
            Self::Limit(spec) => spec.unfit().map(|error| error.to_string()),
            _ => None,
        }
    }

    fn secret_sent_always(&self) -> Option<&Path> {
        match self {
            Self::Credential(spec) => spec.secret_file.as_deref(),
            _ => None,
        }
    }

    /// Those whose absence the control plane refuses.
    fn references(&self) -> Vec<Reference<'_>> {
        let found: Vec<(String, Kind, &str)> = match self {
            Self::VirtualKey(spec) => vec![("team".to_owned(), Kind::Team, &spec.team)],
            Self::Credential(spec) => {
                let owners = [
                    ("team", Kind::Team, &spec.team),
                    ("virtualKey", Kind::VirtualKey, &spec.virtual_key),
                ];
                let owners = owners
                    .into_iter()
                    .filter_map(|(field, kind, id)| Some((field.to_owned(), kind, id.as_deref()?)));
                let provider = ("provider".to_owned(), Kind::Provider, &*spec.provider);
                [provider].into_iter().chain(owners).collect()
            }
            Self::Model(spec) => (0..)
                .zip(&spec.targets)
                .map(|(at, target): (usize, _)| {
                    let field = format!("targets[{at}].provider");
                    (field, Kind::Provider, &*target.provider)
                })
                .collect(),
            Self::RuleSet(spec) => (0..)
                .zip(&spec.rules)
                .flat_map(|(at, rule): (usize, _)| {
                    let matched = (format!("rules[{at}].matchModel"), &rule.match_model);
                    let models = (0..).zip(&rule.models).map(move |(on, model): (usize, _)| {
                        (format!("rules[{at}].models[{on}]"), model)
                    });
                    [matched].into_iter().chain(models)
                })
                .map(|(field, model)| (field, Kind::Model, model.as_str()))
                .collect(),
            Self::Limit(spec) => subject_of(spec).into_iter().collect(),
            Self::Provider(_) | Self::Team(_) | Self::PriceBook(_) | Self::Settings(_) => {
                Vec::new()
            }
        };
        let found = found.into_iter().filter(|(_, _, id)| !id.is_empty());
        found
            .map(|(field, kind, id)| Reference { field, kind, id })
            .collect()
    }
}

fn subject_of(spec: &LimitSpec) -> Option<(String, Kind, &str)> {
    let id = spec.subject_id.as_str();
    let (kind, id) = match spec.subject {
        LimitSubject::Everything => return None,
        LimitSubject::Team => (Kind::Team, id),
        LimitSubject::Key => (Kind::VirtualKey, id),
        LimitSubject::EndUser => (Kind::Team, id.split('/').next().unwrap_or(id)),
    };
    Some(("subjectId".to_owned(), kind, id))
}
