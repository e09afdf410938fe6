//! Hashes in the form the ground truth shows them.

use sha2::{Digest as _, Sha256};

/// Lower-case hex of the SHA-256 of `bytes`.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A secret as it may be shown: `sha256:` and the first 12 hex digits of its hash.
pub fn masked(secret: &str) -> String {
    let hex = sha256_hex(secret.as_bytes());
    format!("sha256:{}", hex.get(..12).unwrap_or_default())
}

/// The value of header `name` with any credential in it replaced by its mask.
pub fn mask_header(name: &str, value: &str) -> String {
    match name {
        "authorization" => match value.split_once(' ') {
            Some((scheme, secret)) => format!("{scheme} {}", masked(secret)),
            None => masked(value),
        },
        "x-api-key" | "api-key" | "x-goog-api-key" | "cookie" => masked(value),
        _ => value.to_owned(),
    }
}

/// A request target with the value of a `key` parameter masked.
pub fn mask_target(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let pairs: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some(("key", secret)) => format!("key={}", masked(secret)),
            _ => pair.to_owned(),
        })
        .collect();
    format!("{path}?{}", pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_shown_as_hashes_only() {
        let shown = mask_header("authorization", "Bearer sk-test-abc");
        assert_eq!(shown, format!("Bearer {}", masked("sk-test-abc")));
        assert!(!shown.contains("abc"));
        assert!(!mask_header("x-api-key", "sk-test-abc").contains("sk-test"));
        assert_eq!(mask_header("accept", "*/*"), "*/*");
    }

    #[test]
    fn a_key_in_the_query_is_masked() {
        let shown = mask_target("/v1/models?a=b&key=sk-test-abc");
        assert!(shown.starts_with("/v1/models?a=b&key=sha256:"), "{shown}");
    }
}
