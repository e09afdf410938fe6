//! Secrets at rest: AES-256-GCM under one of several master keys.
//!
//! An envelope is `1 | key id (4 bytes) | nonce (12 bytes) | ciphertext and tag`. What it belongs
//! to is its associated data, so that an envelope copied to another row does not open. The newest
//! master key seals; every key in the ring opens, so that keys can be rotated by adding one in
//! front and resealing.

use std::fmt;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Bytes of entropy that sealing takes. Never use the same twice under one key.
pub const NONCE_BYTES: usize = 12;

const VERSION: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES + NONCE_BYTES;

/// The master keys, newest first.
pub struct Keyring(Vec<MasterKey>);

struct MasterKey {
    id: [u8; KEY_ID_BYTES],
    cipher: Aes256Gcm,
}

/// Why sealing, opening, or reading keys failed. Says nothing of any content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("there is no master key")]
    NoKey,
    #[error("master key on line {0} must be 64 hexadecimal digits")]
    NotAKey(usize),
    #[error("master key on line {0} is there twice")]
    DuplicateKey(usize),
    #[error("the envelope is damaged")]
    Damaged,
    #[error("the envelope has version {0}, which is not known here")]
    UnknownVersion(u8),
    #[error("the envelope's master key {0:08x} is not in the ring")]
    UnknownKey(u32),
    #[error("the envelope does not open: it was changed or belongs to something else")]
    DoesNotOpen,
    #[error("sealing failed")]
    NotSealed,
}

impl Keyring {
    /// Reads master keys: one a line as 64 hexadecimal digits, newest first; empty lines and
    /// lines starting with `#` are skipped.
    ///
    /// # Errors
    /// The first line that is not a key or repeats one, or that there is none.
    pub fn parse(text: &str) -> Result<Self, SealError> {
        let mut keys: Vec<MasterKey> = Vec::new();
        for (position, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bytes = decode_key(line).ok_or(SealError::NotAKey(position + 1))?;
            let key = MasterKey::new(&bytes);
            if keys.iter().any(|known| known.id == key.id) {
                return Err(SealError::DuplicateKey(position + 1));
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(SealError::NoKey);
        }
        Ok(Self(keys))
    }

    /// Seals a text under the newest key. `owner` names what it belongs to.
    ///
    /// # Errors
    /// Only for texts beyond 64 GiB.
    pub fn seal(
        &self,
        plaintext: &[u8],
        owner: &str,
        nonce: [u8; NONCE_BYTES],
    ) -> Result<Vec<u8>, SealError> {
        let newest = self.0.first().ok_or(SealError::NoKey)?;
        let payload = Payload {
            msg: plaintext,
            aad: owner.as_bytes(),
        };
        let ciphertext = newest
            .cipher
            .encrypt(&Nonce::from(nonce), payload)
            .map_err(|_| SealError::NotSealed)?;
        let mut envelope = Vec::with_capacity(HEAD_BYTES + ciphertext.len());
        envelope.push(VERSION);
        envelope.extend_from_slice(&newest.id);
        envelope.extend_from_slice(&nonce);
        envelope.extend_from_slice(&ciphertext);
        Ok(envelope)
    }

    /// Opens an envelope that was sealed for the same owner.
    ///
    /// # Errors
    /// When it is damaged, of an unknown version or key, or belongs to another owner.
    pub fn open(&self, envelope: &[u8], owner: &str) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let (key_id, nonce, ciphertext) = split(envelope)?;
        let key = self
            .0
            .iter()
            .find(|key| key.id == key_id)
            .ok_or(SealError::UnknownKey(u32::from_be_bytes(key_id)))?;
        let payload = Payload {
            msg: ciphertext,
            aad: owner.as_bytes(),
        };
        key.cipher
            .decrypt(&Nonce::from(nonce), payload)
            .map(Zeroizing::new)
            .map_err(|_| SealError::DoesNotOpen)
    }

    /// Whether an envelope is under the newest key, so that resealing would change nothing.
    pub fn is_newest(&self, envelope: &[u8]) -> bool {
        let newest = self.0.first().map(|key| key.id);
        split(envelope).is_ok_and(|(key_id, ..)| Some(key_id) == newest)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({} keys)", self.0.len())
    }
}

impl MasterKey {
    fn new(bytes: &Zeroizing<[u8; 32]>) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"turnpike master key id");
        hash.update(bytes.as_slice());
        let [a, b, c, d, ..] = <[u8; 32]>::from(hash.finalize());
        Self {
            id: [a, b, c, d],
            cipher: Aes256Gcm::new(&Key::<Aes256Gcm>::from(**bytes)),
        }
    }
}

type Parts<'a> = ([u8; KEY_ID_BYTES], [u8; NONCE_BYTES], &'a [u8]);

fn split(envelope: &[u8]) -> Result<Parts<'_>, SealError> {
    let (version, rest) = envelope.split_first().ok_or(SealError::Damaged)?;
    if *version != VERSION {
        return Err(SealError::UnknownVersion(*version));
    }
    let (key_id, rest) = rest.split_first_chunk().ok_or(SealError::Damaged)?;
    let (nonce, ciphertext) = rest.split_first_chunk().ok_or(SealError::Damaged)?;
    Ok((*key_id, *nonce, ciphertext))
}

fn decode_key(line: &str) -> Option<Zeroizing<[u8; 32]>> {
    if line.len() != 64 || !line.is_ascii() {
        return None;
    }
    let mut key = Zeroizing::new([0; 32]);
    let mut digits = line.chars().filter_map(|digit| digit.to_digit(16));
    for byte in key.iter_mut() {
        let value = digits.next()? * 16 + digits.next()?;
        *byte = u8::try_from(value).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(digit: char) -> String {
        digit.to_string().repeat(64)
    }

    #[test]
    fn an_envelope_opens_for_its_owner_only() {
        let ring = Keyring::parse(&line('a')).unwrap();
        let envelope = ring
            .seal(b"sk-test-1", "credential/a/demo", [7; 12])
            .unwrap();
        assert_eq!(
            ring.open(&envelope, "credential/a/demo")
                .unwrap()
                .as_slice(),
            b"sk-test-1"
        );
        assert_eq!(
            ring.open(&envelope, "credential/b/demo"),
            Err(SealError::DoesNotOpen)
        );
        assert!(!envelope.windows(9).any(|w| w == b"sk-test-1"));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let ring = Keyring::parse(&line('a')).unwrap();
        let envelope = ring.seal(b"sk-test-1", "x", [7; 12]).unwrap();
        for position in 0..envelope.len() {
            let mut changed = envelope.clone();
            changed[position] ^= 1;
            assert!(ring.open(&changed, "x").is_err(), "byte {position}");
            assert!(
                ring.open(&envelope[..position], "x").is_err(),
                "cut at {position}"
            );
        }
    }

    #[test]
    fn an_older_key_still_opens_and_the_newest_seals() {
        let old = Keyring::parse(&line('a')).unwrap();
        let both = Keyring::parse(&format!("# rotated\n{}\n\n{}\n", line('b'), line('a'))).unwrap();
        let envelope = old.seal(b"sk-test-1", "x", [1; 12]).unwrap();
        assert_eq!(both.open(&envelope, "x").unwrap().as_slice(), b"sk-test-1");
        assert!(!both.is_newest(&envelope));
        let resealed = both.seal(b"sk-test-1", "x", [2; 12]).unwrap();
        assert!(both.is_newest(&resealed));
        assert!(matches!(
            old.open(&resealed, "x"),
            Err(SealError::UnknownKey(_))
        ));
    }

    #[test]
    fn what_is_no_key_is_named_by_its_line_and_never_shown() {
        assert_eq!(Keyring::parse("\n# none\n").unwrap_err(), SealError::NoKey);
        let short = format!("{}\nabc123", line('a'));
        let error = Keyring::parse(&short).unwrap_err();
        assert_eq!(error, SealError::NotAKey(2));
        assert!(!error.to_string().contains("abc123"));
        let twice = format!("{}\n{}", line('a'), line('A'));
        assert_eq!(
            Keyring::parse(&twice).unwrap_err(),
            SealError::DuplicateKey(2)
        );
        assert_eq!(
            format!("{:?}", Keyring::parse(&line('a')).unwrap()),
            "Keyring(1 keys)"
        );
    }
}
