//! What an Envoy counts, by its admin port.

use anyhow::Result;

use crate::http::Request;

/// The value of a metric of ours: the sum over its series whose labels hold every one of `labels`,
/// each as `name="value"`.
pub fn metric(admin_port: u16, name: &str, labels: &[&str]) -> Result<u64> {
    let answer = Request::new("GET", "/stats/prometheus").send(admin_port)?;
    let text = answer.text();
    let series = text.lines().filter(|line| {
        let metric = line.split(['{', ' ']).next().unwrap_or_default();
        metric.ends_with(name) && labels.iter().all(|label| line.contains(label))
    });
    let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    Ok(values.sum())
}
