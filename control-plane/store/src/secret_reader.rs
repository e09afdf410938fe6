//! Secrets in and out: sealing, opening, and reading references.

use std::path::PathBuf;

use control_plane_core::resource::{Credential, CredentialSource, clean_secret};
use control_plane_core::seal::{Keyring, NONCE_BYTES, SealError};
use control_plane_core::secret::Secret;
use zeroize::Zeroizing;

use crate::options::Environment;

/// Reads and seals secrets.
pub(crate) struct SecretReader {
    pub(crate) keyring: Keyring,
    pub(crate) secrets_dir: Option<PathBuf>,
    pub(crate) environment: Environment,
}

impl SecretReader {
    /// Seals bytes for an owner.
    pub(crate) fn seal(&self, plaintext: &[u8], owner: &str) -> Result<Vec<u8>, SealError> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NotSealed)?;
        self.keyring.seal(plaintext, owner, nonce)
    }

    /// Opens an envelope of an owner.
    pub(crate) fn open(
        &self,
        envelope: &[u8],
        owner: &str,
    ) -> Result<Zeroizing<Vec<u8>>, SealError> {
        self.keyring.open(envelope, owner)
    }

    /// The plaintext of a credential. The error names the field and what is wrong, in words that
    /// may be shown.
    pub(crate) async fn plaintext(
        &self,
        credential: &Credential,
        envelope: Option<&[u8]>,
    ) -> Result<Secret, (&'static str, String)> {
        let (field, text) = match &credential.source {
            CredentialSource::Sealed => ("secret", self.sealed_text(credential, envelope)),
            CredentialSource::File(path) => ("file", self.file_text(path).await),
            CredentialSource::EnvironmentVariable(name) => (
                "environment_variable",
                (self.environment)(name)
                    .map(Zeroizing::new)
                    .ok_or_else(|| format!("{name} is not set")),
            ),
        };
        let text = text.map_err(|reason| (field, reason))?;
        clean_secret(&text).map_err(|error| (field, error.to_string()))
    }

    fn sealed_text(
        &self,
        credential: &Credential,
        envelope: Option<&[u8]>,
    ) -> Result<Zeroizing<String>, String> {
        let envelope = envelope.ok_or("is not set")?;
        let bytes = self
            .open(envelope, &envelope_owner(credential))
            .map_err(|error| error.to_string())?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(Zeroizing::new(text.to_owned())),
            Err(_) => Err("is not text".to_owned()),
        }
    }

    async fn file_text(&self, path: &str) -> Result<Zeroizing<String>, String> {
        let Some(dir) = &self.secrets_dir else {
            return Err("the control plane has no secrets directory".to_owned());
        };
        let full = dir.join(path);
        let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(full)).await;
        match read {
            Ok(Ok(text)) => Ok(Zeroizing::new(text)),
            Ok(Err(error)) => Err(format!("{path} cannot be read: {}", error.kind())),
            Err(_) => Err(format!("{path} was not read")),
        }
    }
}

/// What a credential's envelope is bound to.
pub(crate) fn envelope_owner(credential: &Credential) -> String {
    format!("credential/{}/{}", credential.id, credential.provider)
}

/// What the published form of a credential is bound to.
pub(crate) fn published_owner(id: &str) -> String {
    format!("published/credential/{id}")
}
