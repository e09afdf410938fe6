//! Virtual keys as clients send them: `tp_<id>_<secret><checksum>`.
//!
//! The checksum lets a mistyped or truncated key be refused without a look-up. Keys of any other
//! form may be imported; only their hash is known.

use sha2::{Digest as _, Sha256};

const PREFIX: &str = "tp_";
const MIN_ID_LEN: usize = 8;
const SECRET_LEN: usize = 32;
const CHECKSUM_LEN: usize = 6;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What the text of a key tells without a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// Ours, and its checksum holds.
    Turnpike,
    /// Starts as ours does but was never minted.
    BadChecksum,
    /// Some other format: an imported key, or a stranger's.
    Foreign,
}

/// Makes a key from its id, `[a-z0-9]{8,}`, and 32 random bytes.
pub fn mint(id: &str, entropy: &[u8; 32]) -> String {
    let mut key = String::with_capacity(PREFIX.len() + id.len() + 1 + SECRET_LEN + CHECKSUM_LEN);
    key.push_str(PREFIX);
    key.push_str(id);
    key.push('_');
    // 256 is no multiple of 62, so eight digits are a little likelier; 190 bits remain.
    key.extend(
        entropy
            .iter()
            .map(|&byte| char::from(digit(u32::from(byte)))),
    );
    let checksum = checksum(key.as_bytes());
    key.extend(checksum.map(char::from));
    key
}

/// Checks a key's form and checksum.
pub fn check(secret: &[u8]) -> KeyForm {
    if !secret.starts_with(PREFIX.as_bytes()) {
        return KeyForm::Foreign;
    }
    match secret.split_last_chunk::<CHECKSUM_LEN>() {
        Some((signed, sum)) if is_well_formed(signed) && checksum(signed) == *sum => {
            KeyForm::Turnpike
        }
        _ => KeyForm::BadChecksum,
    }
}

/// SHA-256 over the whole key as the client sends it.
pub fn hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

fn is_well_formed(signed: &[u8]) -> bool {
    let Some(rest) = signed.strip_prefix(PREFIX.as_bytes()) else {
        return false;
    };
    let Some((rest, secret)) = rest.split_last_chunk::<SECRET_LEN>() else {
        return false;
    };
    let Some((b'_', id)) = rest.split_last() else {
        return false;
    };
    id.len() >= MIN_ID_LEN
        && id
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && secret.iter().all(u8::is_ascii_alphanumeric)
}

/// CRC-32C in base 62, most significant digit first.
fn checksum(signed: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut rest = crc32c::crc32c(signed);
    let mut digits = [b'0'; CHECKSUM_LEN];
    for place in digits.iter_mut().rev() {
        *place = digit(rest);
        rest /= 62;
    }
    digits
}

fn digit(value: u32) -> u8 {
    usize::try_from(value % 62)
        .ok()
        .and_then(|at| DIGITS.get(at))
        .copied()
        .unwrap_or(b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_key_has_the_documented_form() {
        let key = mint("k7f3a9q2", &[61; 32]);
        assert_eq!(key.len(), 3 + 8 + 1 + 32 + 6);
        assert!(
            key.starts_with(&format!("tp_k7f3a9q2_{}", "z".repeat(32))),
            "{key}"
        );
        assert_eq!(check(key.as_bytes()), KeyForm::Turnpike);
    }

    #[test]
    fn the_checksum_is_crc32c_in_base_62() {
        // CRC-32C of "123456789" is 0xe3069283, the check value of the polynomial's catalogue entry.
        let mut value = 0xe306_9283_u64;
        let mut expected = Vec::new();
        for _ in 0..6 {
            expected.insert(0, DIGITS[usize::try_from(value % 62).unwrap()]);
            value /= 62;
        }
        assert_eq!(checksum(b"123456789").to_vec(), expected);
    }

    #[test]
    fn every_single_changed_byte_is_noticed() {
        let key = mint("k7f3a9q2", &[7; 32]);
        for at in 3..key.len() {
            let mut bytes = key.clone().into_bytes();
            bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
            assert_eq!(check(&bytes), KeyForm::BadChecksum, "byte {at}");
        }
    }

    #[test]
    fn truncated_keys_are_bad_and_other_formats_are_foreign() {
        let key = mint("k7f3a9q2", &[7; 32]);
        for len in 3..key.len() {
            assert_eq!(
                check(&key.as_bytes()[..len]),
                KeyForm::BadChecksum,
                "{len} bytes"
            );
        }
        for foreign in ["sk-test-1", "", "tp", "TP_k7f3a9q2", "vk-test-alpha"] {
            assert_eq!(check(foreign.as_bytes()), KeyForm::Foreign, "{foreign}");
        }
    }

    #[test]
    fn an_id_that_is_too_short_or_upper_case_is_never_ours() {
        for id in ["short", "UPPERCASE", ""] {
            assert_eq!(
                check(mint(id, &[1; 32]).as_bytes()),
                KeyForm::BadChecksum,
                "{id}"
            );
        }
    }
}
