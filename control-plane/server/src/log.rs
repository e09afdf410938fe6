//! What the process says: its log, and why it ended.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

/// Logs to standard error from now on what the filter lets through.
pub(crate) fn start(filter: &str) {
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}

/// Says why the process ends, in one line: a backtrace would bury what is wrong.
pub(crate) fn last_words(error: &anyhow::Error) -> ExitCode {
    // A stderr that cannot be written to leaves the exit code to speak.
    drop(writeln!(std::io::stderr(), "error: {error:#}"));
    ExitCode::FAILURE
}
