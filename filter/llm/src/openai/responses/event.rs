//! The events of a stream, in the form in which they go on the wire.

use serde::Serialize;
use serde_json::value::RawValue;

use super::shown::{Content, ItemId, Summary};
use crate::openai::print::write_json;

/// An event that tells the whole response.
#[derive(Serialize)]
pub(super) struct Lifecycle<'a, R> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) sequence_number: u64,
    pub(super) response: &'a R,
}

/// An event that tells something of an item. What its kind does not have is left out.
#[derive(Default, Serialize)]
pub(super) struct Step<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) sequence_number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item_id: Option<ItemId<'a>>,
    pub(super) output_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<Piece<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delta: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logprobs: Option<[(); 0]>,
}

/// A part of an item.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
pub(super) enum Piece<'a> {
    Content(Content<'a>),
    Summary(Summary<'a>),
}

/// Appends an event, framing included.
pub(super) fn write(kind: &str, data: &impl Serialize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    write_json(data, out);
    out.extend_from_slice(b"\n\n");
}
