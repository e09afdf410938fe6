//! Errors of this dialect: ours for the client, and a provider's, read.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::name::Name;
use crate::error::ErrorBody;
use crate::json::{Leaf, Reader, Scanner, unescape, write_text};
use crate::provider_error::{MESSAGE_BYTES, PART_BYTES, ProviderError};

/// Appends the body of an error answer.
pub(crate) fn print(error: &ErrorBody<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"error":{"message":"#);
    write_text(out, error.message);
    out.extend_from_slice(br#","type":"#);
    write_text(out, error.kind);
    out.extend_from_slice(br#","param":"#);
    write_optional(out, error.param);
    out.extend_from_slice(br#","code":"#);
    write_optional(out, error.code);
    out.extend_from_slice(b"}}");
}

/// Appends the event that tells an error inside a stream.
pub(crate) fn print_event(error: &ErrorBody<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    print(error, out);
    out.extend_from_slice(b"\n\n");
}

fn write_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => write_text(out, text),
        None => out.extend_from_slice(b"null"),
    }
}

/// Reads the body of a provider's error answer, whole or cut off: OpenAI's form and those that
/// compatible providers use in its place (`error` as a string, the members bare, FastAPI's
/// `detail`, an array around it). `None`: it is none of them.
pub(crate) fn parse(body: &[u8]) -> Option<ProviderError> {
    let mut reader = ErrorReader::default();
    Scanner::new::<ErrorReader>().feed(body, &mut reader);
    let error = reader.parts.into_error();
    (reader.is_error || !error.message.is_empty()).then_some(error)
}

/// Reads the value of an `error` member by itself; `None`: it is null or the like.
pub(super) fn parse_member(error: &RawValue) -> Option<ProviderError> {
    let mut reader = ErrorReader::default();
    let mut scanner = Scanner::new::<ErrorReader>();
    for piece in [br#"{"error":"#, error.get().as_bytes(), b"}"] {
        scanner.feed(piece, &mut reader);
    }
    reader.is_error.then(|| reader.parts.into_error())
}

/// True for `{"error":{"message":"…"}}`, whatever else is in it.
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
    }
    serde_json::from_slice::<Body>(body).is_ok()
}

/// The members of an error object, escaped and bounded as they were shown.
#[derive(Clone, Debug, Default)]
pub(super) struct ErrorParts {
    message: Vec<u8>,
    kind: Vec<u8>,
    code: Vec<u8>,
}

impl ErrorParts {
    pub(super) fn text_bytes_wanted(path: &[Name]) -> usize {
        match path {
            [] | [Name::Message] => MESSAGE_BYTES,
            [Name::Type | Name::Code] => PART_BYTES,
            _ => 0,
        }
    }

    /// Takes a member by its path within the error object; the object may be a mere string.
    pub(super) fn take(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let place = match path {
            [] | [Name::Message] => &mut self.message,
            [Name::Type] => &mut self.kind,
            [Name::Code] => &mut self.code,
            _ => return,
        };
        let (Leaf::Text { shown, .. } | Leaf::Number(shown)) = leaf else {
            return;
        };
        place.clear();
        place.extend_from_slice(shown);
    }

    pub(super) fn into_error(self) -> ProviderError {
        ProviderError {
            message: unescape(&self.message),
            kind: unescape(&self.kind),
            code: unescape(&self.code),
        }
    }
}

#[derive(Default)]
struct ErrorReader {
    parts: ErrorParts,
    /// An `error` that is neither null nor false has been seen.
    is_error: bool,
}

impl ErrorReader {
    /// The path within the error object, and whether an `error` member holds it.
    fn error_path(path: &[Name]) -> Option<(&[Name], bool)> {
        let path = path.strip_prefix(&[Name::Item]).unwrap_or(path);
        match path {
            [Name::Error, path @ ..] => Some((path, true)),
            [Name::Message | Name::Type | Name::Code] => Some((path, false)),
            [Name::Detail] | [Name::Detail, Name::Item, Name::Msg] => Some((&[], false)),
            _ => None,
        }
    }
}

impl Reader for ErrorReader {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, path: &[Name]) -> usize {
        Self::error_path(path).map_or(0, |(path, _)| ErrorParts::text_bytes_wanted(path))
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let Some((path, in_error)) = Self::error_path(path) else {
            return;
        };
        // A message inside `error` is more telling than one beside it.
        if in_error || !self.is_error {
            self.parts.take(path, leaf);
        }
        self.is_error |= in_error && matches!(leaf, Leaf::Text { .. });
    }

    fn open(&mut self, path: &[Name]) {
        self.is_error |= matches!(Self::error_path(path), Some(([], true)));
    }
}

#[cfg(test)]
mod tests;
