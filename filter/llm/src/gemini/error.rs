//! Errors as Google's APIs tell them: `{"error":{"code","message","status"}}`.

use serde::{Deserialize, Serialize};

use super::name::Name;
use crate::error::ErrorBody;
use crate::json::{Leaf, Reader, Scanner, unescape};
use crate::provider_error::{MESSAGE_BYTES, PART_BYTES, ProviderError};

#[derive(Serialize)]
struct Shown<'a> {
    error: ShownError<'a>,
}

#[derive(Serialize)]
struct ShownError<'a> {
    code: u16,
    message: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<ErrorInfo<'a>>,
}

/// Says what the status is too coarse for (`google.rpc.ErrorInfo`).
#[derive(Serialize)]
struct ErrorInfo<'a> {
    #[serde(rename = "@type")]
    kind: &'static str,
    reason: &'a str,
    domain: &'static str,
}

/// Appends the body of an error answer.
pub(crate) fn print(error: &ErrorBody<'_>, out: &mut Vec<u8>) {
    let details = error.code.map(|reason| ErrorInfo {
        kind: "type.googleapis.com/google.rpc.ErrorInfo",
        reason,
        domain: "turnpike",
    });
    let shown = Shown {
        error: ShownError {
            code: error.status,
            message: error.message,
            status: status(error.status),
            details: details.into_iter().collect(),
        },
    };
    out.extend(serde_json::to_vec(&shown).unwrap_or_default());
}

/// Appends the event that tells an error inside a stream.
pub(crate) fn print_event(error: &ErrorBody<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    print(error, out);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Google's name of an HTTP status (`google.rpc.Code`).
pub(super) const fn status(http: u16) -> &'static str {
    match http {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        400..=499 => "INVALID_ARGUMENT",
        501 => "UNIMPLEMENTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    }
}

/// True for an error of this shape, whatever else is in it.
pub(crate) fn is_own(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Body {
        #[serde(rename = "error")]
        _error: Inner,
    }
    #[derive(Deserialize)]
    struct Inner {
        #[serde(rename = "message")]
        _message: String,
        #[serde(rename = "status")]
        _status: String,
    }
    serde_json::from_slice::<Body>(body).is_ok()
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
    status: Vec<u8>,
}

impl ErrorParts {
    pub(super) fn text_bytes_wanted(path: &[Name]) -> usize {
        match path {
            [Name::Message] => MESSAGE_BYTES,
            [Name::Status] => PART_BYTES,
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
            [Name::Status] => self.status = shown.to_vec(),
            _ => {}
        }
    }

    pub(super) fn into_error(self) -> ProviderError {
        ProviderError {
            message: unescape(&self.message),
            kind: unescape(&self.status),
            code: String::new(),
        }
    }
}

#[derive(Default)]
struct ErrorReader {
    parts: ErrorParts,
    is_error: bool,
}

/// The path within the error; a stream's may stand in an array.
fn error_path(path: &[Name]) -> Option<&[Name]> {
    let path = path.strip_prefix(&[Name::Item]).unwrap_or(path);
    path.strip_prefix(&[Name::Error])
}

impl Reader for ErrorReader {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, path: &[Name]) -> usize {
        error_path(path).map_or(0, ErrorParts::text_bytes_wanted)
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        if let Some(path) = error_path(path) {
            self.parts.take(path, leaf);
        }
    }

    fn open(&mut self, path: &[Name]) {
        self.is_error |= matches!(error_path(path), Some([]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Api;

    #[test]
    fn an_error_has_googles_shape_and_its_status_googles_name() {
        let body = ErrorBody {
            status: 429,
            message: "slow \"down\"",
            kind: "rate_limit_error",
            param: None,
            code: Some("rate_limited"),
            request_id: "id-1",
        };
        let json: serde_json::Value =
            serde_json::from_slice(&body.to_body(Api::GenerateContent)).unwrap();
        let expected = serde_json::json!({"error": {
            "code": 429, "message": "slow \"down\"", "status": "RESOURCE_EXHAUSTED",
            "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "rate_limited", "domain": "turnpike"}],
        }});
        assert_eq!(json, expected);
        let printed = body.to_body(Api::GenerateContent);
        assert!(is_own(&printed));
        let read = parse(&printed).unwrap();
        assert_eq!(read.kind, "RESOURCE_EXHAUSTED");
        let event = String::from_utf8(body.to_event(Api::GenerateContent)).unwrap();
        assert!(event.starts_with("data: {\"error\"") && event.ends_with("}\r\n\r\n"));
    }

    #[test]
    fn an_error_in_an_array_or_cut_off_is_read() {
        let whole = br#"[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]"#;
        assert_eq!(parse(whole).unwrap().message, "API key not valid");
        assert_eq!(parse(&whole[..60]).unwrap().message, "API key not valid");
        assert_eq!(parse(br#"{"candidates":[]}"#), None);
    }
}
