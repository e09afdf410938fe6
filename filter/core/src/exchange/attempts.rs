//! ② and ③: which target is tried next, and what it gets.

use filter_llm::splice::Splices;

use super::{Admitted, AttemptStep, Exchange, STOP_CLUSTER};
use crate::attempt::Attempt;
use crate::error::Refusal;
use crate::forward;
use crate::host::{Clock, Clusters, HeaderSink};
use crate::respond::{Answer, Expected};
use crate::route::Planned;

impl Exchange {
    /// ② The cluster of an attempt, 1 for the first; [`STOP_CLUSTER`] when no target is left.
    /// Asked again for the same attempt, it answers the same.
    pub fn select(&mut self, attempt: u32, clusters: &dyn Clusters, clock: &dyn Clock) -> &str {
        let number = attempt.max(1);
        if !self.is_stopped && self.attempts.last().is_none_or(|last| last.number < number) {
            self.advance(number, clusters, clock);
        }
        match self.attempts.last() {
            Some(attempt) if !self.is_stopped => forward::target_of(&self.config, attempt.planned)
                .map_or(STOP_CLUSTER, |(_, provider)| &provider.cluster_name),
            _ => STOP_CLUSTER,
        }
    }

    /// Closes the attempt that failed, and starts the next one whose cluster has hosts.
    fn advance(&mut self, number: u32, clusters: &dyn Clusters, clock: &dyn Clock) {
        let now = clock.now();
        self.leave_attempt(now.mono_us);
        // The client will not see what the attempt before came to.
        self.error_code = None;
        let planned = self.admitted.as_ref().and_then(|admitted| {
            let rest = admitted
                .route
                .plan
                .iter()
                .enumerate()
                .skip(self.next_planned);
            rest.map(|(at, &planned)| (at, planned))
                .find(|&(_, planned)| {
                    forward::target_of(&self.config, planned)
                        .is_some_and(|(_, provider)| clusters.has_hosts(&provider.cluster_name))
                })
        });
        let (Some((at, planned)), Some(admitted)) = (planned, &self.admitted) else {
            self.is_stopped = true;
            return;
        };
        self.next_planned = at + 1;
        let (splices, strips_usage) = self.splices_for(admitted, planned);
        let settings = &self.config.settings;
        let expected = Expected {
            stream: admitted.stream,
            strips_usage,
            max_event_bytes: settings.max_stream_event_bytes,
            hold_bytes: settings.first_token_hold_bytes,
            hold_us: u64::from(settings.first_token_hold_ms) * 1000,
        };
        // Seldom more than one, and each is large.
        self.attempts.reserve_exact(1);
        self.attempts.push(Attempt {
            number,
            planned,
            started: now,
            left_us: None,
            left_for: "",
            has_begun: false,
            is_sent: false,
            is_unconnected: false,
            splices,
            expected,
            answer: Answer::default(),
        });
    }

    fn leave_attempt(&mut self, mono_us: u64) {
        let timeout_us = self.admitted.as_ref().map_or(0, |admitted| {
            u64::from(forward::per_try_timeout_ms(&self.config, &admitted.route)) * 1000
        });
        let Some(attempt) = self.attempts.last_mut() else {
            return;
        };
        attempt.left_us = Some(mono_us);
        attempt.left_for = if attempt.answer.status != 0 && !attempt.answer.is_held() {
            "status"
        } else if attempt.is_unconnected {
            "unconnected"
        } else if attempt.since_start(mono_us) >= timeout_us {
            "timeout"
        } else {
            "reset"
        };
    }

    /// The changes to the body for one target; true when usage is asked for by us alone.
    fn splices_for(&self, admitted: &Admitted, planned: Planned) -> (Splices, bool) {
        let Some((target, provider)) = forward::target_of(&self.config, planned) else {
            return (Splices::new(), false);
        };
        let wants_usage = admitted.stream && !admitted.asks_usage && provider.stream_usage_option;
        let usage = if wants_usage {
            admitted.edits.include_usage()
        } else {
            None
        };
        let rename = admitted
            .edits
            .rename_model(&admitted.model_asked, &target.upstream_model);
        let strips_usage = usage.is_some();
        (
            [rename, usage].into_iter().flatten().collect(),
            strips_usage,
        )
    }

    /// ③ Makes the attempt's head: host, path, credential, length. What the attempt before left in
    /// the headers is undone.
    pub fn begin_attempt(&mut self, sink: &mut dyn HeaderSink) -> AttemptStep {
        let (Some(admitted), false) = (&self.admitted, self.is_stopped) else {
            let refusal = self.stop_refusal();
            return AttemptStep::Reply(self.refuse(&refusal));
        };
        let Some((attempt, before)) = self.attempts.split_last_mut() else {
            let refusal = Refusal::VendorsUnavailable {
                retry_after_s: None,
            };
            return AttemptStep::Reply(self.refuse(&refusal));
        };
        attempt.has_begun = true;
        forward::edit_attempt_head(
            &self.config,
            attempt,
            before.last(),
            admitted.body_len,
            sink,
        );
        if attempt.splices.is_empty() {
            AttemptStep::Pass
        } else {
            AttemptStep::Splice
        }
    }

    /// ③ The body for this attempt, out of the client's whole body.
    pub fn splice_body(&mut self, body: &[u8]) -> Vec<u8> {
        self.attempts
            .last()
            .map_or_else(|| body.to_vec(), |attempt| attempt.splices.apply(body))
    }

    /// ③ The last frame of this attempt's body was handed on.
    pub fn on_request_sent(&mut self) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.is_sent = true;
        }
    }

    /// ③ This attempt never had a connection, so that nothing of it reached the provider.
    pub fn on_unconnected(&mut self) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.is_unconnected = attempt.answer.status == 0;
        }
    }

    /// The most telling error when no target is left.
    fn stop_refusal(&self) -> Refusal {
        let Some(last) = self.attempts.last() else {
            return Refusal::VendorsUnavailable {
                retry_after_s: None,
            };
        };
        match last.answer.status {
            0 | 429 | 503 | 529 => Refusal::VendorsUnavailable {
                retry_after_s: last.answer.retry_after_s,
            },
            status => Refusal::ProviderError { status },
        }
    }
}
