//! The host of a filter configuration.

use crate::fake::metric::definition;
use crate::http::HttpConfigHost;
use crate::metrics::{CounterId, GaugeId, HistogramId, MetricsError};

/// Records the metrics that a filter configuration defines.
#[derive(Clone, Debug, Default)]
pub struct FakeConfig {
    /// Names and label names, in the order of definition.
    pub defined: Vec<(String, Vec<String>)>,
    /// What `validation_mode` answers.
    pub validation_mode: bool,
    /// What `concurrency` answers.
    pub concurrency: u32,
}

impl HttpConfigHost for FakeConfig {
    fn define_counter(&mut self, name: &str, labels: &[&str]) -> Result<CounterId, MetricsError> {
        Ok(CounterId(definition(&mut self.defined, name, labels)))
    }

    fn define_gauge(&mut self, name: &str, labels: &[&str]) -> Result<GaugeId, MetricsError> {
        Ok(GaugeId(definition(&mut self.defined, name, labels)))
    }

    fn define_histogram(
        &mut self,
        name: &str,
        labels: &[&str],
    ) -> Result<HistogramId, MetricsError> {
        Ok(HistogramId(definition(&mut self.defined, name, labels)))
    }

    fn validation_mode(&self) -> bool {
        self.validation_mode
    }

    fn concurrency(&self) -> u32 {
        self.concurrency
    }
}
