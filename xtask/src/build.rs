//! What cargo makes: our programs, and the module that Envoy loads.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::layout::{root, target};

/// Cargo, in this checkout, with queries checked against `.sqlx/` and not against a database.
pub fn cargo(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root())
        .args(args)
        .env("SQLX_OFFLINE", "true");
    // Or sqlx would ask that database, and cargo would build again for each new name.
    cargo.env_remove("DATABASE_URL");
    cargo
}

/// Runs a command with its output shown.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command
        .status()
        .with_context(|| format!("running {shown}"))?;
    ensure!(status.success(), "{shown} failed ({status})");
    Ok(())
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    let mut words = vec![program.to_string_lossy()];
    words.extend(command.get_args().map(OsStr::to_string_lossy));
    words.join(" ")
}

/// How much time building may take for how quick the program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Dev,
    Release,
}

impl Profile {
    fn build(self, packages: &[&str]) -> Result<PathBuf> {
        let mut command = cargo(["build", "--quiet", "--bins"]);
        for package in packages {
            command.args(["-p", package]);
        }
        if self == Self::Release {
            command.arg("--release");
        }
        run(&mut command)?;
        let dir = match self {
            Self::Dev => "debug",
            Self::Release => "release",
        };
        Ok(target().join(dir))
    }
}

/// Builds control plane, CLI and provider; returns the folder they are in.
pub fn programs() -> Result<PathBuf> {
    programs_as(Profile::Dev)
}

/// As [`programs`], in a profile of choice.
pub fn programs_as(profile: Profile) -> Result<PathBuf> {
    profile.build(&[
        "control-plane-server",
        "control-plane-cli",
        "tests-provider",
    ])
}

/// Builds the load that benches send; returns its path.
pub fn load(profile: Profile) -> Result<PathBuf> {
    Ok(profile.build(&["bench"])?.join("turnpike-load"))
}

/// Builds `libturnpike.so` as it is shipped; returns the folder it is in.
pub fn module() -> Result<PathBuf> {
    run(&mut cargo([
        "build",
        "--quiet",
        "--release",
        "-p",
        "filter-module",
    ]))?;
    Ok(target().join("release"))
}

/// Builds the program whose instructions are counted, with optimizations; returns its path.
pub fn one_request() -> Result<PathBuf> {
    let package = ["-p", "filter-core", "--example", "one_request"];
    run(cargo(["build", "--quiet", "--release"]).args(package))?;
    Ok(target().join("release/examples/one_request"))
}

/// Runs the micro benches of the core.
pub fn micro_benches() -> Result<()> {
    run(&mut cargo(["bench", "--quiet", "-p", "bench"]))
}

/// Builds the module with faults that a test can set off; returns the folder it was copied to,
/// since the next build of the module takes its place.
pub fn fault_module() -> Result<PathBuf> {
    run(&mut cargo([
        "build",
        "--quiet",
        "-p",
        "filter-module",
        "--features",
        "fault-injection",
    ]))?;
    let dir = target().join("test-modules/fault");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let beside = dir.join("new");
    fs::copy(target().join("debug/libturnpike.so"), &beside).context("copying libturnpike.so")?;
    // Renamed, never overwritten: an Envoy may have the old one mapped.
    fs::rename(&beside, dir.join("libturnpike.so"))?;
    Ok(dir)
}
