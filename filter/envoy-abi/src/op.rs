//! Calls that may re-enter hooks: queued while a hook runs, made right after it.

use std::collections::VecDeque;

/// A call that was queued by a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueuedCall {
    /// A reply in the provider's place.
    SendResponse {
        /// HTTP status.
        status: u16,
        /// Names and values.
        headers: Vec<(String, Vec<u8>)>,
        /// Body bytes.
        body: Vec<u8>,
        /// Response code details.
        details: String,
    },
    /// A cut.
    ResetStream {
        /// Response code details.
        details: String,
    },
    /// A new selection of route and cluster.
    ClearRouteCache,
    /// A new selection of the cluster.
    ClearRouteClusterCache,
    /// The request goes on.
    ContinueDecoding,
    /// The response goes on.
    ContinueEncoding,
    /// Bytes before a cut.
    SendErrorEvent(Vec<u8>),
    /// Trailers that end the response.
    SendResponseTrailers(Vec<(String, Vec<u8>)>),
}

impl QueuedCall {
    /// A reply from borrowed parts.
    pub(crate) fn reply(
        status: u16,
        headers: &[(&str, &[u8])],
        body: &[u8],
        details: &str,
    ) -> Self {
        Self::SendResponse {
            status,
            headers: owned(headers),
            body: body.to_vec(),
            details: details.to_owned(),
        }
    }

    /// Trailers from borrowed parts.
    pub(crate) fn trailers(trailers: &[(&str, &[u8])]) -> Self {
        Self::SendResponseTrailers(owned(trailers))
    }
}

fn owned(pairs: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_vec()))
        .collect()
}

/// A queue that needs no heap for one call, which is the usual number.
#[derive(Default)]
pub(crate) struct Queue {
    first: Option<QueuedCall>,
    rest: VecDeque<QueuedCall>,
}

impl Queue {
    pub(crate) fn push(&mut self, call: QueuedCall) {
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(call);
        } else {
            self.rest.push_back(call);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<QueuedCall> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
