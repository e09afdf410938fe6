//! ① What becomes of a reply that Envoy makes by itself.

use super::{Exchange, Reply};
use crate::error::Refusal;

/// What the shell does with a local reply.
#[derive(Debug, PartialEq, Eq)]
pub enum LocalReply {
    /// Leave it as it is: it is ours already, or too late to be changed.
    Leave,
    /// Send these bytes, an error event, into the open stream. The stream must not be ended here:
    /// Envoy ends it, and crashes when it is ended twice.
    Event(Vec<u8>),
    /// Put this head and body in its place.
    Replace(Reply),
}

/// How response code details of ours begin.
const OURS: &[u8] = b"turnpike_";

/// A reset reason by which a provider says that it did nothing for the request (RFC 9113, 8.7).
const REFUSED_STREAM: &[u8] = b"remote_refused_stream";

impl Exchange {
    /// ① Envoy replies by itself, or ends an answer that it can't finish.
    pub fn on_local_reply(&mut self, status: u16, details: &[u8]) -> LocalReply {
        if details.starts_with(OURS) {
            return LocalReply::Leave;
        }
        if let Some(attempt) = self.attempts.last_mut()
            && attempt.is_under_way()
            && contains(details, REFUSED_STREAM)
        {
            attempt.is_unconnected = true;
        }
        if self.has_client_head {
            return self.close_open_answer(details);
        }
        let refusal = self.refusal_for(status, details);
        let reply = match refusal {
            // That there is no connection now tells less than what a provider said before.
            Refusal::ProviderUnreachable | Refusal::VendorsUnavailable { .. } => {
                self.provider_reply()
            }
            _ => None,
        };
        LocalReply::Replace(reply.unwrap_or_else(|| self.refuse(&refusal)))
    }

    fn close_open_answer(&mut self, details: &[u8]) -> LocalReply {
        if self.is_cut() {
            return LocalReply::Leave;
        }
        let open_stream = self
            .attempts
            .last()
            .and_then(|attempt| attempt.answer.open_stream());
        let refusal = if is_timeout(details) {
            Refusal::ProviderTimeout
        } else {
            Refusal::ProviderCut
        };
        self.error_code = Some(refusal.code());
        let Some(is_at_boundary) = open_stream else {
            return LocalReply::Leave;
        };
        // A blank line first, or the event would end up inside a line that was cut.
        let mut bytes = if is_at_boundary {
            Vec::new()
        } else {
            b"\n\n".to_vec()
        };
        bytes.extend_from_slice(&refusal.event(self.voice()));
        LocalReply::Event(bytes)
    }

    fn refusal_for(&self, status: u16, details: &[u8]) -> Refusal {
        let has_begun = self
            .attempts
            .last()
            .is_some_and(|attempt| attempt.has_begun);
        if details == b"request_payload_too_large" {
            Refusal::BodyTooLarge
        } else if is_timeout(details) {
            if has_begun {
                Refusal::ProviderTimeout
            } else {
                Refusal::RequestTimeout
            }
        } else if [&b"no_healthy_upstream"[..], b"cluster_not_found"].contains(&details) {
            Refusal::VendorsUnavailable {
                retry_after_s: None,
            }
        } else if details.starts_with(b"upstream_reset_before_response_started") {
            let is_unconnected = self
                .attempts
                .last()
                .is_some_and(|attempt| attempt.is_unconnected);
            if is_unconnected {
                Refusal::ProviderUnreachable
            } else {
                Refusal::ProviderReset
            }
        } else {
            Refusal::Proxy { status }
        }
    }
}

/// Envoy's own words for its timers: `response_timeout`, `upstream_per_try_timeout`,
/// `stream_idle_timeout`… A connection's timer is a failure to connect.
fn is_timeout(details: &[u8]) -> bool {
    contains(details, b"timeout") && !contains(details, b"connection_timeout")
        || contains(details, b"max_stream_duration")
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
