//! `cargo xtask`: the project's task runner.
#![forbid(unsafe_code)]

use std::{io::Write as _, process::ExitCode};

use clap::Parser as _;
use xtask::cli::Cli;

fn main() -> ExitCode {
    let Err(error) = Cli::parse().run() else {
        return ExitCode::SUCCESS;
    };
    // One line for a person; a backtrace would bury what is missing.
    drop(writeln!(std::io::stderr(), "error: {error:#}"));
    ExitCode::FAILURE
}
