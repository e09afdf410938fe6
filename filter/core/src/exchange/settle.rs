//! ① The end: sum the attempts, price them, and write the record, the log line and the sample.

use filter_llm::price::{self, PriceAt, Quote};
use filter_llm::reading::Finish;
use filter_llm::usage::Usage;
use proto::config::v1::{Effort, Price};
use proto::metering::v1::{self as wire, End, UsageRecord, UsageSource};

use super::{Admitted, Exchange, admission};
use crate::admit::Grip;
use crate::attempt::{Attempt, Metered};
use crate::config::Compiled;
use crate::forward;
use crate::health::Failure;
use crate::host::{Clock, Now};
use crate::limits::{Asked, Used};
use crate::text::{self, Decimal, refill};

mod charges;
mod outcome;
mod settled;
mod unsaid;

pub(crate) use charges::Charges;
pub(crate) use unsaid::{Tier, completed};

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
        // Who waits no longer has no place in the queue.
        self.pending = None;
        if self.admitted.is_none() {
            settled.record = None;
        }
        let how = self.outcome(end);
        self.note_last_health(how.end, now);
        self.write_sample(end, how, now, &mut settled.sample);
        if let Some(admitted) = &self.admitted {
            let record = settled.record.get_or_insert_default();
            self.write_record(record, admitted, now);
            record.end = how.end.into();
            record.status = end.response_code;
            count_tokens(record, &mut settled.sample);
        }
        self.settle_limits(settled);
        self.write_log(how.end, settled);
    }

    /// Those that were left before were noted then.
    fn note_last_health(&self, end: End, now: Now) {
        let Some(last) = self.attempts.last().filter(|last| last.left_us.is_none()) else {
            return;
        };
        let failure = match end {
            End::Complete => last.failure(),
            End::ProviderCut => Some(Failure::Unwell),
            End::ProviderFailed => last.failure(),
            // Who left says nothing of the provider.
            _ => return,
        };
        self.note_health(last, failure, now.mono_us);
    }

    /// Gives back what was reserved too much, and charges the rest.
    fn settle_limits(&mut self, settled: &mut Settled) {
        let Some(admitted) = &mut self.admitted else {
            return;
        };
        let (rule, text_bytes) = (admitted.route.rule, admitted.text_bytes);
        let (config, attempts) = (&self.config, &self.attempts);
        let estimates = config.settings.estimate_unknown_usage;
        let asked_tier = admitted.asked_tier.as_str();
        let used = |attempt: &Attempt, unit| {
            let metered = attempt.metered(text_bytes, estimates);
            admission::used_by(config, attempt, unit, &metered, asked_tier)
        };
        let record = settled.record.get_or_insert_default();
        let mut charges = Charges::new(&mut record.charges);
        for grip in admitted.grips.drain(..) {
            learn(&grip, attempts, &admitted.asked);
            for charged in grip.settle(config, attempts, rule, &used) {
                charges.add(&charged);
            }
        }
        charges.end();
    }

    fn write_record(&self, record: &mut UsageRecord, admitted: &Admitted, now: Now) {
        self.write_identity(record, admitted);
        record.duration_us = now.mono_us.saturating_sub(admitted.admission.at.mono_us);
        let begun = self.attempts.iter().filter(|attempt| attempt.has_begun);
        record
            .attempts
            .resize_with(begun.clone().count(), wire::Attempt::default);
        for (entry, attempt) in record.attempts.iter_mut().zip(begun) {
            self.write_attempt(entry, attempt, admitted, now);
        }
        refill(&mut record.finish, self.finish());
        refill(&mut record.error_code, self.error_code.unwrap_or_default());
    }

    /// What is known of the exchange at admission.
    pub(super) fn write_identity(&self, record: &mut UsageRecord, admitted: &Admitted) {
        record.exchange_id.clear();
        record.exchange_id.extend_from_slice(&self.id());
        refill(&mut record.request_id, &self.request_id);
        record.admitted_at_us = admitted.admission.at.unix_us;
        record.price_version = self.config.prices.version;
        self.write_caller(record.caller.get_or_insert_default(), admitted);
        self.write_decision(record.decision.get_or_insert_default(), admitted);
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
        self.write_target(entry, attempt, admitted);
        entry.first_content_us = attempt.first_content_after_us();
        entry.duration_us = attempt.since_start(attempt.left_us.unwrap_or(now.mono_us));
        entry.status = attempt.answer.status.into();
        entry.verdict = attempt.verdict().into();
        refill(&mut entry.reason, attempt.left_for);
        let estimates = self.config.settings.estimate_unknown_usage;
        let metered = attempt.metered(admitted.text_bytes, estimates);
        let price = price_at_start(&self.config, attempt);
        let (tokens, tier) = completed(&metered, attempt.tier(&admitted.asked_tier), price);
        let usage = entry.usage.get_or_insert_default();
        write_usage(usage, &metered, &tokens, tier);
        entry.costs.clear();
        entry.costs.extend(class_costs(&tokens, price, tier));
    }

    /// Which try it was, at what, and when it began.
    pub(super) fn write_target(
        &self,
        entry: &mut wire::Attempt,
        attempt: &Attempt,
        admitted: &Admitted,
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
        if let Some((target, provider)) = forward::target_of(config, planned) {
            refill(&mut entry.provider, &provider.id);
            refill(&mut entry.upstream_model, &target.upstream_model);
        }
    }

    /// The price that held when an attempt began; `None`: none is known.
    pub(super) fn price_at_start(&self, attempt: &Attempt) -> Option<&Price> {
        let (target, _) = forward::target_of(&self.config, attempt.planned)?;
        let prices = &self.config.prices;
        prices.wire_at(&target.prices, attempt.started.unix_s())
    }

    fn finish(&self) -> &'static str {
        if self.is_cut() {
            return Finish::Length.as_str();
        }
        self.attempts.last().map_or("", Attempt::finish)
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

/// Learns from what the provider of a grip's attempt reported.
fn learn(grip: &Grip, attempts: &[Attempt], asked: &Asked) {
    let attempt = attempts
        .iter()
        .find(|attempt| attempt.number == grip.attempt);
    let usage = attempt
        .filter(|attempt| attempt.is_complete())
        .and_then(Attempt::reported);
    if let (Some(stats), Some(usage)) = (&grip.stats, usage) {
        let output = usage.output.div_ceil(asked.choices.max(1));
        stats.observe(asked.text_bytes, usage.input, output);
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

/// Writes tokens by who says so, and the tier that they are priced as.
pub(crate) fn write_usage(entry: &mut wire::Usage, metered: &Metered, tokens: &Usage, tier: &str) {
    entry.input = tokens.input;
    entry.cached_input = tokens.cached_input;
    entry.cache_write = tokens.cache_write;
    entry.cache_write_1h = tokens.cache_write_1h;
    entry.input_audio = tokens.input_audio;
    entry.output = tokens.output;
    entry.reasoning = tokens.reasoning;
    entry.output_audio = tokens.output_audio;
    refill(&mut entry.service_tier, tier);
    entry.source = metered.source.into();
    refill(&mut entry.method, metered.method);
}

fn price_at_start<'a>(config: &'a Compiled, attempt: &Attempt) -> Option<PriceAt<'a>> {
    let (target, _) = forward::target_of(config, attempt.planned)?;
    config.prices.at(&target.prices, attempt.started.unix_s())
}

/// The cost of each class that has tokens, served in a tier.
pub(crate) fn class_costs(
    usage: &Usage,
    price: Option<PriceAt<'_>>,
    tier: &str,
) -> impl Iterator<Item = wire::ClassCost> + use<> {
    let costs = match price {
        Some(price) => price.cost(usage, tier),
        None => price::cost(usage, &Quote::UNKNOWN),
    };
    let used = costs.into_iter().filter(|cost| cost.tokens > 0);
    used.map(|cost| class_cost(&cost))
}

/// What an attempt used, as its record says. Classes without a price cost nothing.
pub(super) fn used_of(
    config: &Compiled,
    attempt: &Attempt,
    metered: &Metered,
    asked_tier: &str,
) -> Used {
    let price = price_at_start(config, attempt);
    let (usage, tier) = completed(metered, attempt.tier(asked_tier), price);
    let costs = class_costs(&usage, price, tier);
    let cost_nusd = costs.fold(0_u64, |sum, cost| {
        sum.saturating_add(cost.cost_nusd.unwrap_or(0))
    });
    Used { usage, cost_nusd }
}

fn class_cost(cost: &price::ClassCost) -> wire::ClassCost {
    let class = match cost.class {
        price::TokenClass::Input => wire::TokenClass::Input,
        price::TokenClass::CachedInput => wire::TokenClass::CachedInput,
        price::TokenClass::CacheWrite => wire::TokenClass::CacheWrite,
        price::TokenClass::CacheWrite1h => wire::TokenClass::CacheWrite1h,
        price::TokenClass::AudioInput => wire::TokenClass::AudioInput,
        price::TokenClass::Output => wire::TokenClass::Output,
        price::TokenClass::Reasoning => wire::TokenClass::Reasoning,
        price::TokenClass::AudioOutput => wire::TokenClass::AudioOutput,
    };
    wire::ClassCost {
        token_class: class.into(),
        tokens: cost.tokens,
        cost_nusd: cost.cost_nusd,
    }
}

/// `None` when a class that has tokens has no price.
pub(crate) fn total_nusd(record: &UsageRecord) -> Option<u64> {
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
