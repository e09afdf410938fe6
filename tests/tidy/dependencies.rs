//! Who may depend on whom (ARCHITECTURE.md), read from `cargo tree -e normal` per crate, since
//! `cargo metadata` unifies features and would show what a crate alone does not pull in.

use std::{collections::BTreeSet, process::Command};

use crate::sources;

/// A crate, and those of ours it may reach, directly or not.
const ALLOWED: [(&str, &[&str]); 15] = [
    ("proto", &[]),
    ("filter-llm", &[]),
    ("filter-core", &["proto", "filter-llm"]),
    ("filter-agent", &["proto", "filter-llm", "filter-core"]),
    ("filter-envoy-abi", &[]),
    ("filter-shared-memory", &[]),
    (
        "filter-module",
        &[
            "proto",
            "filter-llm",
            "filter-core",
            "filter-agent",
            "filter-envoy-abi",
            "filter-shared-memory",
        ],
    ),
    (
        "control-plane-core",
        &["proto", "filter-llm", "filter-core"],
    ),
    (
        "control-plane-store",
        &["proto", "filter-llm", "filter-core", "control-plane-core"],
    ),
    (
        "control-plane-grpc",
        &[
            "proto",
            "filter-llm",
            "filter-core",
            "filter-agent",
            "control-plane-core",
            "control-plane-store",
        ],
    ),
    (
        "control-plane-server",
        &[
            "proto",
            "filter-llm",
            "filter-core",
            "filter-agent",
            "control-plane-core",
            "control-plane-store",
            "control-plane-grpc",
        ],
    ),
    ("control-plane-cli", &["proto"]),
    ("tests-provider", &[]),
    ("bench", &[]),
    ("xtask", &["proto"]),
];

/// Crates that know no clock, no randomness, no I/O.
const PURE: [&str; 4] = [
    "filter-llm",
    "filter-core",
    "filter-agent",
    "control-plane-core",
];

/// What a pure crate must not even reach.
const IMPURE: [&str; 13] = [
    "tokio",
    "tonic",
    "hyper",
    "axum",
    "sqlx",
    "mio",
    "socket2",
    "getrandom",
    "rand",
    "libc",
    "filter-envoy-abi",
    "filter-shared-memory",
    "envoy-types",
];

/// Text that a pure crate's sources must not hold outside tests.
const IMPURE_TEXT: [&str; 12] = [
    "Instant::now",
    "SystemTime::now",
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "ToSocketAddrs",
    "std::env",
    "std::thread",
    "std::process",
    "std::io::stdout",
    "HashMap::iter",
    "thread_rng",
];

fn tree(name: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--locked",
            "-p",
            name,
            "-e",
            "normal",
            "--prefix",
            "none",
        ])
        .args(["--format", "{p}"])
        .current_dir(sources::root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|found| *found != name)
        .map(str::to_owned)
        .collect()
}

#[test]
fn dependencies_point_one_way() {
    let ours: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    for (name, allowed) in ALLOWED {
        let reached = tree(name);
        let wrong: Vec<_> = reached
            .iter()
            .filter(|found| ours.contains(found.as_str()) && !allowed.contains(&found.as_str()))
            .collect();
        assert!(wrong.is_empty(), "{name} must not depend on {wrong:?}");
    }
}

#[test]
fn pure_crates_reach_nothing_that_does_io() {
    for name in PURE {
        let reached = tree(name);
        let wrong: Vec<_> = IMPURE
            .iter()
            .filter(|banned| reached.contains(**banned))
            .collect();
        assert!(wrong.is_empty(), "{name} must not reach {wrong:?}");
    }
}

#[test]
fn pure_sources_name_no_clock_and_no_io() {
    for name in PURE {
        let folder = match name.strip_prefix("filter-") {
            Some(rest) => format!("filter/{rest}/src"),
            None => "control-plane/core/src".to_owned(),
        };
        for path in sources::files("rs")
            .iter()
            .filter(|path| path.starts_with(&folder))
        {
            let is_test = path.components().any(|part| part.as_os_str() == "tests");
            if is_test || path.ends_with("tests.rs") {
                continue;
            }
            let text = sources::read(path);
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for banned in IMPURE_TEXT {
                assert!(!code.contains(banned), "{} names {banned}", path.display());
            }
        }
    }
}

#[test]
fn two_crates_have_unsafe() {
    for path in sources::files("rs") {
        let is_root = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
        let is_exempt = ["filter/envoy-abi", "filter/shared-memory", "proto"]
            .iter()
            .any(|folder| path.starts_with(folder));
        if !is_root || is_exempt {
            continue;
        }
        let text = sources::read(&path);
        assert!(
            text.contains("#![forbid(unsafe_code)]"),
            "{} must forbid unsafe code",
            path.display()
        );
        assert!(
            text.starts_with("//!"),
            "{} must say what it is",
            path.display()
        );
    }
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    for path in sources::files("toml")
        .iter()
        .filter(|path| path.ends_with("Cargo.toml"))
    {
        let text = sources::read(path);
        if path.components().count() == 1 || path.starts_with("proto") {
            continue;
        }
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{} must take the workspace's lints",
            path.display()
        );
    }
}
