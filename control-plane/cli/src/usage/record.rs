//! One usage record: an exchange and its attempts, as the node sent it.

use std::collections::BTreeMap;

use anyhow::Context;
use prost::Message;
use proto::admin::v1::StoredUsageRecord;
use proto::metering::v1 as pb;
use serde::Serialize;

use super::hex;
use crate::moment::Moment;
use crate::money::usd;
use crate::table::{Column, Table};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    request_id: String,
    exchange_id: String,
    admit_time: Option<Moment>,
    duration_us: u64,
    end: &'static str,
    status: u32,
    finish: String,
    error_code: String,
    key: String,
    team: String,
    end_user: String,
    decision: Decision,
    attempts: Vec<Attempt>,
    price_version: u64,
    /// Sum over what has a price.
    cost_nusd: u64,
    cost_usd: String,
    /// False: some class of some attempt has no known price.
    priced: bool,
    node: String,
    boot_id: String,
    shard: u32,
    seq: u64,
    receive_time: Option<Moment>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    client_api: String,
    model_asked: String,
    model: String,
    rule: String,
    effort: String,
    attributes: BTreeMap<String, String>,
    action_id: String,
    config_version: u64,
    stream: bool,
    request_bytes: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    number: u32,
    provider: String,
    upstream_model: String,
    model: String,
    credential: String,
    started_us: u64,
    first_content_us: u64,
    duration_us: u64,
    status: u32,
    verdict: &'static str,
    reason: String,
    usage: Usage,
    costs: Vec<Cost>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    source: &'static str,
    method: String,
    input: u64,
    cached_input: u64,
    cache_write: u64,
    cache_write_1h: u64,
    input_audio: u64,
    output: u64,
    reasoning: u64,
    output_audio: u64,
    service_tier: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cost {
    class: &'static str,
    tokens: u64,
    /// Null: the price is unknown.
    cost_nusd: Option<u64>,
}

// === impl Record ===

impl Record {
    pub(crate) fn decode(stored: &StoredUsageRecord) -> anyhow::Result<Self> {
        let record = pb::UsageRecord::decode(stored.record.as_slice()).with_context(|| {
            format!(
                "decode usage record {} of shard {} of boot {}",
                stored.seq,
                stored.shard,
                hex(&stored.boot_id)
            )
        })?;
        let end = end_word(record.end());
        let caller = record.caller.unwrap_or_default();
        let attempts: Vec<Attempt> = record.attempts.into_iter().map(Attempt::from).collect();
        let costs = || attempts.iter().flat_map(|attempt| &attempt.costs);
        let cost_nusd = costs()
            .filter_map(|cost| cost.cost_nusd)
            .fold(0, u64::saturating_add);
        Ok(Self {
            request_id: record.request_id,
            exchange_id: hex(&record.exchange_id),
            admit_time: Moment::from_unix_us(record.admitted_at_us),
            duration_us: record.duration_us,
            end,
            status: record.status,
            finish: record.finish,
            error_code: record.error_code,
            key: caller.key,
            team: caller.team,
            end_user: caller.end_user,
            decision: record.decision.unwrap_or_default().into(),
            price_version: record.price_version,
            cost_nusd,
            cost_usd: usd(cost_nusd),
            priced: costs().all(|cost| cost.cost_nusd.is_some()),
            attempts,
            node: stored.node.clone(),
            boot_id: hex(&stored.boot_id),
            shard: stored.shard,
            seq: stored.seq,
            receive_time: Moment::from_wire(stored.receive_time.as_ref()),
        })
    }

    fn row(&self) -> Vec<String> {
        let sum = |tokens: fn(&Usage) -> u64| {
            let tokens = self.attempts.iter().map(|attempt| tokens(&attempt.usage));
            tokens.fold(0, u64::saturating_add).to_string()
        };
        let targets: Vec<String> = self.attempts.iter().map(Attempt::target).collect();
        let estimated = self
            .attempts
            .iter()
            .any(|attempt| attempt.usage.source == "estimated");
        vec![
            self.admit_time
                .map(|time| time.to_string())
                .unwrap_or_default(),
            self.request_id.clone(),
            self.team.clone(),
            self.key.clone(),
            self.decision.model.clone(),
            targets.join(" "),
            self.status.to_string(),
            self.end.to_owned(),
            sum(|usage| usage.input),
            sum(|usage| usage.output),
            if estimated {
                "yes".to_owned()
            } else {
                String::new()
            },
            if self.priced {
                self.cost_usd.clone()
            } else {
                format!("{}+?", self.cost_usd)
            },
        ]
    }
}

/// A line a record; tokens and money are sums over its attempts.
pub(crate) fn table(records: &[Record]) -> Table {
    let mut table = Table::new(&[
        Column::text("TIME"),
        Column::text("REQUEST ID"),
        Column::text("TEAM"),
        Column::text("KEY"),
        Column::text("MODEL"),
        Column::text("ATTEMPTS"),
        Column::number("STATUS"),
        Column::text("END"),
        Column::number("INPUT"),
        Column::number("OUTPUT"),
        Column::text("ESTIMATED"),
        Column::number("COST USD"),
    ]);
    for record in records {
        table.push(record.row());
    }
    table
}

// === impl Decision ===

impl From<pb::Decision> for Decision {
    fn from(decision: pb::Decision) -> Self {
        Self {
            client_api: decision.client_api,
            model_asked: decision.model_asked,
            model: decision.model,
            rule: decision.rule,
            effort: decision.effort,
            attributes: decision.attributes.into_iter().collect(),
            action_id: decision.action_id,
            config_version: decision.config_version,
            stream: decision.stream,
            request_bytes: decision.request_bytes,
        }
    }
}

// === impl Attempt ===

impl Attempt {
    fn target(&self) -> String {
        match self.upstream_model.as_str() {
            "" => self.provider.clone(),
            model => format!("{}:{model}", self.provider),
        }
    }
}

impl From<pb::Attempt> for Attempt {
    fn from(attempt: pb::Attempt) -> Self {
        Self {
            verdict: verdict_word(attempt.verdict()),
            number: attempt.number,
            provider: attempt.provider,
            upstream_model: attempt.upstream_model,
            model: attempt.model,
            credential: attempt.credential,
            started_us: attempt.started_us,
            first_content_us: attempt.first_content_us,
            duration_us: attempt.duration_us,
            status: attempt.status,
            reason: attempt.reason,
            usage: attempt.usage.unwrap_or_default().into(),
            costs: attempt.costs.iter().map(Cost::from).collect(),
        }
    }
}

// === impl Usage ===

impl From<pb::Usage> for Usage {
    fn from(usage: pb::Usage) -> Self {
        Self {
            source: source_word(usage.source()),
            method: usage.method,
            input: usage.input,
            cached_input: usage.cached_input,
            cache_write: usage.cache_write,
            cache_write_1h: usage.cache_write_1h,
            input_audio: usage.input_audio,
            output: usage.output,
            reasoning: usage.reasoning,
            output_audio: usage.output_audio,
            service_tier: usage.service_tier,
        }
    }
}

// === impl Cost ===

impl From<&pb::ClassCost> for Cost {
    fn from(cost: &pb::ClassCost) -> Self {
        Self {
            class: class_word(cost.token_class()),
            tokens: cost.tokens,
            cost_nusd: cost.cost_nusd,
        }
    }
}

fn end_word(end: pb::End) -> &'static str {
    match end {
        pb::End::Unspecified => "unknown",
        pb::End::Complete => "complete",
        pb::End::ClientGone => "client-gone",
        pb::End::ProviderCut => "provider-cut",
        pb::End::ProviderFailed => "provider-failed",
        pb::End::Shutdown => "shutdown",
        pb::End::Crash => "crash",
    }
}

fn verdict_word(verdict: pb::Verdict) -> &'static str {
    match verdict {
        pb::Verdict::NotBilled => "not-billed",
        pb::Verdict::Billed => "billed",
        pb::Verdict::Unspecified | pb::Verdict::Unknown => "unknown",
    }
}

fn source_word(source: pb::UsageSource) -> &'static str {
    match source {
        pb::UsageSource::Reported => "reported",
        pb::UsageSource::Estimated => "estimated",
        pb::UsageSource::Unspecified | pb::UsageSource::None => "none",
    }
}

fn class_word(class: pb::TokenClass) -> &'static str {
    match class {
        pb::TokenClass::Unspecified => "unknown",
        pb::TokenClass::Input => "input",
        pb::TokenClass::CachedInput => "cached-input",
        pb::TokenClass::CacheWrite => "cache-write",
        pb::TokenClass::Output => "output",
        pb::TokenClass::Reasoning => "reasoning",
        pb::TokenClass::AudioInput => "audio-input",
        pb::TokenClass::AudioOutput => "audio-output",
        pb::TokenClass::CacheWrite1h => "cache-write-1h",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> StoredUsageRecord {
        let attempt = |number, provider: &str, cost_nusd| pb::Attempt {
            number,
            provider: provider.into(),
            upstream_model: "m:8b".into(),
            verdict: pb::Verdict::Billed.into(),
            usage: Some(pb::Usage {
                input: 10,
                output: 5,
                source: pb::UsageSource::Estimated.into(),
                ..Default::default()
            }),
            costs: vec![pb::ClassCost {
                token_class: pb::TokenClass::Input.into(),
                tokens: 10,
                cost_nusd,
            }],
            ..Default::default()
        };
        let record = pb::UsageRecord {
            exchange_id: vec![0xab; 16],
            request_id: "r-1".into(),
            admitted_at_us: 1_796_083_200_250_000,
            end: pb::End::ClientGone.into(),
            status: 200,
            attempts: vec![attempt(1, "a", Some(1500)), attempt(2, "b", None)],
            ..Default::default()
        };
        StoredUsageRecord {
            boot_id: vec![1, 255],
            shard: 2,
            seq: 9,
            record: record.encode_to_vec(),
            ..Default::default()
        }
    }

    #[test]
    fn a_record_sums_its_attempts_and_shows_an_unknown_price() {
        let record = Record::decode(&stored()).unwrap();
        let text = table(&[record]).render();
        let line: Vec<&str> = text.lines().nth(1).unwrap().split("  ").collect();
        let cells: Vec<&str> = line
            .into_iter()
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect();
        assert_eq!(
            cells,
            [
                "2026-12-01 00:00:00Z",
                "r-1",
                "-",
                "-",
                "-",
                "a:m:8b b:m:8b",
                "200",
                "client-gone",
                "20",
                "10",
                "yes",
                "0.0000015+?"
            ]
        );
    }

    #[test]
    fn json_keeps_every_attempt_and_null_for_an_unknown_price() {
        let json = serde_json::to_value(Record::decode(&stored()).unwrap()).unwrap();
        assert_eq!(json["exchangeId"], "ab".repeat(16));
        assert_eq!(json["admitTime"], "2026-12-01T00:00:00.25Z");
        assert_eq!(json["bootId"], "01ff");
        assert_eq!(json["priced"], false);
        assert_eq!(json["attempts"][0]["costs"][0]["costNusd"], 1500);
        assert_eq!(
            json["attempts"][1]["costs"][0]["costNusd"],
            serde_json::Value::Null
        );
        assert_eq!(json["attempts"][1]["usage"]["source"], "estimated");
    }

    #[test]
    fn bytes_that_are_no_record_are_named() {
        let broken = StoredUsageRecord {
            record: vec![0xff],
            ..stored()
        };
        let error = format!("{:#}", Record::decode(&broken).unwrap_err());
        assert!(
            error.contains("usage record 9 of shard 2 of boot 01ff"),
            "{error}"
        );
    }
}
