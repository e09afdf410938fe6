//! Errors, as each API tells them.

use crate::api::Api;
use crate::provider_error::ProviderError;
use crate::{anthropic, bedrock, gemini, openai};

/// Reads the body of a provider's error answer, whole or cut off; `None`: it is none.
pub fn parse(api: Api, body: &[u8]) -> Option<ProviderError> {
    match api {
        Api::Messages | Api::CountTokens => anthropic::error::parse(body),
        Api::GenerateContent => gemini::error::parse(body),
        Api::Converse => bedrock::error::parse(body),
        _ => openai::error::parse(body),
    }
}

/// The same of an answer with a header that names the error's type, which is Bedrock's
/// `x-amzn-errortype`.
pub fn parse_typed(api: Api, kind: &[u8], body: &[u8]) -> Option<ProviderError> {
    match api {
        Api::Converse => bedrock::error::parse_typed(kind, body),
        _ => parse(api, body),
    }
}

/// Whether a body is an error in this API's own shape, so that its clients can be given it as it
/// is.
pub fn is_of(api: Api, body: &[u8]) -> bool {
    match api {
        Api::Messages | Api::CountTokens => anthropic::error::is_own(body),
        Api::GenerateContent => gemini::error::is_own(body),
        _ => openai::error::is_own(body),
    }
}

/// An error to be told to a client. Where an API has no place for a member, it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorBody<'a> {
    /// HTTP status that goes with it; inside a stream, the one that would have.
    pub status: u16,
    pub message: &'a str,
    /// OpenAI's `type`; the other APIs' kinds follow from the status.
    pub kind: &'a str,
    pub param: Option<&'a str>,
    pub code: Option<&'a str>,
    pub request_id: &'a str,
}

impl ErrorBody<'_> {
    /// The body of an error answer.
    pub fn to_body(&self, api: Api) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.message.len() + 128);
        match api {
            Api::Messages | Api::CountTokens => anthropic::error::print(self, &mut out),
            Api::GenerateContent => gemini::error::print(self, &mut out),
            _ => openai::error::print(self, &mut out),
        }
        out
    }

    /// The event that tells the error inside a stream, its blank line included. It has to begin at
    /// an event's boundary.
    pub fn to_event(&self, api: Api) -> Vec<u8> {
        self.to_event_numbered(api, 0)
    }

    /// The same, with the number that APIs give which number their events.
    pub fn to_event_numbered(&self, api: Api, sequence_number: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.message.len() + 136);
        match api {
            Api::Messages | Api::CountTokens => anthropic::error::print_event(self, &mut out),
            Api::GenerateContent => gemini::error::print_event(self, &mut out),
            Api::Responses => {
                openai::responses::error::print_event(self, sequence_number, &mut out);
            }
            _ => openai::error::print_event(self, &mut out),
        }
        out
    }
}
