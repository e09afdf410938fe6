//! A path that a document names exists.

use std::path::Path;

use crate::sources;

/// Folders at the root; a backticked token that starts with one of them is a path.
const FOLDERS: [&str; 13] = [
    "proto/",
    "filter/",
    "control-plane/",
    "envoy/",
    "migrations/",
    "helm/",
    "bench/",
    "tests/",
    "xtask/",
    "docs/",
    ".ci/",
    ".cargo/",
    ".sqlx/",
];
const ROOT_FILES: [&str; 9] = [
    "Cargo.toml",
    "clippy.toml",
    "deny.toml",
    "rust-toolchain.toml",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
];

/// The paths a line names: in backticks, or as the target of a link.
fn named_paths(text: &str) -> Vec<&str> {
    let ticked = text.split('`').skip(1).step_by(2);
    let linked = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#']).next());
    ticked
        .chain(linked)
        .map(|token| token.trim_start_matches("./").trim_end_matches('/'))
        .filter(|token| {
            let with_slash = format!("{token}/");
            let in_folder = FOLDERS.iter().any(|folder| with_slash.starts_with(folder));
            in_folder || ROOT_FILES.contains(token)
        })
        .filter(|token| !token.contains(['*', '<', '{', '$', ' ', '…', '\n']))
        .map(|token| token.split("::").next().unwrap_or(token))
        .collect()
}

/// Parts of the design that are documented as not built yet would not be paths; they are words.
#[test]
fn paths_named_in_documents_exist() {
    let mut missing = Vec::new();
    for document in sources::files("md") {
        // Cases are copied with their bytes; their READMEs speak of their own folders.
        if document.starts_with("tests/golden/cases") {
            continue;
        }
        let text = sources::read(&document);
        let folder = document.parent().unwrap_or(Path::new(""));
        for path in named_paths(&text) {
            let root = sources::root();
            if !root.join(path).exists() && !root.join(folder).join(path).exists() {
                missing.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "paths that do not exist:\n  {}",
        missing.join("\n  ")
    );
}

#[test]
fn the_main_documents_are_there() {
    let root = sources::root();
    for name in ROOT_FILES {
        assert!(root.join(name).exists(), "{name} is missing");
    }
}
