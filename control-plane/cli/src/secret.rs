//! Secrets on their way from a file to the control plane, and back once to the terminal.

use std::fmt;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};

use crate::input;

/// Longest secret that is read, in bytes; a longer file is surely another one.
const LONGEST_BYTES: u64 = 16 * 1024;

/// A secret in the clear; its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

// === impl Secret ===

impl Secret {
    pub(crate) fn new(plaintext: String) -> Self {
        Self(plaintext)
    }

    /// Reads a secret from a file, or from stdin for `-`, without the line end after it.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let place = path.display();
        let mut text = String::new();
        input::open(path)?
            .take(LONGEST_BYTES + 1)
            .read_to_string(&mut text)
            .with_context(|| format!("read a secret from {place}"))?;
        if u64::try_from(text.len()).is_ok_and(|bytes| bytes > LONGEST_BYTES) {
            bail!("read a secret from {place}: it is longer than {LONGEST_BYTES} bytes");
        }
        let plaintext = text.strip_suffix('\n').unwrap_or(&text);
        let plaintext = plaintext.strip_suffix('\r').unwrap_or(plaintext);
        if plaintext.is_empty() {
            bail!("read a secret from {place}: it is empty");
        }
        if plaintext.contains(['\n', '\r']) {
            bail!("read a secret from {place}: it has more than one line");
        }
        Ok(Self(plaintext.to_owned()))
    }

    /// The plaintext, for the wire and for the one time it is shown.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> anyhow::Result<Secret> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, text).unwrap();
        Secret::read(&path)
    }

    #[test]
    fn a_secret_is_read_without_its_line_end() {
        assert_eq!(read("sk-test-1\n").unwrap().expose(), "sk-test-1");
        assert_eq!(read("sk-test-1\r\n").unwrap().expose(), "sk-test-1");
        assert_eq!(read("sk-test-1").unwrap().expose(), "sk-test-1");
    }

    #[test]
    fn a_file_that_holds_no_single_secret_is_refused_without_showing_it() {
        for text in ["", "\n", "sk-test-1\nsk-test-2\n", &"s".repeat(20_000)] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains("secret from"), "{error}");
            assert!(!error.contains("sk-test"), "{error}");
        }
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(
            format!("{:?}", Secret::new("sk-test-1".into())),
            "<redacted>"
        );
    }
}
