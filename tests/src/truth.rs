//! What the test provider says it served: the truth that the ledger is compared with.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// One attempt that reached the provider.
#[derive(Clone, Debug)]
pub struct Served {
    pub request_id: String,
    /// `complete`, or how it was cut.
    pub ended: String,
    pub status: u64,
    /// What the provider drew for this attempt.
    pub tokens: Tokens,
    /// True when the provider told its tokens to the end.
    pub usage_sent: bool,
    /// The whole entry.
    pub entry: Value,
}

/// Tokens in OpenAI's inclusive sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
    pub cached_input: u64,
    pub output: u64,
    pub reasoning: u64,
}

/// Everything the provider on this port has served so far.
pub fn served(provider_port: u16) -> Result<Vec<Served>> {
    let answer = crate::http::Request::new("GET", "/_served").send(provider_port)?;
    ensure!(
        answer.status == 200,
        "the provider answered {}",
        answer.status
    );
    answer
        .text()
        .lines()
        .filter(|line| !line.is_empty())
        .map(parse)
        .collect()
}

fn parse(line: &str) -> Result<Served> {
    let entry: Value = serde_json::from_str(line).context("a line of /_served")?;
    let text = |name: &str| {
        entry
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let tokens = entry.get("tokens").cloned().unwrap_or_default();
    let count = |name: &str| tokens.get(name).and_then(Value::as_u64).unwrap_or_default();
    Ok(Served {
        request_id: text("request_id"),
        ended: text("ended"),
        status: entry
            .get("status")
            .and_then(Value::as_u64)
            .unwrap_or_default(),
        tokens: Tokens {
            input: count("prompt"),
            cached_input: count("cached"),
            output: count("completion"),
            reasoning: count("reasoning"),
        },
        usage_sent: entry.get("usage_sent").is_some_and(|sent| !sent.is_null()),
        entry,
    })
}
