//! The verbs that are the same for every kind with ids: create, list, get, update, delete.

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::{Session, paging};
use crate::link::Link;
use crate::output::{Format, Output};
use crate::resource::{Collection, Kind, Stored};
use crate::secret::Secret;
use crate::table::{Column, Table};
use crate::wait::WaitArgs;

/// How much of a list to print.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LimitArgs {
    /// Print at most N; 0: everything
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Id, as `list` shows it
    id: String,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Id, as `list` shows it
    id: String,

    #[command(flatten)]
    wait: WaitArgs,
}

/// A changed resource in one line of a table or as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deleted<'a> {
    kind: Kind,
    id: &'a str,
    deleted: bool,
    config_version: u64,
}

// === impl GetArgs ===

impl GetArgs {
    pub(crate) async fn run<C: Collection>(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let link = session.link().await?;
        let stored = fetch::<C>(&link, &self.id).await?;
        match session.output.format {
            Format::Json => session.output.json(&stored.view(C::KIND, None))?,
            Format::Table => session.output.table(&fields::<C>(&stored)?)?,
        }
        Ok(())
    }
}

// === impl DeleteArgs ===

impl DeleteArgs {
    pub(crate) async fn run<C: Collection>(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let link = session.link().await?;
        let Self { id, wait } = self;
        let what = C::KIND.sentence(&id);
        let deleted = C::delete(&link, &id).await;
        let config_version =
            deleted.map_err(|error| link.explain(format_args!("delete {what}"), error))?;
        let output = &mut session.output;
        match output.format {
            Format::Table => output.line(format_args!("{what} deleted"))?,
            Format::Json => output.json(&Deleted {
                kind: C::KIND,
                id: &id,
                deleted: true,
                config_version,
            })?,
        }
        wait.settle(&link, output, config_version).await
    }
}

pub(crate) async fn create<C: Collection>(
    session: &mut Session<'_>,
    id: &str,
    spec: &C::Spec,
    secret: Option<&Secret>,
    wait: WaitArgs,
) -> anyhow::Result<()> {
    let link = session.link().await?;
    create_on::<C>(&link, session, id, spec, secret, wait).await
}

/// The same over a link that is open.
pub(crate) async fn create_on<C: Collection>(
    link: &Link,
    session: &mut Session<'_>,
    id: &str,
    spec: &C::Spec,
    secret: Option<&Secret>,
    wait: WaitArgs,
) -> anyhow::Result<()> {
    let created = C::create(link, id, spec, secret).await;
    let what = C::KIND.sentence(id);
    let (stored, _) =
        created.map_err(|error| link.explain(format_args!("create {what}"), error))?;
    print_changed::<C>(&mut session.output, &stored, "created")?;
    let version = stored.status.config_version;
    wait.settle(link, &mut session.output, version).await
}

/// Reads a resource, lets `change` edit its spec, and writes it back whole.
pub(crate) async fn update<C: Collection>(
    session: &mut Session<'_>,
    id: &str,
    secret: Option<&Secret>,
    wait: WaitArgs,
    change: impl FnOnce(&mut C::Spec),
) -> anyhow::Result<()> {
    let link = session.link().await?;
    let updated = update_on::<C>(&link, session, id, secret, wait, change).await;
    updated.map(drop)
}

/// The same over a link that is open; gives the new spec.
pub(crate) async fn update_on<C: Collection>(
    link: &Link,
    session: &mut Session<'_>,
    id: &str,
    secret: Option<&Secret>,
    wait: WaitArgs,
    change: impl FnOnce(&mut C::Spec),
) -> anyhow::Result<C::Spec> {
    let Stored { mut spec, .. } = fetch::<C>(link, id).await?;
    change(&mut spec);
    let updated = C::update(link, id, &spec, secret).await;
    let what = C::KIND.sentence(id);
    let stored = updated.map_err(|error| link.explain(format_args!("update {what}"), error))?;
    print_changed::<C>(&mut session.output, &stored, "updated")?;
    let version = stored.status.config_version;
    wait.settle(link, &mut session.output, version).await?;
    Ok(spec)
}

pub(crate) async fn list<C: Collection>(
    session: &mut Session<'_>,
    owner: &str,
    limit: LimitArgs,
) -> anyhow::Result<()> {
    let link = session.link().await?;
    let listed = list_all::<C>(&link, owner, limit.limit).await?;
    let output = &mut session.output;
    match output.format {
        Format::Json => {
            let views: Vec<_> = listed
                .iter()
                .map(|stored| stored.view(C::KIND, None))
                .collect();
            output.json(&views)?;
        }
        Format::Table => {
            let mut table = Table::new(C::COLUMNS);
            for stored in &listed {
                table.push(C::row(stored));
            }
            output.table(&table)?;
        }
    }
    Ok(())
}

pub(crate) async fn list_all<C: Collection>(
    link: &Link,
    owner: &str,
    limit: usize,
) -> anyhow::Result<Vec<Stored<C::Spec>>> {
    let noun = C::KIND.noun();
    let listed = paging::collect(limit, async |size: i32, token: String| {
        let page = C::list(link, owner, size, token).await;
        page.map_err(|error| link.explain(format_args!("list every {noun}"), error))
    });
    Ok(listed.await?.entries)
}

pub(crate) fn print_changed<C: Collection>(
    output: &mut Output<'_>,
    stored: &Stored<C::Spec>,
    word: &str,
) -> anyhow::Result<()> {
    match output.format {
        Format::Json => output.json(&stored.view(C::KIND, None))?,
        Format::Table => output.line(format_args!("{} {word}", C::KIND.sentence(&stored.id)))?,
    }
    Ok(())
}

pub(crate) async fn fetch<C: Collection>(link: &Link, id: &str) -> anyhow::Result<Stored<C::Spec>> {
    let what = C::KIND.sentence(id);
    let stored = C::get(link, id).await;
    stored.map_err(|error| link.explain(format_args!("get {what}"), error))
}

/// One resource as a table of its fields, named as in YAML.
fn fields<C: Collection>(stored: &Stored<C::Spec>) -> anyhow::Result<Table> {
    let mut table = Table::new(&[Column::text("FIELD"), Column::text("VALUE")]);
    let defaults = C::defaults(&stored.spec);
    let mut push = |field: &str, value: &Value| {
        let default = defaults.iter().find(|(of, _)| *of == field);
        let value = match default {
            Some((_, default)) => format!("{default} (default)"),
            None => flat(value),
        };
        table.push(vec![field.to_owned(), value]);
    };
    push("kind", &Value::from(C::KIND.name()));
    push("id", &Value::from(stored.id.as_str()));
    let mut spec = serde_json::to_value(&stored.spec)?;
    if let Some(spec) = spec.as_object_mut() {
        for (field, _) in &defaults {
            spec.entry(*field).or_insert(Value::Null);
        }
    }
    for part in [spec, serde_json::to_value(&stored.status)?] {
        for (field, value) in part.as_object().into_iter().flatten() {
            push(field, value);
        }
    }
    Ok(table)
}

fn flat(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(flat).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
