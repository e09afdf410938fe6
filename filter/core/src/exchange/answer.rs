//! ③ The provider's answer, and ① what the client sees of it.

use super::Exchange;
use crate::attempt::Attempt;
use crate::error::{Refusal, Voice};
use crate::forward;
use crate::host::{Clock, HeaderSink};
use crate::respond::{Beside, ResponseStep};
use crate::text::{self, Decimal};

/// What stands beside an attempt's answer; of fields that are apart from the attempts.
macro_rules! beside {
    ($exchange:expr, $attempt:expr, $clock:expr) => {{
        let admitted = $exchange.admitted.as_ref();
        Beside {
            secret: forward::secret_of(&$exchange.config, $attempt.planned),
            voice: Voice {
                api: $exchange.api.voice(),
                request_id: &$exchange.request_id,
            },
            model: admitted.map_or("", |admitted| &admitted.model_asked),
            shows_usage: admitted.is_some_and(|admitted| admitted.asks_usage),
            clock: $clock,
        }
    }};
}

impl Exchange {
    /// ③ The head of the provider's answer has come. `end_of_stream`: it has no body.
    pub fn on_response_head(
        &mut self,
        headers: &[(&[u8], &[u8])],
        end_of_stream: bool,
        clock: &dyn Clock,
    ) -> ResponseStep {
        let Some(attempt) = self.attempts.last_mut() else {
            return ResponseStep::Pass;
        };
        let beside = beside!(self, attempt, clock);
        let step = attempt.answer.begin(headers, attempt.expected, beside);
        if !end_of_stream {
            if step == ResponseStep::Pass && attempt.is_success() {
                self.held.give_back();
            }
            return step;
        }
        // No body to hold for: whatever the answer is, this is all of it.
        attempt.answer.end(beside, &mut self.missing_body);
        ResponseStep::Pass
    }

    /// ① The body for an answer that came without one, such as an error; `None`: it needs none.
    pub fn take_missing_body(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.missing_body)).filter(|body| !body.is_empty())
    }

    /// ③ Changes the head for the client: right after [`on_response_head`](Self::on_response_head)
    /// said to pass it, or when a held head is released.
    pub fn edit_response_head(&mut self, sink: &mut dyn HeaderSink) {
        let Some(attempt) = self.attempts.last() else {
            return;
        };
        attempt.answer.edit_head(sink);
        self.turn_head(attempt, sink);
        if let Some(refusal) = attempt.answer.replacement() {
            self.error_code = Some(refusal.code());
        }
    }

    /// ③ True when the next frame goes through [`transform`](Self::transform); false when
    /// [`observe`](Self::observe) is enough and the bytes pass untouched. Asked per frame: a held
    /// stream is transformed until its head is released.
    pub fn transforms_response(&self) -> bool {
        self.attempts
            .last()
            .is_some_and(|attempt| self.is_cut() || attempt.answer.transforms())
    }

    /// ③ A frame that passes untouched.
    pub fn observe(&mut self, chunk: &[u8], clock: &dyn Clock) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.answer.observe(chunk, clock);
        }
    }

    /// ③ A frame that may change: appends to `out` what the client gets for it.
    pub fn transform(&mut self, chunk: &[u8], out: &mut Vec<u8>, clock: &dyn Clock) {
        if self.is_cut() {
            return;
        }
        let Some(attempt) = self.attempts.last_mut() else {
            out.extend_from_slice(chunk);
            return;
        };
        let beside = beside!(self, attempt, clock);
        attempt.answer.transform(chunk, beside, out);
    }

    /// ③ The answer's body has ended: appends to `out` what the client gets beyond its frames.
    pub fn on_response_end(&mut self, out: &mut Vec<u8>, clock: &dyn Clock) {
        if self.is_cut() {
            return;
        }
        if let Some(attempt) = self.attempts.last_mut() {
            let beside = beside!(self, attempt, clock);
            attempt.answer.end(beside, out);
        }
    }

    /// ③ Asked after each frame, and after the end, while the head is held: true once, when it may
    /// go.
    pub fn releases_head(&mut self) -> bool {
        let Some(attempt) = self.attempts.last_mut() else {
            return false;
        };
        let releases = attempt.answer.releases_head();
        if releases && attempt.is_success() {
            self.held.give_back();
        }
        releases
    }

    /// ① The head of an answer on its way to the client, a reply of Envoy's own included.
    pub fn edit_client_head(&mut self, sink: &mut dyn HeaderSink) {
        sink.set("x-request-id", self.request_id.as_bytes());
        let Some(attempt) = self.attempts.last() else {
            return;
        };
        if self.turn_by(attempt).is_some() {
            // The router did not follow it after all.
            sink.set(
                ":status",
                Decimal::new(attempt.answer.status.into()).as_bytes(),
            );
        }
        let seen_us = attempt.answer.first_content_us;
        self.standings(seen_us.unwrap_or(attempt.started.mono_us))
            .edit_head(sink);
        self.has_client_head = true;
        let config = &self.config;
        if let Some(model) = config.models.get(attempt.planned.model) {
            sink.set("x-turnpike-model", model.id.as_bytes());
        }
        if let Some((target, _)) = forward::target_of(config, attempt.planned) {
            sink.set("x-turnpike-target", target.label.as_bytes());
        }
        let rule = self
            .admitted
            .as_ref()
            .and_then(|admitted| admitted.route.rule);
        if let Some(rule) = rule.and_then(|rule| config.rules.rule(rule)) {
            sink.set("x-turnpike-rule", rule.name.as_bytes());
        }
        let attempts = self.attempts.len() as u64;
        sink.set("x-turnpike-attempts", Decimal::new(attempts).as_bytes());
        if attempts > 1 && attempt.answer.is_untimed_error() {
            // The plan was the retries; a client's own would multiply them.
            sink.set("x-should-retry", b"false");
        }
        if let Some(tokens) = self.admitted.as_ref().and_then(|it| it.clamped_to) {
            sink.set("x-turnpike-max-tokens", Decimal::new(tokens).as_bytes());
        }
        if let Some(names) = text::header_list(&attempt.left_out) {
            sink.set("x-turnpike-left-out", names.as_bytes());
        }
        if attempt.answer.open_stream().is_some() {
            sink.set("cache-control", b"no-store");
            sink.set("x-accel-buffering", b"no");
        }
    }

    /// ① The status of the head that went to the client; `None`: none did.
    pub fn client_status(&self) -> Option<u16> {
        let answer = &self.attempts.last()?.answer;
        let status = answer.replacement().map_or(answer.status, Refusal::status);
        Some(status).filter(|&status| self.has_client_head && status != 0)
    }

    /// ① Puts the client's path and host back and takes the credential out, so that no access log,
    /// span or later filter shows it. Called in `response_headers` and in `stream_complete`.
    pub fn restore_request_head(&self, sink: &mut dyn HeaderSink) {
        let Some(attempt) = self.attempts.last() else {
            return;
        };
        sink.set(":path", &self.strip.path);
        sink.set(":authority", &self.authority);
        // The attempt before may have left one of another name when this one never began.
        let before = self.attempts.iter().rev().nth(1);
        for attempt in [Some(attempt), before].into_iter().flatten() {
            self.remove_credential(attempt, sink);
        }
    }

    fn remove_credential(&self, attempt: &Attempt, sink: &mut dyn HeaderSink) {
        if let Some(header) = forward::credential_header(&self.config, attempt.planned) {
            sink.remove(header);
        }
    }
}
