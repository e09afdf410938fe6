//! `test`: everything that CI runs, from a bare clone. What is missing is an error, never a skip.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::{
    bench,
    build::{self, Profile, cargo, run},
    codegen,
    debian::VALGRIND,
    interrupt::Interrupt,
    layout::{StateDir, root, target},
    pins::Pin,
    postgres::Server,
    process::Ask,
    sdks,
    stack::{Programs, Started},
    steps::{Steps, say},
};

/// Options of `test`.
#[derive(Debug, Clone, Args)]
pub struct TestArgs {
    /// Run only tests whose names contain this, and no checks
    #[arg(long)]
    pub filter: Option<String>,
    /// Also run chaos for an hour, lease credit to 1,000 processes and simulate 100,000 seeds.
    /// `TURNPIKE_CHAOS_SECONDS`, `TURNPIKE_LEASE_PROCESSES` and `TURNPIKE_SIM_SEEDS` say otherwise
    #[arg(long)]
    pub long: bool,
}

/// The simulator's crate: built for release, since a debug build takes ten times as long.
const SIMULATOR: &str = "tests-sim";
/// What `--long` sets, where the environment does not.
const LONG: [(&str, &str); 3] = [
    ("TURNPIKE_CHAOS_SECONDS", "3600"),
    ("TURNPIKE_LEASE_PROCESSES", "1000"),
    ("TURNPIKE_SIM_SEEDS", "100000"),
];

/// Runs all checks and all tests; says where the time went.
pub fn test(args: &TestArgs) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let mut steps = Steps::default();
    let result = all(args, &mut steps, &interrupt);
    steps.summary();
    let passed = result?;
    say(&format!("\n{passed} tests passed, 0 failed, 0 ignored"));
    Ok(())
}

fn all(args: &TestArgs, steps: &mut Steps, interrupt: &Interrupt) -> Result<u64> {
    let deny = Pin::cargo_deny();
    let (envoy, deny) = steps.run("Fetch Envoy and cargo-deny", || {
        Ok((
            Pin::envoy()?.fetch()?.join("envoy"),
            deny.fetch()?.join("cargo-deny"),
        ))
    })?;
    steps.run("Find or install valgrind", || VALGRIND.ensure())?;
    let (python_sdk, node_sdk) = steps.run("Install OpenAI's SDKs", || {
        Ok((sdks::python()?, sdks::node()?))
    })?;
    let state = StateDir::open(&target().join("test-state"))?;
    let _lock = state.lock()?;
    let mut started = Started::default();
    let server = steps.run("Start a throw-away Postgres", || Server::throw_away(&state))?;
    let database_url = server.url.clone();
    started.push(server.process, Ask::Int);

    if args.filter.is_none() {
        checks(steps, &deny, interrupt)?;
    }
    let built = Built::new(steps)?;
    interrupt.check()?;
    let programs = Programs::new(&built.bin_dir, &built.module_dir, &envoy)?;
    let passed = steps.run("Tests", || {
        let mut tests = cargo(["test", "--workspace", "--no-fail-fast"]);
        tests.args(["--exclude", SIMULATOR]);
        tests.env("TURNPIKE_TEST_DATABASE_URL", &database_url);
        tests.env("TURNPIKE_ENVOY", envoy);
        tests.env("TURNPIKE_BIN_DIR", built.bin_dir);
        tests.env("TURNPIKE_MODULE_DIR", built.module_dir);
        tests.env("TURNPIKE_FAULT_MODULE_DIR", built.fault_dir);
        tests.env("TURNPIKE_ONE_REQUEST", built.one_request);
        tests.env("TURNPIKE_SDK_PYTHON_DIR", python_sdk);
        tests.env("TURNPIKE_SDK_NODE_DIR", node_sdk);
        if args.long {
            lengthen(&mut tests);
        }
        if let Some(filter) = &args.filter {
            tests.args(["--", filter]);
        }
        run_tests(&mut tests)
    })?;
    let simulated = if args.filter.is_none() {
        steps.run("Bench, with a few requests", || {
            let load = build::load(Profile::Dev)?;
            bench::smoke(&programs, load, &database_url, interrupt)
        })?;
        steps.run("Simulator (release)", || simulate(args.long))?
    } else {
        0
    };
    Ok(passed + simulated)
}

/// Simulates limits and ledger, with a few seeds or with many.
fn simulate(is_long: bool) -> Result<u64> {
    let args = ["test", "--release", "-p", SIMULATOR, "--", "--nocapture"];
    let mut tests = cargo(args);
    if is_long {
        lengthen(&mut tests);
    }
    run_tests(&mut tests)
}

fn lengthen(tests: &mut Command) {
    let unset = LONG
        .into_iter()
        .filter(|(name, _)| std::env::var_os(name).is_none());
    tests.envs(unset);
}

/// What tests run.
struct Built {
    bin_dir: PathBuf,
    module_dir: PathBuf,
    fault_dir: PathBuf,
    one_request: PathBuf,
}

impl Built {
    fn new(steps: &mut Steps) -> Result<Self> {
        Ok(Self {
            bin_dir: steps.run("Build control plane, CLI and provider", build::programs)?,
            module_dir: steps.run("Build libturnpike.so (release)", build::module)?,
            fault_dir: steps.run(
                "Build libturnpike.so (fault injection)",
                build::fault_module,
            )?,
            one_request: steps.run(
                "Build the core's counted program (release)",
                build::one_request,
            )?,
        })
    }
}

fn checks(steps: &mut Steps, deny: &PathBuf, interrupt: &Interrupt) -> Result<()> {
    steps.run("cargo fmt --check", || {
        run(&mut cargo(["fmt", "--all", "--check"]))
    })?;
    steps.run("Generated code", codegen::check)?;
    steps.run("cargo deny check bans licenses sources", || {
        let mut command = Command::new(deny);
        command
            .current_dir(root())
            .args(["check", "bans", "licenses", "sources"]);
        run(&mut command)
    })?;
    interrupt.check()?;
    steps.run("cargo clippy", || {
        let args = [
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ];
        run(&mut cargo(args))
    })?;
    interrupt.check()
}

/// What the lines `test result: …` of one run add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        for part in result.split(['.', ';']) {
            match part
                .trim()
                .split_once(' ')
                .map(|(n, what)| (n.parse().unwrap_or(0), what))
            {
                Some((n, "passed")) => self.passed += n,
                Some((n, "failed")) => self.failed += n,
                Some((n, "ignored")) => self.ignored += n,
                _ => {}
            }
        }
    }
}

fn run_tests(command: &mut Command) -> Result<u64> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("running cargo test")?;
    let mut tally = Tally::default();
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|out| BufReader::new(out).lines())
    {
        let line = line.context("reading the tests' output")?;
        tally.add(&line);
        say(&line);
    }
    let status = child.wait()?;
    let Tally {
        passed,
        failed,
        ignored,
    } = tally;
    ensure!(
        status.success() && failed == 0,
        "{passed} tests passed, {failed} failed ({status})"
    );
    ensure!(
        ignored == 0,
        "{ignored} tests were ignored: a test runs or goes"
    );
    ensure!(passed > 0, "no test ran");
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_binaries_add_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 47 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.11s",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1.00s",
        ] {
            tally.add(line);
        }
        assert_eq!(
            tally,
            Tally {
                passed: 49,
                failed: 3,
                ignored: 1
            }
        );
    }
}
