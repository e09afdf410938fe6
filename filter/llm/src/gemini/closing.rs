//! The last response of a stream that the gateway ends before its provider does.

use super::document::Document;
use crate::closing::Closing;
use crate::conversation::Finish;

/// Appends a response that finishes for its length, with the usage. The end of the stream is its
/// only end marker.
pub(crate) fn write(closing: &Closing<'_>, out: &mut Vec<u8>) {
    let document = Document::new(Vec::new(), Some(Finish::Length), closing.model, closing.id);
    let document = document.with_usage(Some(closing.usage));
    out.extend_from_slice(b"data: ");
    out.extend(serde_json::to_vec(&document).unwrap_or_default());
    out.extend_from_slice(b"\r\n\r\n");
}
