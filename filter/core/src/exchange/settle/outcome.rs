//! How an exchange ended, from what the attempts saw and what Envoy says.

use proto::metering::v1::End;

use super::{Sample, StreamEnd};
use crate::exchange::Exchange;
use crate::forward;
use crate::host::Now;
use crate::text::refill;

/// How an exchange ended.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    pub(super) end: End,
    reason: &'static str,
}

impl Exchange {
    pub(super) fn outcome(&self, end: &StreamEnd<'_>) -> Outcome {
        let how = self.end(end);
        let reason = match how {
            End::Complete if self.is_cut() => "limit_cut",
            End::Complete => "ok",
            End::ClientGone => "client_gone",
            End::Shutdown => "shutdown",
            _ => self.error_code.unwrap_or(match how {
                End::ProviderCut => "provider_cut",
                // The model list, and health.
                _ if self.admitted.is_none() => "ok",
                _ => "provider_error",
            }),
        };
        Outcome { end: how, reason }
    }

    fn end(&self, end: &StreamEnd<'_>) -> End {
        let last = self.attempts.last().filter(|_| !self.is_stopped);
        // A stream that a limit cut has come to a proper end.
        if self.is_cut() || last.is_some_and(|last| last.is_complete()) {
            return End::Complete;
        }
        if end.shutdown {
            return End::Shutdown;
        }
        // One that cancels an HTTP/2 or HTTP/3 stream is told by its codec's word.
        if end.details.starts_with(b"downstream_") || end.details.ends_with(b".remote_reset") {
            return End::ClientGone;
        }
        if self.has_client_head && last.is_some_and(|last| last.is_success()) {
            return End::ProviderCut;
        }
        End::ProviderFailed
    }

    pub(super) fn write_sample(
        &self,
        end: &StreamEnd<'_>,
        how: Outcome,
        now: Now,
        sample: &mut Sample,
    ) {
        let last = self.attempts.last();
        let provider = last.and_then(|last| forward::target_of(&self.config, last.planned));
        sample.client_api = self.api.as_str();
        refill(&mut sample.model, self.planned_model());
        refill(
            &mut sample.provider,
            provider.map_or("", |(_, provider)| &provider.id),
        );
        sample.status = end.response_code;
        sample.reason = how.reason;
        sample.is_stream = self
            .admitted
            .as_ref()
            .is_some_and(|admitted| admitted.stream);
        sample.tokens = Default::default();
        sample.is_estimated = false;
        sample.first_content_us = last
            .and_then(|last| last.answer.first_content_us)
            .map(|at_us| at_us.saturating_sub(self.began.mono_us));
        sample.duration_us = now.mono_us.saturating_sub(self.began.mono_us);
        sample.attempts = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
        sample.limit_refusal = self.limit_refusal;
    }
}
