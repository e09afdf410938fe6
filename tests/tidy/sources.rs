//! The repository's own files, as git would list them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ has a parent")
        .to_owned()
}

/// Every file below the root with this extension, relative to it, without build output,
/// generated code and installed packages.
pub(crate) fn files(extension: &str) -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let path = entry.expect("an entry can be read").path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if path.is_dir() {
                let skipped = ["target", "generated", "node_modules", ".git", ".turnpike"];
                if !skipped.contains(&name) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(
                    path.strip_prefix(&root)
                        .expect("is below the root")
                        .to_owned(),
                );
            }
        }
    }
    found.sort();
    found
}

/// Text of a file given relative to the root.
pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
