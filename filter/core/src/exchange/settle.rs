//! ① The end: sum the attempts, price them, and write the record, the log line and the sample.

use filter_llm::price;
use proto::config::v1::{Effort, Price};
use proto::metering::v1::{self as wire, End, UsageRecord, UsageSource};

use super::{Admitted, Exchange};
use crate::attempt::{Attempt, Metered};
use crate::forward;
use crate::host::{Clock, Now};
use crate::text::{self, Decimal, refill};

mod outcome;
mod settled;

pub use settled::{LogFields, Sample, Settled, TokenCounts};

/// What Envoy says of a stream when it is over.
#[derive(Clone, Copy, Debug)]
pub struct StreamEnd<'a> {
    /// The status that the client got; 0: it left before one.
    pub response_code: u32,
    /// Response code details.
    pub details: &'a [u8],
    /// Response flags, as Envoy's bits.
    pub flags: u64,
    /// The node is shutting down.
    pub shutdown: bool,
}

impl Exchange {
    /// ① The stream is over. Always called last, and once.
    pub fn settle(&mut self, end: &StreamEnd<'_>, clock: &dyn Clock) -> Settled {
        let mut settled = Settled::default();
        self.settle_into(end, clock, &mut settled);
        settled
    }

    /// As [`settle`](Self::settle), into one that was used before: a worker that keeps it
    /// allocates nothing here.
    pub fn settle_into(&mut self, end: &StreamEnd<'_>, clock: &dyn Clock, settled: &mut Settled) {
        let now = clock.now();
        self.held.give_back();
        if self.admitted.is_none() {
            settled.record = None;
        }
        let how = self.outcome(end);
        self.write_sample(end, how, now, &mut settled.sample);
        if let Some(admitted) = &self.admitted {
            let record = settled.record.get_or_insert_default();
            self.write_record(record, admitted, now);
            record.end = how.end.into();
            record.status = end.response_code;
            count_tokens(record, &mut settled.sample);
        }
        self.write_log(how.end, settled);
    }

    fn write_record(&self, record: &mut UsageRecord, admitted: &Admitted, now: Now) {
        record.exchange_id.clear();
        record.exchange_id.extend_from_slice(&self.id());
        refill(&mut record.request_id, &self.request_id);
        record.admitted_at_us = admitted.admission.at.unix_us;
        record.duration_us = now.mono_us.saturating_sub(admitted.admission.at.mono_us);
        record.price_version = self.config.prices.version;
        record.charges.clear();
        self.write_caller(record.caller.get_or_insert_default(), admitted);
        self.write_decision(record.decision.get_or_insert_default(), admitted);
        let begun = self.attempts.iter().filter(|attempt| attempt.has_begun);
        record
            .attempts
            .resize_with(begun.clone().count(), wire::Attempt::default);
        for (entry, attempt) in record.attempts.iter_mut().zip(begun) {
            self.write_attempt(entry, attempt, admitted, now);
        }
        refill(
            &mut record.finish,
            self.attempts.last().map_or("", Attempt::finish),
        );
        refill(&mut record.error_code, self.error_code.unwrap_or_default());
    }

    fn write_caller(&self, entry: &mut wire::Caller, admitted: &Admitted) {
        let (key, team) = self.caller_ids();
        refill(&mut entry.key, key);
        refill(&mut entry.team, team);
        refill(&mut entry.end_user, &admitted.end_user);
    }

    fn write_decision(&self, entry: &mut wire::Decision, admitted: &Admitted) {
        refill(&mut entry.client_api, self.api.as_str());
        refill(&mut entry.model_asked, &admitted.model_asked);
        refill(&mut entry.model, self.planned_model());
        refill(&mut entry.rule, self.rule_name());
        refill(&mut entry.effort, effort_word(admitted.route.effort));
        entry.attributes.clear();
        for (name, value) in self.attributes.iter() {
            let name = text::cut(name).to_owned();
            entry
                .attributes
                .entry(name)
                .or_insert_with(|| text::cut(value).to_owned());
        }
        refill(&mut entry.action_id, &admitted.action_id);
        entry.config_version = self.config.version;
        entry.stream = admitted.stream;
        entry.request_bytes = admitted.body_len as u64;
    }

    fn write_attempt(
        &self,
        entry: &mut wire::Attempt,
        attempt: &Attempt,
        admitted: &Admitted,
        now: Now,
    ) {
        let config = &self.config;
        let planned = attempt.planned;
        let credential = planned
            .credential
            .and_then(|at| config.credentials.credential(at));
        entry.number = attempt.number;
        refill(
            &mut entry.model,
            config
                .models
                .get(planned.model)
                .map_or("", |model| &model.id),
        );
        refill(
            &mut entry.credential,
            credential.map_or("", |credential| &credential.id),
        );
        entry.started_us = attempt
            .started
            .mono_us
            .saturating_sub(admitted.admission.at.mono_us);
        entry.first_content_us = attempt
            .answer
            .first_content_us
            .map_or(0, |at_us| attempt.since_start(at_us).max(1));
        entry.duration_us = attempt.since_start(attempt.left_us.unwrap_or(now.mono_us));
        entry.status = attempt.answer.status.into();
        entry.verdict = attempt.verdict().into();
        refill(&mut entry.reason, attempt.left_for);
        let metered = attempt.metered(admitted.text_bytes, config.settings.estimate_unknown_usage);
        write_usage(entry.usage.get_or_insert_default(), &metered, attempt);
        entry.costs.clear();
        let Some((target, provider)) = forward::target_of(config, planned) else {
            return;
        };
        refill(&mut entry.provider, &provider.id);
        refill(&mut entry.upstream_model, &target.upstream_model);
        let price = config.prices.at(&target.prices, attempt.started.unix_s());
        let costs = price::cost(&metered.usage, &price.map(price_of).unwrap_or_default());
        entry
            .costs
            .extend(costs.iter().filter(|cost| cost.tokens > 0).map(class_cost));
    }

    fn caller_ids(&self) -> (&str, &str) {
        let keys = &self.config.keys;
        let key = self.caller.and_then(|caller| keys.key(caller.key));
        let team = self.caller.and_then(|caller| keys.team(caller.team));
        (
            key.map_or("", |key| &key.id),
            team.map_or("", |team| &team.id),
        )
    }

    /// The public model that was planned first.
    fn planned_model(&self) -> &str {
        let planned = self
            .admitted
            .as_ref()
            .and_then(|admitted| admitted.route.plan.first());
        let model = planned.and_then(|planned| self.config.models.get(planned.model));
        model.map_or("", |model| &model.id)
    }

    fn rule_name(&self) -> &str {
        let rule = self
            .admitted
            .as_ref()
            .and_then(|admitted| admitted.route.rule);
        rule.and_then(|rule| self.config.rules.rule(rule))
            .map_or("", |rule| &rule.name)
    }

    fn write_log(&self, end: End, settled: &mut Settled) {
        let Settled {
            record,
            log,
            sample,
        } = settled;
        let (key, team) = self.caller_ids();
        log.clear();
        log.push("request_id", &self.request_id);
        log.push("key", key);
        log.push("team", team);
        log.push("status_reason", sample.reason);
        log.push("error", self.error_code.unwrap_or_default());
        let Some(record) = record else {
            return;
        };
        log.push("model", self.planned_model());
        let last = self.attempts.last();
        let target = last.and_then(|last| forward::target_of(&self.config, last.planned));
        log.push("target", target.map_or("", |(target, _)| &target.label));
        log.push("rule", self.rule_name());
        log.push_number("attempts", record.attempts.len() as u64);
        log.push_number("input_tokens", sample.tokens.input);
        log.push_number("output_tokens", sample.tokens.output);
        log.push("end", end_word(end));
        if let Some(nusd) = total_nusd(record) {
            log.push_with("cost", |cost| push_usd(cost, nusd));
        }
    }
}

/// Tokens of every attempt; a lost one costs too.
fn count_tokens(record: &UsageRecord, sample: &mut Sample) {
    for usage in record
        .attempts
        .iter()
        .filter_map(|attempt| attempt.usage.as_ref())
    {
        sample.tokens.input += usage.input;
        sample.tokens.cached_input += usage.cached_input;
        sample.tokens.cache_write += usage.cache_write;
        sample.tokens.output += usage.output;
        sample.tokens.reasoning += usage.reasoning;
        sample.is_estimated |= usage.source == i32::from(UsageSource::Estimated);
    }
}

fn write_usage(entry: &mut wire::Usage, metered: &Metered, attempt: &Attempt) {
    entry.input = metered.usage.input;
    entry.cached_input = metered.usage.cached_input;
    entry.cache_write = metered.usage.cache_write;
    entry.input_audio = metered.usage.input_audio;
    entry.output = metered.usage.output;
    entry.reasoning = metered.usage.reasoning;
    entry.output_audio = metered.usage.output_audio;
    entry.source = metered.source.into();
    refill(&mut entry.method, metered.method);
    let tier = attempt
        .answer
        .reading()
        .and_then(|read| read.service_tier.as_deref());
    refill(&mut entry.service_tier, tier.unwrap_or_default());
}

fn price_of(price: &Price) -> price::Price {
    price::Price {
        input_pusd: price.input_pusd,
        cached_input_pusd: price.cached_input_pusd,
        cache_write_pusd: price.cache_write_pusd,
        output_pusd: price.output_pusd,
        reasoning_pusd: price.reasoning_pusd,
    }
}

fn class_cost(cost: &price::ClassCost) -> wire::ClassCost {
    let class = match cost.class {
        price::TokenClass::Input => wire::TokenClass::Input,
        price::TokenClass::CachedInput => wire::TokenClass::CachedInput,
        price::TokenClass::CacheWrite => wire::TokenClass::CacheWrite,
        price::TokenClass::Output => wire::TokenClass::Output,
        price::TokenClass::Reasoning => wire::TokenClass::Reasoning,
    };
    wire::ClassCost {
        token_class: class.into(),
        tokens: cost.tokens,
        cost_nusd: cost.cost_nusd,
    }
}

/// `None` when a class that has tokens has no price.
fn total_nusd(record: &UsageRecord) -> Option<u64> {
    let mut costs = record.attempts.iter().flat_map(|attempt| &attempt.costs);
    costs.try_fold(0_u64, |total, cost| total.checked_add(cost.cost_nusd?))
}

/// In decimal USD, to the nano-USD.
fn push_usd(text: &mut String, nusd: u64) {
    const NANO: u64 = 1_000_000_000;
    text.push_str(Decimal::new(nusd / NANO).as_str());
    // The leading digit keeps the zeros behind the point.
    let fraction = Decimal::new(NANO + nusd % NANO);
    text.push('.');
    text.push_str(fraction.as_str().strip_prefix('1').unwrap_or_default());
}

const fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::Unspecified => "",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

const fn end_word(end: End) -> &'static str {
    match end {
        End::Unspecified => "",
        End::Complete => "complete",
        End::ClientGone => "client_gone",
        End::ProviderCut => "provider_cut",
        End::ProviderFailed => "provider_failed",
        End::Shutdown => "shutdown",
        End::Crash => "crash",
    }
}
