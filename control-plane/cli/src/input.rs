//! Files that the user names, with `-` for stdin.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;

/// Opens a file, or stdin for `-`.
pub(crate) fn open(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    Ok(Box::new(file))
}
