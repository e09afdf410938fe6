//! Metrics, counted by the workers in Rust and given to Envoy's stats once a second.
//!
//! Names follow OpenTelemetry's GenAI conventions where one exists; Envoy writes dots as
//! underscores in Prometheus' format. Labels are bounded: names from the config and words of ours.

use std::collections::BTreeMap;

use filter_core::exchange::Sample;
use filter_envoy_abi::{BootstrapHost, CounterId, GaugeId, HistogramId, MetricsError};

use crate::{
    credit::{self, LeaseCounts, WantCounts},
    log, worker,
};

/// Histogram values that one worker keeps between two flushes; more are counted as dropped.
const VALUES_MAX: usize = 8_192;

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequestLabels {
    api: &'static str,
    model: String,
    provider: String,
    status: u32,
    reason: &'static str,
}

/// The labels of tokens and times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ModelLabels {
    model: String,
    provider: String,
}

#[derive(Debug, Default)]
struct ModelCounts {
    tokens: [u64; TOKEN_TYPES.len()],
    first_content_ms: Vec<u64>,
    duration_ms: Vec<u64>,
}

/// `gen_ai.token.type` of each count, in the order of [`tokens`]. The first and the last but one
/// are inclusive.
const TOKEN_TYPES: [&str; 5] = [
    "input",
    "cached_input",
    "cache_write",
    "output",
    "reasoning",
];

fn tokens(sample: &Sample) -> [u64; TOKEN_TYPES.len()] {
    let tokens = &sample.tokens;
    [
        tokens.input,
        tokens.cached_input,
        tokens.cache_write,
        tokens.output,
        tokens.reasoning,
    ]
}

/// What one worker counted since the last flush.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    requests: BTreeMap<RequestLabels, u64>,
    models: BTreeMap<ModelLabels, ModelCounts>,
    limit_refusals: BTreeMap<&'static str, u64>,
    /// Waits at a limit's edge that are over, by what came of them.
    limit_waits: BTreeMap<&'static str, u64>,
    limit_wait_ms: Vec<u64>,
    /// Usage records that the disk refused.
    pub(crate) lost_records: u64,
    dropped_values: u64,
}

impl Counts {
    /// Adds a wait at a limit's edge.
    pub(crate) fn add_wait(&mut self, outcome: &'static str, waited_us: u64) {
        *self.limit_waits.entry(outcome).or_default() += 1;
        if self.limit_wait_ms.len() < VALUES_MAX {
            self.limit_wait_ms.push(waited_us / 1_000);
        } else {
            self.dropped_values += 1;
        }
    }

    /// Adds one exchange.
    pub(crate) fn add(&mut self, sample: &Sample) {
        let labels = RequestLabels {
            api: sample.client_api,
            model: sample.model.clone(),
            provider: sample.provider.clone(),
            status: sample.status,
            reason: sample.reason,
        };
        *self.requests.entry(labels).or_default() += 1;
        if !sample.limit_refusal.is_empty() {
            *self.limit_refusals.entry(sample.limit_refusal).or_default() += 1;
        }
        if sample.provider.is_empty() {
            return;
        }
        let labels = ModelLabels {
            model: sample.model.clone(),
            provider: sample.provider.clone(),
        };
        let counts = self.models.entry(labels).or_default();
        for (count, more) in counts.tokens.iter_mut().zip(tokens(sample)) {
            *count += more;
        }
        if counts.duration_ms.len() >= VALUES_MAX {
            self.dropped_values += 1;
            return;
        }
        counts.duration_ms.push(sample.duration_us / 1_000);
        counts
            .first_content_ms
            .extend(sample.first_content_us.map(|us| us / 1_000));
    }
}

/// The metrics, as Envoy knows them.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: CounterId,
    tokens: CounterId,
    time_to_first_token: HistogramId,
    duration: HistogramId,
    open: GaugeId,
    lost_records: CounterId,
    dropped_values: CounterId,
    open_table_full: CounterId,
    lease_connected: GaugeId,
    lease_wants: CounterId,
    limit_refusals: CounterId,
    limit_waits: CounterId,
    limit_wait: HistogramId,
}

impl Metrics {
    /// Only while the extension is created.
    pub(crate) fn define(host: &mut dyn BootstrapHost) -> Result<Self, MetricsError> {
        let model = ["gen_ai.request.model", "gen_ai.provider.name"];
        let [request_model, provider] = model;
        Ok(Self {
            requests: host.define_counter(
                "requests_total",
                &["api", request_model, provider, "status", "reason"],
            )?,
            tokens: host.define_counter(
                "gen_ai.client.token.usage_total",
                &[request_model, provider, "gen_ai.token.type"],
            )?,
            time_to_first_token: host
                .define_histogram("gen_ai.server.time_to_first_token_ms", &model)?,
            duration: host.define_histogram("gen_ai.server.request.duration_ms", &model)?,
            open: host.define_gauge("open_exchanges", &[])?,
            lost_records: host.define_counter("lost_usage_records_total", &[])?,
            dropped_values: host.define_counter("dropped_histogram_values_total", &[])?,
            open_table_full: host.define_counter("open_table_full_total", &[])?,
            lease_connected: host.define_gauge("lease_connected", &[])?,
            lease_wants: host.define_counter("lease_wants_total", &["urgency"])?,
            limit_refusals: host.define_counter("limit_refusals_total", &["kind"])?,
            limit_waits: host.define_counter("limit_waits_total", &["outcome"])?,
            limit_wait: host.define_histogram("limit_wait_ms", &[])?,
        })
    }

    /// Gives Envoy what every worker counted since the last time.
    pub(crate) fn flush(&self, host: &mut dyn BootstrapHost) {
        let mut outcome = Ok(());
        for worker in worker::all() {
            let counts = worker
                .counts
                .lock()
                .map(|mut counts| std::mem::take(&mut *counts));
            if let Ok(counts) = counts {
                outcome = outcome.and(self.give(host, &counts));
            }
            let full = worker
                .supply
                .as_ref()
                .map_or(0, |supply| supply.take_full());
            if full > 0 {
                outcome = outcome.and(host.increment_counter(self.open_table_full, &[], full));
            }
        }
        outcome = outcome.and(host.set_gauge(self.open, &[], worker::open_exchanges()));
        outcome = outcome.and(self.give_leases(host, &credit::LEASES));
        if let Err(error) = outcome {
            log::error(&format!("metrics: {error}"));
        }
    }

    fn give_leases(
        &self,
        host: &mut dyn BootstrapHost,
        leases: &LeaseCounts,
    ) -> Result<(), MetricsError> {
        let WantCounts { urgent, other } = leases.take_wants();
        for (urgency, count) in [("urgent", urgent), ("ahead", other)] {
            if count > 0 {
                host.increment_counter(self.lease_wants, &[urgency], count)?;
            }
        }
        host.set_gauge(self.lease_connected, &[], leases.is_connected().into())
    }

    fn give(&self, host: &mut dyn BootstrapHost, counts: &Counts) -> Result<(), MetricsError> {
        for (labels, count) in &counts.requests {
            let status = labels.status.to_string();
            let values = [
                labels.api,
                &labels.model,
                &labels.provider,
                status.as_str(),
                labels.reason,
            ];
            host.increment_counter(self.requests, &values, *count)?;
        }
        for (labels, counts) in &counts.models {
            let model = [labels.model.as_str(), labels.provider.as_str()];
            for (kind, count) in TOKEN_TYPES.into_iter().zip(counts.tokens) {
                if count > 0 {
                    let values = [labels.model.as_str(), labels.provider.as_str(), kind];
                    host.increment_counter(self.tokens, &values, count)?;
                }
            }
            for value in &counts.first_content_ms {
                host.record_histogram(self.time_to_first_token, &model, *value)?;
            }
            for value in &counts.duration_ms {
                host.record_histogram(self.duration, &model, *value)?;
            }
        }
        for (kind, count) in &counts.limit_refusals {
            host.increment_counter(self.limit_refusals, &[kind], *count)?;
        }
        for (outcome, count) in &counts.limit_waits {
            host.increment_counter(self.limit_waits, &[outcome], *count)?;
        }
        for value in &counts.limit_wait_ms {
            host.record_histogram(self.limit_wait, &[], *value)?;
        }
        for (counter, count) in [
            (self.lost_records, counts.lost_records),
            (self.dropped_values, counts.dropped_values),
        ] {
            if count > 0 {
                host.increment_counter(counter, &[], count)?;
            }
        }
        Ok(())
    }
}
