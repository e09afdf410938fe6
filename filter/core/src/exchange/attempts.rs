//! ② and ③: which target is tried next, and what it gets.

use filter_llm::api::Api;
use filter_llm::request::{PathFacts, RequestFault};
use filter_llm::splice::Splices;
use filter_llm::translate::{self, Terms};

use super::{Admitted, AttemptStep, Exchange, Reply, STOP_CLUSTER};
use crate::attempt::Attempt;
use crate::error::Refusal;
use crate::forward;
use crate::health::Failure;
use crate::host::{Clock, Clusters, HeaderSink, Now};
use crate::respond::{Answer, Expected};
use crate::route::Planned;
use crate::text::Decimal;

/// For APIs that must be told a bound of the output, where nobody says one.
const DEFAULT_MAX_OUTPUT_TOKENS: u64 = 4096;

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
        self.missing_body.clear();
        self.obstacle = None;
        let planned = self.next_target(number, clusters, now);
        let (Some(planned), Some(admitted)) = (planned, &self.admitted) else {
            self.is_stopped = true;
            return;
        };
        let (api, splices, strips_usage) = self.form_for(admitted, planned);
        let grip = admitted.grips.iter().find(|grip| grip.attempt == number);
        let most = grip.map(|grip| grip.most).unwrap_or_default();
        let settings = &self.config.settings;
        let expected = Expected {
            api,
            stream: admitted.stream,
            strips_usage,
            may_be_followed: number <= forward::retries(&admitted.route),
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
            is_translated: api != admitted.api,
            splices,
            left_out: Vec::new(),
            fault: None,
            expected,
            answer: Answer::default(),
            most,
        });
        self.guard = self.new_guard();
    }

    /// The next planned target whose cluster has hosts and whose limits hold.
    fn next_target(&mut self, number: u32, clusters: &dyn Clusters, now: Now) -> Option<Planned> {
        let route = &self.admitted.as_ref()?.route;
        if self.attempts.len() >= route.most_attempts(self.turned.is_some()) {
            return None;
        }
        loop {
            let at = self.next_planned;
            let planned = *self.admitted.as_ref()?.route.plan.get(at)?;
            self.next_planned = at + 1;
            if !self.is_due(planned, self.turned) {
                continue;
            }
            let has_hosts = forward::target_of(&self.config, planned)
                .is_some_and(|(_, provider)| clusters.has_hosts(&provider.cluster_name));
            if has_hosts && self.readmit(number, at, planned, now) {
                return Some(planned);
            }
        }
    }

    /// Closes the attempt that failed, if there is one.
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
        if let Some(attempt) = self.attempts.last() {
            self.turned = self.turn_by(attempt).or(self.turned);
            self.note_health(attempt, attempt.failure(), mono_us);
        }
    }

    /// Remembers for the requests to come how an attempt ended.
    pub(super) fn note_health(&self, attempt: &Attempt, failure: Option<Failure>, mono_us: u64) {
        if failure.is_none() && self.health.is_all_well() {
            return;
        }
        let Some((target, provider)) = forward::target_of(&self.config, attempt.planned) else {
            return;
        };
        let credential = forward::credential_of(&self.config, attempt.planned);
        let (health, target, provider) = (self.health, &target.label, &provider.id);
        match failure {
            Some(failure) => health.failed(target, provider, credential, failure, mono_us),
            None if attempt.is_success() => health.succeeded(target, provider, credential),
            None => {}
        }
    }

    /// The API that one target is asked in and, if it is the client's own, the changes to the body;
    /// true when usage is asked for by us alone.
    fn form_for(&self, admitted: &Admitted, planned: Planned) -> (Api, Splices, bool) {
        let Some((target, provider)) = forward::target_of(&self.config, planned) else {
            return (admitted.api, Splices::new(), false);
        };
        let api = provider.serves(admitted.api).unwrap_or(admitted.api);
        if api != admitted.api {
            return (api, Splices::new(), false);
        }
        let wants_usage =
            admitted.stream && !admitted.asks_usage && !provider.quirks.no_stream_options;
        let usage = if wants_usage {
            admitted.edits.include_usage()
        } else {
            None
        };
        let (asked, upstream) = (&admitted.model_asked, &target.upstream_model);
        let model = match provider.quirks.is_vertex {
            true => admitted.edits.rename_model_for_vertex(asked, upstream),
            false => [admitted.edits.rename_model(asked, upstream), None],
        };
        let strips_usage = usage.is_some();
        let (edits, member) = match provider.quirks.max_tokens_member {
            true => (
                admitted.edits.with_max_tokens(),
                admitted.edits.rename_output(),
            ),
            false => (admitted.edits, None),
        };
        let limit = admitted.clamped_to.into_iter();
        let output = limit.flat_map(|tokens| edits.limit_output(tokens));
        let members = model.into_iter().chain([usage, member]).flatten();
        let splices = members.chain(output);
        (api, splices.collect(), strips_usage)
    }

    /// ③ Makes the attempt's head: host, path, credential, length. What the attempt before left in
    /// the headers is undone.
    pub fn begin_attempt(&mut self, sink: &mut dyn HeaderSink) -> AttemptStep {
        let (Some(admitted), false) = (&self.admitted, self.is_stopped) else {
            return AttemptStep::Reply(self.stop_reply());
        };
        let Some((attempt, before)) = self.attempts.split_last_mut() else {
            return AttemptStep::Reply(self.stop_reply());
        };
        attempt.has_begun = true;
        forward::edit_attempt_head(&self.config, attempt, before.last(), admitted.api, sink);
        if attempt.expected.api == admitted.api && attempt.splices.is_empty() {
            // It may be the length of the body before.
            if before
                .last()
                .is_some_and(|before| before.changes_body(admitted.api))
            {
                let len = admitted.body_len as u64;
                sink.set("content-length", Decimal::new(len).as_bytes());
            }
            AttemptStep::Pass
        } else {
            AttemptStep::Rewrite
        }
    }

    /// ③ The body for this attempt, out of the client's whole body, and what of the head depends on
    /// it. An error: the target can't be asked this, and the client, or the next attempt, gets the
    /// reply.
    pub fn rewrite_body(
        &mut self,
        body: &[u8],
        sink: &mut dyn HeaderSink,
    ) -> Result<Vec<u8>, Reply> {
        let written = self.written_body(body);
        match written {
            Ok(written) => {
                let len = written.len() as u64;
                sink.set("content-length", Decimal::new(len).as_bytes());
                Ok(written)
            }
            Err(fault) => {
                let refusal = Refusal::Untranslatable(fault);
                let reply = self.refuse(&refusal);
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.fault = Some(refusal);
                }
                Err(reply)
            }
        }
    }

    fn written_body(&mut self, body: &[u8]) -> Result<Vec<u8>, RequestFault> {
        let (Some(admitted), Some(attempt)) = (&mut self.admitted, self.attempts.last_mut()) else {
            return Ok(body.to_vec());
        };
        let api = attempt.expected.api;
        if api == admitted.api {
            return Ok(attempt.splices.apply(body));
        }
        let Some((target, provider)) = forward::target_of(&self.config, attempt.planned) else {
            return Ok(body.to_vec());
        };
        let path = PathFacts {
            model: Some(&admitted.model_asked),
            stream: admitted.stream,
        };
        let terms = Terms {
            upstream_model: &target.upstream_model,
            max_output_tokens: admitted.clamped_to,
            default_max_output_tokens: DEFAULT_MAX_OUTPUT_TOKENS,
            quirks: &provider.quirks,
        };
        let printed = translate::request(admitted.api, api, path, body, &terms)?;
        attempt.left_out = printed.left_out;
        Ok(printed.body)
    }

    /// ③ The last frame of this attempt's body was handed on.
    pub fn on_request_sent(&mut self) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.is_sent = true;
        }
    }

    /// ① ② The current attempt has no connection up to now, so that nothing of it reached the
    /// provider. Called when it may be over: before [`select`](Self::select),
    /// [`on_local_reply`](Self::on_local_reply) and [`settle`](Self::settle).
    pub fn on_unconnected(&mut self) {
        if let Some(attempt) = self.attempts.last_mut()
            && attempt.is_under_way()
        {
            attempt.is_unconnected = true;
        }
    }

    /// The most telling error when no target is left.
    fn stop_reply(&mut self) -> Reply {
        let reply = self.limit_reply(true).or_else(|| self.provider_reply());
        reply
            .or_else(|| self.limit_reply(false))
            .unwrap_or_else(|| {
                self.refuse(&Refusal::VendorsUnavailable {
                    retry_after_s: None,
                })
            })
    }

    /// What the last provider that answered with an error said; `None`: none did.
    pub(super) fn provider_reply(&mut self) -> Option<Reply> {
        let answers = self.attempts.iter().rev();
        let (reply, code) = answers
            .filter_map(|attempt| self.error_reply(attempt))
            .next()?;
        self.error_code = Some(code);
        Some(reply)
    }

    fn error_reply(&self, attempt: &Attempt) -> Option<(Reply, &'static str)> {
        let answer = &attempt.answer;
        if let Some(refusal) = answer.replacement() {
            return Some((refusal.reply(self.voice()), refusal.code()));
        }
        if let Some(refusal) = &attempt.fault {
            return Some((refusal.reply(self.voice()), refusal.code()));
        }
        let secret = forward::secret_of(&self.config, attempt.planned);
        let body = answer.provider_error(secret, self.voice())?;
        let refusal = Refusal::ProviderError {
            status: answer.status,
            retry_after_s: answer.retry_after_s,
        };
        let reply = Reply {
            body,
            ..refusal.reply(self.voice())
        };
        Some((reply, refusal.code()))
    }
}
