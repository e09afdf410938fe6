//! Which API has which half.

use super::{
    AnswerTerms, PrintEvents, PrintRequest, PrintWhole, ReadEvents, ReadRequest, ReadWhole,
};
use crate::api::Api;

/// Of APIs that clients call.
pub(super) fn request_reader(api: Api) -> Option<ReadRequest> {
    match api {
        _ => None,
    }
}

/// Of APIs that providers serve.
pub(super) fn request_printer(api: Api) -> Option<PrintRequest> {
    match api {
        _ => None,
    }
}

/// Of APIs that providers serve.
pub(super) fn answer_reader(api: Api) -> Option<ReadWhole> {
    match api {
        _ => None,
    }
}

/// Of APIs that clients call.
pub(super) fn answer_printer(api: Api) -> Option<PrintWhole> {
    match api {
        _ => None,
    }
}

/// Of APIs that providers serve.
pub(super) fn event_reader(api: Api) -> Option<Box<dyn ReadEvents>> {
    match api {
        _ => None,
    }
}

/// Of APIs that clients call.
pub(super) fn event_printer(api: Api, _terms: &AnswerTerms<'_>) -> Option<Box<dyn PrintEvents>> {
    match api {
        _ => None,
    }
}
