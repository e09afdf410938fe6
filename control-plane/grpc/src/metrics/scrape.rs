//! What is read when Prometheus asks.

use control_plane_store::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Metric;

use crate::feed::Feed;
use crate::fleet::Fleet;

/// Where it is read.
#[derive(Debug)]
pub(super) struct Scrape {
    pub(super) store: Store,
    pub(super) fleet: Fleet,
    pub(super) feed: Feed,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut out = Out(encoder);
        let nodes = self.fleet.connected_here();
        out.gauge(
            "connected_nodes",
            "Nodes whose config stream is here",
            nodes,
        )?;
        let version = self.feed.current().version();
        out.gauge("config_version", "Newest config version in memory", version)?;
        self.connections(&mut out)?;
        self.intake(&mut out)
    }
}

impl Scrape {
    fn connections(&self, out: &mut Out<'_>) -> Result<(), std::fmt::Error> {
        let pool = self.store.connections();
        let states = [("in_use", pool.in_use), ("idle", pool.idle)];
        let states = states.map(|(state, number)| (state, ConstGauge::new(number)));
        let help = "Connections to Postgres that are open";
        out.family("postgres_connections", help, "state", &states)?;
        let help = "Connections to Postgres that may be open at a time";
        out.gauge("postgres_connections_limit", help, pool.limit)
    }

    fn intake(&self, out: &mut Out<'_>) -> Result<(), std::fmt::Error> {
        let intake = self.store.intake();
        let records = [
            ("stored", ConstCounter::new(intake.records)),
            ("duplicate", ConstCounter::new(intake.duplicate_records)),
        ];
        let help = "Usage records that arrived; duplicates were stored before and are dropped";
        out.family("usage_records", help, "outcome", &records)?;
        let batches = [
            ("stored", ConstCounter::new(intake.batches)),
            ("duplicate", ConstCounter::new(intake.duplicate_batches)),
            ("early", ConstCounter::new(intake.early_batches)),
        ];
        let help = "Batches of usage records and gaps that arrived; early ones leave a hole and are \
                    asked for again";
        out.family("usage_batches", help, "outcome", &batches)
    }
}

struct Out<'a>(DescriptorEncoder<'a>);

impl Out<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: u64) -> Result<(), std::fmt::Error> {
        let gauge = ConstGauge::new(value);
        let encoder = self
            .0
            .encode_descriptor(name, help, None, gauge.metric_type())?;
        gauge.encode(encoder)
    }

    fn family<M: Metric>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&str, M)],
    ) -> Result<(), std::fmt::Error> {
        let Some((_, first)) = values.first() else {
            return Ok(());
        };
        let mut family = self
            .0
            .encode_descriptor(name, help, None, first.metric_type())?;
        for (value, metric) in values {
            metric.encode(family.encode_family(&[(label, *value)])?)?;
        }
        Ok(())
    }
}
