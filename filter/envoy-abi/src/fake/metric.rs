//! Metric calls as the fakes record them.

use crate::metrics::MetricsError;

/// Which metric call was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// `increment_counter`.
    IncrementCounter,
    /// `increment_gauge`.
    IncrementGauge,
    /// `decrement_gauge`.
    DecrementGauge,
    /// `set_gauge`.
    SetGauge,
    /// `record_histogram`.
    RecordHistogram,
}

/// One metric call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricCall {
    /// The call.
    pub kind: MetricKind,
    /// Position of the metric in [`FakeConfig::defined`](super::FakeConfig::defined), or in
    /// [`FakeBootstrap::defined`](super::FakeBootstrap::defined).
    pub metric: usize,
    /// Label values.
    pub labels: Vec<String>,
    /// By how much, or the value.
    pub value: u64,
}

/// The metric half of a fake host, over a `record` method of its own.
macro_rules! recorded_metrics {
    () => {
        fn increment_counter(
            &mut self,
            counter: $crate::metrics::CounterId,
            labels: &[&str],
            by: u64,
        ) -> Result<(), MetricsError> {
            self.record(MetricKind::IncrementCounter, counter.0, labels, by)
        }

        fn increment_gauge(
            &mut self,
            gauge: $crate::metrics::GaugeId,
            labels: &[&str],
            by: u64,
        ) -> Result<(), MetricsError> {
            self.record(MetricKind::IncrementGauge, gauge.0, labels, by)
        }

        fn decrement_gauge(
            &mut self,
            gauge: $crate::metrics::GaugeId,
            labels: &[&str],
            by: u64,
        ) -> Result<(), MetricsError> {
            self.record(MetricKind::DecrementGauge, gauge.0, labels, by)
        }

        fn set_gauge(
            &mut self,
            gauge: $crate::metrics::GaugeId,
            labels: &[&str],
            value: u64,
        ) -> Result<(), MetricsError> {
            self.record(MetricKind::SetGauge, gauge.0, labels, value)
        }

        fn record_histogram(
            &mut self,
            histogram: $crate::metrics::HistogramId,
            labels: &[&str],
            value: u64,
        ) -> Result<(), MetricsError> {
            self.record(MetricKind::RecordHistogram, histogram.0, labels, value)
        }
    };
}
pub(crate) use recorded_metrics;

/// A call with owned labels.
pub(crate) fn metric_call(
    kind: MetricKind,
    metric: usize,
    labels: &[&str],
    value: u64,
) -> MetricCall {
    MetricCall {
        kind,
        metric,
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        value,
    }
}

/// A metric as it was defined: its name and label names.
pub(crate) type Definition = (String, Vec<String>);

/// Adds a definition; its position is the metric's id.
pub(crate) fn definition(defined: &mut Vec<Definition>, name: &str, labels: &[&str]) -> usize {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    defined.push((name.to_owned(), labels));
    defined.len() - 1
}

/// The check that Envoy makes: as many label values as names.
pub(crate) fn check_labels(
    defined: &[Definition],
    metric: usize,
    labels: &[&str],
) -> Result<(), MetricsError> {
    match defined.get(metric) {
        None => Err(MetricsError::NotFound),
        Some((_, names)) if names.len() != labels.len() => Err(MetricsError::InvalidLabels),
        Some(_) => Ok(()),
    }
}
