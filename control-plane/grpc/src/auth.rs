//! Bearer tokens: the admin's and the nodes'.

use std::fmt;

use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tonic::{Request, Status, service::Interceptor};

/// Why a text cannot be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TokenError {
    #[error("the token is shorter than 16 characters")]
    TooShort,
    #[error("the token is longer than 512 characters")]
    TooLong,
    #[error("the token has a character that is not visible ASCII")]
    BadCharacter,
}

/// A token that callers present as `authorization: Bearer <token>`; only its hash is kept.
#[derive(Clone)]
pub struct BearerToken {
    sha256: [u8; 32],
}

impl BearerToken {
    /// Takes 16-512 visible ASCII characters; white space around them is not part of the token.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let token = text.trim_ascii();
        match token.len() {
            0..16 => Err(TokenError::TooShort),
            16..=512 if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Self {
                sha256: Sha256::digest(token).into(),
            }),
            16..=512 => Err(TokenError::BadCharacter),
            _ => Err(TokenError::TooLong),
        }
    }

    /// Whether the request presents this token, in a time that does not depend on how much of it
    /// is right.
    pub(crate) fn is_presented_by<T>(&self, request: &Request<T>) -> bool {
        let Some(header) = request.metadata().get("authorization") else {
            return false;
        };
        let Some((scheme, token)) = header.to_str().ok().and_then(|text| text.split_once(' '))
        else {
            return false;
        };
        scheme.eq_ignore_ascii_case("bearer") && self.equals(token.trim_ascii())
    }

    // Hashes are compared, so that a difference found early tells nothing about the token.
    fn equals(&self, token: &str) -> bool {
        let presented: [u8; 32] = Sha256::digest(token).into();
        let difference = presented
            .iter()
            .zip(self.sha256)
            .fold(0, |difference, (a, b)| difference | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(<redacted>)")
    }
}

/// Refuses every call that does not present the token, with UNAUTHENTICATED.
#[derive(Debug, Clone)]
pub(crate) struct RequireBearer(pub(crate) BearerToken);

impl Interceptor for RequireBearer {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        if self.0.is_presented_by(&request) {
            Ok(request)
        } else {
            Err(Status::unauthenticated(
                "a valid `authorization: Bearer` token is required",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "test-token-0123456789";

    fn call(header: Option<&str>) -> Result<(), tonic::Code> {
        let mut request = Request::new(());
        if let Some(header) = header {
            request
                .metadata_mut()
                .insert("authorization", header.parse().unwrap());
        }
        RequireBearer(BearerToken::new(TOKEN).unwrap())
            .call(request)
            .map(|_| ())
            .map_err(|status| status.code())
    }

    #[test]
    fn only_the_whole_token_opens() {
        assert_eq!(call(Some("Bearer test-token-0123456789")), Ok(()));
        assert_eq!(call(Some("bearer  test-token-0123456789")), Ok(()));
        let refused = Err(tonic::Code::Unauthenticated);
        assert_eq!(call(None), refused);
        for header in [
            "",
            "Bearer",
            "Bearer ",
            "Basic test-token-0123456789",
            "test-token-0123456789",
            "Bearer test-token-012345678",
            "Bearer test-token-01234567890",
            "Bearer Test-token-0123456789",
        ] {
            assert_eq!(call(Some(header)), refused, "{header}");
        }
    }

    #[test]
    fn a_token_file_may_end_in_a_newline_and_a_weak_token_is_refused() {
        assert!(BearerToken::new("test-token-0123456789\n").is_ok());
        let refused = |text: &str| BearerToken::new(text).unwrap_err();
        assert_eq!(refused(" \n"), TokenError::TooShort);
        assert_eq!(refused("0123456789"), TokenError::TooShort);
        assert_eq!(refused("0123456789 0123456789"), TokenError::BadCharacter);
        assert_eq!(refused(&"x".repeat(513)), TokenError::TooLong);
    }

    #[test]
    fn a_token_is_never_printed() {
        let printed = format!("{:?}", BearerToken::new(TOKEN).unwrap());
        assert!(!printed.contains("test"));
    }
}
