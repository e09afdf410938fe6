//! The last applied config on this node's disk, so that it starts without a control plane.
//!
//! With a key the file is `nonce (12 bytes) | AES-256-GCM(snapshot)`; without one it is the plain
//! snapshot, with no provider credentials in it.

use std::{
    io,
    path::{Path, PathBuf},
};

use aes_gcm::{
    Aes256Gcm, KeyInit as _,
    aead::{Aead as _, Payload},
};
use filter_agent::ads::{Snapshot, SnapshotError};
use thiserror::Error;

use crate::entropy;

const NONCE_BYTES: usize = 12;
const ASSOCIATED: &[u8] = b"turnpike snapshot";

/// Where the snapshot is, and what encrypts it.
pub(crate) struct SnapshotFile {
    path: PathBuf,
    cipher: Option<Aes256Gcm>,
}

/// Why there is no snapshot to start from.
#[derive(Debug, Error)]
pub(crate) enum SnapshotFileError {
    #[error("snapshot key file {file}: {error}")]
    KeyFile { file: PathBuf, error: io::Error },
    #[error("snapshot key file {0} must hold 32 bytes, raw or as 64 hexadecimal digits")]
    KeyForm(PathBuf),
    #[error("snapshot: {0}")]
    Io(#[from] io::Error),
    #[error("snapshot does not open with this node's key")]
    Sealed,
    #[error("{0}")]
    Form(#[from] SnapshotError),
}

impl SnapshotFile {
    pub(crate) fn new(path: PathBuf, key_file: Option<&Path>) -> Result<Self, SnapshotFileError> {
        let cipher = key_file
            .map(read_key)
            .transpose()?
            .map(|key| Aes256Gcm::new(&key.into()));
        Ok(Self { path, cipher })
    }

    /// `None`: nothing was stored yet.
    pub(crate) fn load(&self) -> Result<Option<Snapshot>, SnapshotFileError> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(cipher) = &self.cipher else {
            return Ok(Some(Snapshot::decode(&bytes)?));
        };
        let (nonce, sealed) = bytes
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(SnapshotFileError::Sealed)?;
        let payload = Payload {
            msg: sealed,
            aad: ASSOCIATED,
        };
        let plain = cipher
            .decrypt(nonce.into(), payload)
            .map_err(|_| SnapshotFileError::Sealed)?;
        Ok(Some(Snapshot::decode(&plain)?))
    }

    /// Writes by rename, readable by this user only.
    pub(crate) fn store(&self, snapshot: Snapshot) -> Result<(), SnapshotFileError> {
        let bytes = match &self.cipher {
            None => snapshot.without_credentials().encode(),
            Some(cipher) => {
                let nonce: [u8; NONCE_BYTES] = entropy::system();
                let payload = Payload {
                    msg: &snapshot.encode(),
                    aad: ASSOCIATED,
                };
                let sealed = cipher
                    .encrypt((&nonce).into(), payload)
                    .map_err(|_| SnapshotFileError::Sealed)?;
                [nonce.as_slice(), &sealed].concat()
            }
        };
        let staged = self.path.with_extension("new");
        write_private(&staged, &bytes)?;
        std::fs::rename(&staged, &self.path)?;
        Ok(())
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

fn read_key(file: &Path) -> Result<[u8; 32], SnapshotFileError> {
    let bytes = std::fs::read(file).map_err(|error| SnapshotFileError::KeyFile {
        file: file.to_owned(),
        error,
    })?;
    let key = <[u8; 32]>::try_from(bytes.as_slice())
        .ok()
        .or_else(|| from_hex(&bytes));
    key.ok_or_else(|| SnapshotFileError::KeyForm(file.to_owned()))
}

fn from_hex(text: &[u8]) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut key = [0; 32];
    for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use filter_core::config::Resources;
    use proto::config::v1::Credential;

    use super::*;

    fn snapshot() -> Snapshot {
        let credential = Credential {
            id: "c".to_owned(),
            secret: "sk-test-canary".to_owned(),
            ..Credential::default()
        };
        let credentials = [("c".to_owned(), credential)].into_iter().collect();
        let resources = Resources {
            credentials,
            ..Resources::default()
        };
        Snapshot {
            resources,
            whole: true,
        }
    }

    #[test]
    fn a_snapshot_comes_back_with_the_key_and_shows_no_secret_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        std::fs::write(&key, "ab".repeat(32)).unwrap();
        let path = folder.path().join("snapshot.bin");
        let file = SnapshotFile::new(path.clone(), Some(&key)).unwrap();
        assert!(file.load().unwrap().is_none());
        file.store(snapshot()).unwrap();
        assert_eq!(file.load().unwrap(), Some(snapshot()));
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"canary"));

        std::fs::write(&key, "cd".repeat(32)).unwrap();
        let other = SnapshotFile::new(path, Some(&key)).unwrap();
        assert!(matches!(other.load(), Err(SnapshotFileError::Sealed)));
    }

    #[test]
    fn without_a_key_no_credential_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let file = SnapshotFile::new(folder.path().join("snapshot.bin"), None).unwrap();
        file.store(snapshot()).unwrap();
        assert!(
            file.load()
                .unwrap()
                .unwrap()
                .resources
                .credentials
                .is_empty()
        );
    }
}
