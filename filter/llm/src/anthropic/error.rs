//! Errors as Anthropic tells them: `{"type":"error","error":{"type","message"},"request_id"}`.

use serde::{Deserialize, Serialize};

use super::name::Name;
use crate::error::ErrorBody;
use crate::json::{Leaf, Reader, Scanner, unescape};
use crate::provider_error::{MESSAGE_BYTES, PART_BYTES, ProviderError};

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    error: ShownError<'a>,
    request_id: &'a str,
}

#[derive(Serialize)]
struct ShownError<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: &'a str,
    /// Not Anthropic's: what its types are too coarse for.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
}

/// Appends the body of an error answer.
pub(crate) fn print(error: &ErrorBody<'_>, out: &mut Vec<u8>) {
    let shown = Shown {
        kind: "error",
        error: ShownError {
            kind: kind(error.status),
            message: error.message,
            code: error.code,
        },
        request_id: error.request_id,
    };
    out.extend(serde_json::to_vec(&shown).unwrap_or_default());
}

/// Appends the event that tells an error inside a stream.
pub(crate) fn print_event(error: &ErrorBody<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: error\ndata: ");
    print(error, out);
    out.extend_from_slice(b"\n\n");
}

/// Anthropic's type of an HTTP status.
const fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// True for an error of this shape, whatever else is in it.
pub(crate) fn is_own(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Body {
        #[serde(rename = "type")]
        kind: String,
        #[serde(rename = "error")]
        _error: Inner,
    }
    #[derive(Deserialize)]
    struct Inner {
        #[serde(rename = "type")]
        _kind: String,
        #[serde(rename = "message")]
        _message: String,
    }
    serde_json::from_slice::<Body>(body).is_ok_and(|body| body.kind == "error")
}

/// Reads the body of an error answer, whole or cut off; `None`: it is none.
pub(crate) fn parse(body: &[u8]) -> Option<ProviderError> {
    let mut reader = ErrorReader::default();
    Scanner::new::<ErrorReader>().feed(body, &mut reader);
    reader.is_error.then(|| reader.parts.into_error())
}

/// The members of an error, escaped and bounded as they were shown.
#[derive(Clone, Debug, Default)]
pub(super) struct ErrorParts {
    message: Vec<u8>,
    kind: Vec<u8>,
}

impl ErrorParts {
    pub(super) fn text_bytes_wanted(path: &[Name]) -> usize {
        match path {
            [Name::Message] => MESSAGE_BYTES,
            [Name::Type] => PART_BYTES,
            _ => 0,
        }
    }

    /// Takes a member by its path within the error.
    pub(super) fn take(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let Leaf::Text { shown, .. } = leaf else {
            return;
        };
        match path {
            [Name::Message] => self.message = shown.to_vec(),
            [Name::Type] => self.kind = shown.to_vec(),
            _ => {}
        }
    }

    pub(super) fn into_error(self) -> ProviderError {
        ProviderError {
            message: unescape(&self.message),
            kind: unescape(&self.kind),
            code: String::new(),
        }
    }
}

#[derive(Default)]
struct ErrorReader {
    parts: ErrorParts,
    is_error: bool,
}

impl Reader for ErrorReader {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, path: &[Name]) -> usize {
        match path {
            [Name::Error, path @ ..] => ErrorParts::text_bytes_wanted(path),
            _ => 0,
        }
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        if let [Name::Error, path @ ..] = path {
            self.parts.take(path, leaf);
        }
    }

    fn open(&mut self, path: &[Name]) {
        self.is_error |= matches!(path, [Name::Error]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Api;

    fn body(status: u16) -> ErrorBody<'static> {
        ErrorBody {
            status,
            message: "slow \"down\"",
            kind: "rate_limit_error",
            param: None,
            code: Some("limit_rate"),
            request_id: "id-1",
        }
    }

    #[test]
    fn an_error_has_anthropics_shape() {
        let printed = body(429).to_body(Api::Messages);
        let json: serde_json::Value = serde_json::from_slice(&printed).unwrap();
        let expected = serde_json::json!({"type": "error", "request_id": "id-1", "error": {
            "type": "rate_limit_error", "message": "slow \"down\"", "code": "limit_rate"}});
        assert_eq!(json, expected);
        assert!(is_own(&printed) && !is_own(br#"{"error":{"message":"x","type":"y"}}"#));
        let read = parse(&printed).unwrap();
        assert_eq!(
            (read.kind.as_str(), read.message.as_str()),
            ("rate_limit_error", "slow \"down\"")
        );
        let event = String::from_utf8(body(529).to_event(Api::Messages)).unwrap();
        assert!(event.starts_with("event: error\ndata: {\"type\":\"error\""));
        assert!(event.contains("overloaded_error") && event.ends_with("}\n\n"));
    }

    #[test]
    fn each_status_has_anthropics_type() {
        for (status, kind) in [
            (400, "invalid_request_error"),
            (401, "authentication_error"),
            (403, "permission_error"),
            (402, "billing_error"),
            (404, "not_found_error"),
            (409, "conflict_error"),
            (413, "request_too_large"),
            (422, "invalid_request_error"),
            (429, "rate_limit_error"),
            (500, "api_error"),
            (502, "api_error"),
            (503, "overloaded_error"),
            (504, "timeout_error"),
            (529, "overloaded_error"),
        ] {
            assert_eq!(super::kind(status), kind);
        }
    }
}
