//! A provider's error answer: collected, masked, and put into the client's shape if it is not in it.

use std::borrow::Cow;

use filter_llm::api::Api;
use filter_llm::error::{self, ErrorBody};
use filter_llm::mask::mask;
use filter_llm::provider_error::ProviderError;

use crate::error::Voice;
use crate::text;

/// An error that explains itself fits; the rest of a longer one is dropped.
const MAX_BYTES: usize = 64 << 10;
const MAX_MESSAGE_BYTES: usize = 1024;

/// The body of an error answer, collected up to its cap.
pub(super) struct ErrorAnswer {
    status: u16,
    /// The API that the provider was asked in.
    api: Api,
    bytes: Vec<u8>,
    is_cut: bool,
}

impl ErrorAnswer {
    pub(super) const fn new(status: u16, api: Api) -> Self {
        Self {
            status,
            api,
            bytes: Vec::new(),
            is_cut: false,
        }
    }

    pub(super) fn take(&mut self, chunk: &[u8]) {
        let room = MAX_BYTES - self.bytes.len().min(MAX_BYTES);
        let fitting = chunk.get(..room).unwrap_or(chunk);
        self.is_cut |= fitting.len() < chunk.len();
        self.bytes.extend_from_slice(fitting);
    }

    /// True when the rest is dropped.
    pub(super) const fn is_full(&self) -> bool {
        self.is_cut
    }

    /// The error as the provider told it, the secret not masked.
    pub(super) fn parsed(&self) -> Option<ProviderError> {
        if self.bytes.is_empty() {
            return None;
        }
        let parsed = error::parse(self.api, &self.bytes);
        Some(parsed.unwrap_or_else(|| ProviderError::of_text(&self.bytes)))
    }

    /// Appends what the client gets.
    pub(super) fn print(&self, secret: &[u8], voice: Voice<'_>, out: &mut Vec<u8>) {
        let masked = mask(&self.bytes, secret);
        let is_its_own = self.api == voice.api && error::is_of(voice.api, &masked);
        if !self.is_cut && is_its_own {
            out.extend_from_slice(&masked);
            return;
        }
        let provider = error::parse(self.api, &masked).unwrap_or_default();
        let plain = String::from_utf8_lossy(&masked);
        let message = match provider.message.as_str() {
            "" => Cow::Borrowed(bounded(plain.trim())),
            message => Cow::Borrowed(message),
        };
        let body = ErrorBody {
            status: self.status,
            request_id: voice.request_id,
            message: text::or(
                &message,
                "The provider answered with an error and said no more.",
            ),
            kind: text::or(&provider.kind, kind_of(self.status)),
            param: None,
            code: Some(provider.code.as_str()).filter(|code| !code.is_empty()),
        };
        out.extend_from_slice(&body.to_body(voice.api));
    }
}

const fn kind_of(status: u16) -> &'static str {
    match status {
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    }
}

fn bounded(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_MESSAGE_BYTES))
        .unwrap_or_default()
}
