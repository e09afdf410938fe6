//! Hosts without an Envoy: script what a module sees, then look at what it did.
//!
//! Filters run in the same cells as under Envoy, so a fake stream poisons, queues and answers
//! panics alike. [`Exchange`] drives both filters of a stream in the order that Envoy was seen
//! to use; [`FakeBootstrap`], [`FakeSpecifier`] and [`FakeConfig`] are for direct calls.

mod bootstrap;
mod config;
mod exchange;
mod flow;
mod half;
mod host;
mod metric;
mod specifier;
#[cfg(test)]
mod tests;

pub use bootstrap::FakeBootstrap;
pub use config::FakeConfig;
pub use exchange::{Client, Exchange};
pub use flow::Flow;
pub use host::{Call, FakeHost, MetadataValue};
pub use metric::{MetricCall, MetricKind};
pub use specifier::FakeSpecifier;
