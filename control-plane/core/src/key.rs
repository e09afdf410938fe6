//! Minting and importing the secrets of virtual keys. The format is `filter_core::key`'s.

use filter_core::key::{self as format, KeyForm};

use crate::fault::Fault;
use crate::resource::KeySecret;
use crate::secret::Secret;

/// Bytes of entropy that a minted key takes.
pub const ENTROPY_BYTES: usize = HANDLE_LEN + SECRET_ENTROPY_BYTES;

const HANDLE_LEN: usize = 12;
const SECRET_ENTROPY_BYTES: usize = 32;
/// Letters and digits that are not mistaken for one another; 32, so that a byte maps evenly.
const HANDLE_ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// A new secret, with the only copy of its plaintext.
#[derive(Debug)]
pub struct Minted {
    /// The `<id>` in `tp_<id>_…`: 12 characters, a fit id for a key that was given none.
    pub handle: String,
    /// To be shown once.
    pub plaintext: Secret,
    /// To be stored.
    pub secret: KeySecret,
}

/// Makes a key's secret.
pub fn mint(entropy: &[u8; ENTROPY_BYTES]) -> Minted {
    let (for_handle, for_secret) = split(entropy);
    let handle: String = for_handle
        .iter()
        .filter_map(|byte| HANDLE_ALPHABET.get(usize::from(byte % 32)))
        .map(|letter| char::from(*letter))
        .collect();
    let plaintext = Secret::new(format::mint(&handle, &for_secret));
    let secret = KeySecret {
        sha256: format::hash(plaintext.expose().as_bytes()),
        hint: format!("tp_{handle}_"),
        expires_at_s: None,
    };
    Minted {
        handle,
        plaintext,
        secret,
    }
}

/// Takes an existing secret over; its plaintext is not kept.
///
/// # Errors
/// When it is not 16-512 visible ASCII characters, or starts as ours do with a wrong checksum.
pub fn import(plaintext: &Secret) -> Result<KeySecret, Fault> {
    let text = plaintext.expose();
    if !(16..=512).contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(Fault::new(
            "import_secret",
            "must be 16-512 visible ASCII characters",
        ));
    }
    if format::check(text.as_bytes()) == KeyForm::BadChecksum {
        return Err(Fault::new(
            "import_secret",
            "starts with tp_ but its checksum is wrong",
        ));
    }
    Ok(KeySecret {
        sha256: format::hash(text.as_bytes()),
        hint: text.chars().take(4).chain(['…']).collect(),
        expires_at_s: None,
    })
}

fn split(entropy: &[u8; ENTROPY_BYTES]) -> ([u8; HANDLE_LEN], [u8; SECRET_ENTROPY_BYTES]) {
    let mut bytes = entropy.iter().copied();
    let mut next = |_| bytes.next().unwrap_or_default();
    (
        std::array::from_fn(&mut next),
        std::array::from_fn(&mut next),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entropy(seed: u8) -> [u8; ENTROPY_BYTES] {
        std::array::from_fn(|at| {
            u8::try_from(at)
                .unwrap()
                .wrapping_mul(37)
                .wrapping_add(seed)
        })
    }

    #[test]
    fn a_minted_secret_is_one_that_nodes_accept() {
        let minted = mint(&entropy(1));
        let text = minted.plaintext.expose();
        assert_eq!(format::check(text.as_bytes()), KeyForm::Turnpike);
        assert_eq!(minted.secret.sha256, format::hash(text.as_bytes()));
        assert!(text.starts_with(&minted.secret.hint));
        assert!(crate::name::is_id(&minted.handle) && minted.handle.len() == 12);
    }

    #[test]
    fn other_entropy_makes_another_key() {
        let (a, b) = (mint(&entropy(1)), mint(&entropy(2)));
        assert_ne!(a.handle, b.handle);
        assert_ne!(a.secret.sha256, b.secret.sha256);
    }

    #[test]
    fn a_minted_key_is_never_printed() {
        let minted = mint(&entropy(1));
        let printed = format!("{minted:?}");
        let plaintext = minted.plaintext.expose();
        let secret_part = plaintext.strip_prefix(&minted.secret.hint).unwrap();
        assert!(
            !printed.contains(secret_part) && !printed.contains("sha256"),
            "{printed}"
        );
    }

    #[test]
    fn an_imported_secret_keeps_its_hash_and_four_characters() {
        let imported = import(&Secret::new("sk-test-0123456789".into())).unwrap();
        assert_eq!(imported.sha256, format::hash(b"sk-test-0123456789"));
        assert_eq!(imported.hint, "sk-t…");
    }

    #[test]
    fn what_cannot_be_imported_is_refused_without_showing_it() {
        let mut typo = mint(&entropy(3)).plaintext.expose().to_owned();
        typo.pop();
        for wrong in [
            "short",
            "has a space in the middle",
            &"x".repeat(513),
            &typo,
        ] {
            let fault = import(&Secret::new(wrong.to_owned())).unwrap_err();
            assert_eq!(fault.field, "import_secret");
            assert!(!fault.to_string().contains(wrong));
        }
    }
}
