//! The command line of `cargo xtask`.

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{
    bench::{self, BenchArgs},
    ci::{self, TestArgs},
    codegen, sqlx_prepare,
    up::{self, StateArgs, UpArgs},
};

/// Turnpike's task runner.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build and start everything with a demo config; print a key and a request that answers
    Up(UpArgs),
    /// Stop what `up` started; data and keys stay
    Down(StateArgs),
    /// Show what runs
    Status(StateArgs),
    /// Run everything that CI runs
    Test(TestArgs),
    /// Measure what the module costs against a bare Envoy, and the core by itself
    Bench(BenchArgs),
    /// Generate the Rust code of the protos
    Codegen {
        /// Change nothing; fail when the committed code is out of date
        #[arg(long)]
        check: bool,
    },
    /// Write `.sqlx/`: what Postgres says about each query, for builds without one
    SqlxPrepare,
}

impl Cli {
    /// Does what the command line says.
    pub fn run(self) -> Result<()> {
        match self.task {
            Task::Up(args) => up::up(&args),
            Task::Down(args) => up::down(&args),
            Task::Status(args) => up::status(&args),
            Task::Test(args) => ci::test(&args),
            Task::Bench(args) => bench::bench(&args),
            Task::Codegen { check: true } => codegen::check(),
            Task::Codegen { check: false } => codegen::run(),
            Task::SqlxPrepare => sqlx_prepare::prepare(),
        }
    }
}
