//! `turnpike`: the admin API of the control plane from a terminal.
//!
//! It turns flags and YAML documents into admin RPCs and prints what came back, as a table or as
//! JSON. It is not a client library, keeps no state, and decides nothing: the control plane
//! validates, and its words are passed on.
//!
//! Read on in `args` (the command tree), then `command` (one file a noun) and `resource` (what a
//! resource is in YAML, JSON and on the wire); `apply` and `document` are the declarative way in.

#![forbid(unsafe_code)]

mod access;
mod amount;
mod apply;
mod args;
mod command;
mod document;
mod failure;
mod field;
mod input;
mod link;
mod moment;
mod money;
mod output;
mod presence;
mod resource;
mod secret;
mod table;
mod unpriced;
mod usage;
mod wait;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::command::Session;
use crate::output::Output;

/// Runs the command of this process's arguments: exit code 0 for success, 1 for a failure that
/// stderr names in one line, 2 for wrong usage.
pub fn run() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| error.exit());
    let mut out = io::stdout().lock();
    let mut notes = io::stderr().lock();
    let result = block_on(cli, &mut out, &mut notes).and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of a pipe has seen enough, as `head` has.
        Err(error) if failure::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => report(&error, &mut notes),
    }
}

fn block_on(cli: Cli, out: &mut dyn Write, notes: &mut dyn Write) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(Box::pin(execute(cli, out, notes)))
}

async fn execute(cli: Cli, out: &mut dyn Write, notes: &mut dyn Write) -> anyhow::Result<()> {
    let mut session = Session {
        access: cli.access,
        output: Output::new(cli.output, out, notes),
    };
    command::run(cli.command, &mut session).await
}

fn report(error: &anyhow::Error, notes: &mut dyn Write) -> ExitCode {
    // A stderr that cannot be written to leaves the exit code to speak.
    match writeln!(notes, "error: {}", failure::one_line(error)) {
        Ok(()) | Err(_) => ExitCode::FAILURE,
    }
}
