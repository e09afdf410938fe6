//! What outlives the process says the same as settling: checked for every exchange that the shell
//! plays, at the moment before it is settled.

use proto::metering::v1::{self as wire, UsageRecord, Verdict};

use crate::crashed::{self, CrashedAttempt};
use crate::exchange::Exchange;

/// The record that a crash now would leave, with the last attempt only.
pub(super) fn crash(exchange: &Exchange) -> Option<UsageRecord> {
    let mut record = UsageRecord::default();
    let terms = exchange.write_open(&mut record)?;
    let mut attempt = wire::Attempt::default();
    let price = exchange.write_open_attempt(&mut attempt);
    let progress = exchange.progress().next_back();
    assert_eq!(price.is_some(), progress.is_some());
    let attempts = price.zip(progress).map(|(price, progress)| {
        attempt.status = progress.status.into();
        attempt.verdict = progress.verdict.into();
        attempt.reason = progress.left_for.to_owned();
        attempt.first_content_us = progress.first_content_us;
        attempt.duration_us = progress.duration_us;
        let usage = attempt.usage.get_or_insert_default();
        progress.service_tier.clone_into(&mut usage.service_tier);
        CrashedAttempt {
            attempt,
            is_sent: progress.is_sent,
            visible_bytes: progress.visible_bytes,
            reasoning_bytes: progress.reasoning_bytes,
            reported: progress.reported,
            price: price.cloned(),
        }
    });
    crashed::settle(&mut record, &terms, attempts.into_iter().collect());
    Some(record)
}

/// Panics unless a crash would have recorded what was settled, as far as it could be known.
pub(super) fn assert_agree(crashed: &UsageRecord, settled: &UsageRecord) {
    assert_eq!(crashed.exchange_id, settled.exchange_id);
    assert_eq!(crashed.request_id, settled.request_id);
    assert_eq!(crashed.admitted_at_us, settled.admitted_at_us);
    assert_eq!(crashed.caller, settled.caller);
    assert_eq!(crashed.decision, settled.decision);
    assert_eq!(crashed.price_version, settled.price_version);
    let Some(mut crashed) = crashed.attempts.last().cloned() else {
        return assert!(settled.attempts.is_empty());
    };
    let mut settled = settled.attempts.last().cloned().unwrap();
    // Only Envoy knows whether there was a connection, and says so at the end.
    let is_unconnected = settled.verdict() == Verdict::NotBilled && settled.status == 0;
    if is_unconnected && crashed.verdict() == Verdict::Unknown {
        settled.verdict = crashed.verdict;
        settled.usage.clone_from(&crashed.usage);
        settled.costs.clone_from(&crashed.costs);
    }
    if crashed.duration_us == 0 {
        crashed.duration_us = settled.duration_us;
    }
    assert_eq!(crashed, settled);
}
