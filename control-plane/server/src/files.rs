//! Secrets and certificates from files.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use control_plane_core::seal::Keyring;
use control_plane_grpc::BearerToken;

/// A token from its file.
pub(crate) fn token(path: &Path, option: &str) -> anyhow::Result<BearerToken> {
    let text = text(path, option)?;
    BearerToken::new(&text).with_context(|| format!("{option} {}", path.display()))
}

/// The master keys from their file.
pub(crate) fn keyring(path: &Path) -> anyhow::Result<Keyring> {
    let text = text(path, "--master-key-file")?;
    Keyring::parse(&text).with_context(|| format!("--master-key-file {}", path.display()))
}

/// A keyring with a key that nobody has.
pub(crate) fn throwaway_keyring() -> anyhow::Result<Keyring> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).context("no randomness")?;
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    Keyring::parse(&digits).context("a random master key")
}

/// A file's text; the error names the option and the file, never what is in it.
pub(crate) fn text(path: &Path, option: &str) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("{option} {}", path.display()))
}
