//! `bench`: the same work through nothing, through a bare Envoy, and through Envoy with the module,
//! one after the other in each round of one run, and what they come to as ratios.
//!
//! Times on a shared machine wobble more than the module costs. So rounds are interleaved, ratios
//! are made within a round, and shown with their spread; and user-space instructions, which do not
//! wobble, are counted in a run of their own.

use std::{
    fs::{self, File},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::{
    build::{self, Profile},
    debian::VALGRIND,
    interrupt::Interrupt,
    layout::{StateDir, target},
    pins::Pin,
    postgres::Server,
    process::Ask,
    stack::{Programs, Started},
    steps::{Steps, say},
};

mod bare;
mod instructions;
mod load;
mod memory;
mod report;
mod rounds;
mod subjects;

use instructions::Counted;
use load::Load;
use memory::Memory;
use rounds::Rounds;
use subjects::Subjects;

/// Options of `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// Rounds; each measures every subject once
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Seconds that a subject is loaded in a round, by each kind of request
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// Connections that send at the same time
    #[arg(long, default_value_t = 8)]
    pub connections: u32,
    /// Streams held open to measure memory; 0 leaves that out
    #[arg(long, default_value_t = 500)]
    pub streams: u32,
    /// Leave the counting of instructions out, which takes about a minute
    #[arg(long)]
    pub no_instructions: bool,
    /// Leave the micro benches of the core out
    #[arg(long)]
    pub no_core: bool,
    /// Measure the libturnpike.so in this folder and build none
    #[arg(long)]
    pub module_dir: Option<PathBuf>,
    /// Take control plane, CLI and provider from this folder and build none
    #[arg(long)]
    pub bin_dir: Option<PathBuf>,
}

/// What a run found.
#[derive(Debug)]
struct Found {
    rounds: Rounds,
    memory: Option<Memory>,
    counted: Option<Counted>,
}

/// Builds everything with optimizations, measures, prints a table and writes JSON.
pub fn bench(args: &BenchArgs) -> Result<()> {
    ensure!(
        args.rounds > 0 && args.connections > 0,
        "nothing to measure"
    );
    let interrupt = Interrupt::listen()?;
    let mut steps = Steps::default();
    if !args.no_core {
        steps.run("Micro benches of the core", build::micro_benches)?;
    }
    if !args.no_instructions {
        steps.run("Find or install valgrind", || VALGRIND.ensure())?;
    }
    let programs = programs(args, &mut steps)?;
    let load = steps.run("Build the load (release)", || build::load(Profile::Release))?;
    interrupt.check()?;

    let (state, _lock) = fresh_state("bench-state")?;
    let mut started = Started::default();
    let server = steps.run("Start a throw-away Postgres", || Server::throw_away(&state))?;
    let database_url = server.url.clone();
    started.push(server.process, Ask::Int);
    let load = Load::new(load);
    let found = measure(
        args,
        &Bed {
            programs,
            state,
            load,
            database_url,
        },
        &mut steps,
        &interrupt,
    )?;
    steps.summary();
    report::show(args, &found);
    report::write(args, &found)
}

/// Everything that is not told apart from the module shares the processors with it: so it is built
/// with optimizations too.
fn programs(args: &BenchArgs, steps: &mut Steps) -> Result<Programs> {
    let envoy = steps.run("Fetch Envoy", || Ok(Pin::envoy()?.fetch()?.join("envoy")))?;
    let bin_dir = match &args.bin_dir {
        Some(dir) => dir.clone(),
        None => steps.run("Build control plane, CLI and provider (release)", || {
            build::programs_as(Profile::Release)
        })?,
    };
    let module_dir = match &args.module_dir {
        Some(dir) => dir.clone(),
        None => steps.run("Build libturnpike.so (release)", build::module)?,
    };
    Programs::new(&bin_dir, &module_dir, &envoy)
}

/// A state folder of the target folder, without what an earlier run wrote: spool and snapshot are of
/// another database, and access logs are long.
fn fresh_state(name: &str) -> Result<(StateDir, File)> {
    let path = target().join(name);
    let state = StateDir::open(&path)?;
    let lock = state.lock()?;
    for written in [state.logs(), path.join("envoy")] {
        fs::remove_dir_all(&written).with_context(|| format!("removing {}", written.display()))?;
    }
    Ok((StateDir::open(&path)?, lock))
}

/// What measuring stands on.
#[derive(Debug)]
struct Bed {
    programs: Programs,
    state: StateDir,
    load: Load,
    database_url: String,
}

fn measure(args: &BenchArgs, bed: &Bed, steps: &mut Steps, interrupt: &Interrupt) -> Result<Found> {
    let subjects = steps.run("Start the subjects", || {
        Subjects::start(bed, Duration::from_secs(30))
    })?;
    // First: an allocator keeps what a load has freed, and would serve the streams from it.
    let memory = match args.streams {
        0 => None,
        streams => Some(steps.run("Open streams", || Memory::measure(bed, &subjects, streams))?),
    };
    let rounds = steps.run("Rounds", || Rounds::run(args, bed, &subjects, interrupt))?;
    let counted = if args.no_instructions {
        None
    } else {
        let counting = || Counted::count(bed, &subjects, interrupt);
        Some(steps.run("Count instructions", counting)?)
    };
    Ok(Found {
        rounds,
        memory,
        counted,
    })
}

/// A run of a few requests with programs as they are, so that the bench cannot rot unseen.
pub fn smoke(
    programs: &Programs,
    load: PathBuf,
    database_url: &str,
    interrupt: &Interrupt,
) -> Result<()> {
    let args = BenchArgs {
        rounds: 1,
        seconds: 0.2,
        connections: 2,
        streams: 5,
        no_instructions: true,
        no_core: true,
        module_dir: None,
        bin_dir: None,
    };
    let (state, _lock) = fresh_state("bench-smoke-state")?;
    let bed = Bed {
        programs: programs.clone(),
        state,
        load: Load::new(load),
        database_url: database_url.to_owned(),
    };
    let subjects = Subjects::start(&bed, Duration::from_secs(30))?;
    let memory = Memory::measure(&bed, &subjects, args.streams)?;
    let found = Found {
        rounds: Rounds::run(&args, &bed, &subjects, interrupt)?,
        memory: Some(memory),
        counted: None,
    };
    report::show(&args, &found);
    say("  (a smoke run: its figures mean nothing)");
    Ok(())
}
