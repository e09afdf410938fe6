//! Errors as Bedrock tells them: `{"message"}`, with the type in the header `x-amzn-errortype`, in a
//! frame's header, or in the body's `__type`.

use serde::Serialize;

use super::name::Name;
use crate::json::{Leaf, Reader, Scanner, unescape};
use crate::provider_error::{MESSAGE_BYTES, PART_BYTES, ProviderError};

#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "__type", skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    message: &'a str,
}

/// The body of an error with its type in it.
pub(super) fn body(kind: &str, message: &str) -> Vec<u8> {
    serde_json::to_vec(&Body { kind, message }).unwrap_or_default()
}

/// Reads the body of an error answer, whole or cut off; `None`: it is none.
pub(crate) fn parse(body: &[u8]) -> Option<ProviderError> {
    let mut reader = ErrorReader::default();
    Scanner::new::<ErrorReader>().feed(body, &mut reader);
    reader.is_error.then(|| ProviderError {
        message: unescape(&reader.message),
        kind: plain_type(&unescape(&reader.kind)),
        code: String::new(),
    })
}

/// The same of an answer whose header names the type. A type alone is an error too.
pub(crate) fn parse_typed(kind: &[u8], body: &[u8]) -> Option<ProviderError> {
    let kind = kind.get(..PART_BYTES).unwrap_or(kind);
    let kind = plain_type(&String::from_utf8_lossy(kind));
    let read = parse(body);
    if kind.is_empty() {
        return read;
    }
    let read = read.unwrap_or_default();
    Some(ProviderError { kind, ..read })
}

/// `ThrottlingException` of `throttlingException`, `com.amazon.coral#ThrottlingException` or
/// `ThrottlingException:http://…`, as AWS's protocols write types (Smithy, "AWS restJson1").
fn plain_type(kind: &str) -> String {
    let kind = kind.split(':').next().unwrap_or_default();
    let kind = kind.rsplit('#').next().unwrap_or_default().trim();
    let mut letters = kind.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[derive(Default)]
struct ErrorReader {
    message: Vec<u8>,
    kind: Vec<u8>,
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
            [Name::Message] => MESSAGE_BYTES,
            [Name::ErrorType] => PART_BYTES,
            _ => 0,
        }
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let Leaf::Text { shown, .. } = leaf else {
            return;
        };
        let part = match path {
            [Name::Message] => &mut self.message,
            [Name::ErrorType] => &mut self.kind,
            _ => return,
        };
        *part = shown.to_vec();
        self.is_error = true;
    }
}

#[cfg(test)]
mod tests;
