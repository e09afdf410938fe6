//! What outlives the process says the same as settling: checked for every exchange that the shell
//! plays, at the moment before it is settled.

use proto::config::v1::LimitUnit;
use proto::metering::v1::{self as wire, Charge, UsageRecord, Verdict};

use crate::crashed::{self, CrashedAttempt};
use crate::exchange::{Exchange, OpenTerms};

/// What is in an exchange's slot.
pub(super) struct Opened {
    record: UsageRecord,
    text_bytes: u64,
    estimates: bool,
    units: Vec<LimitUnit>,
    attempts: Vec<CrashedAttempt>,
}

impl Opened {
    /// The exchange was admitted.
    pub(super) fn admit(exchange: &Exchange) -> Option<Self> {
        let mut record = UsageRecord::default();
        let terms = exchange.write_open(&mut record)?;
        Some(Self {
            text_bytes: terms.text_bytes,
            estimates: terms.estimates,
            units: terms.units.to_vec(),
            attempts: Vec::new(),
            record,
        })
    }

    /// An attempt has begun.
    pub(super) fn begin(&mut self, exchange: &Exchange) {
        let mut attempt = wire::Attempt::default();
        let terms = exchange
            .write_open_attempt(&mut attempt)
            .expect("one has begun");
        self.attempts.push(CrashedAttempt {
            attempt,
            price: terms.price.cloned(),
            asked_tier: terms.asked_tier.to_owned(),
            most: terms.most,
            charges: terms.charges,
            ..CrashedAttempt::default()
        });
    }

    /// The record that a crash now would leave.
    pub(super) fn crash(mut self, exchange: &Exchange) -> UsageRecord {
        assert_eq!(exchange.progress().count(), self.attempts.len());
        for (noted, progress) in self.attempts.iter_mut().zip(exchange.progress()) {
            let attempt = &mut noted.attempt;
            assert_eq!(attempt.number, progress.number);
            attempt.status = progress.status.into();
            attempt.verdict = progress.verdict.into();
            attempt.reason = progress.left_for.to_owned();
            attempt.first_content_us = progress.first_content_us;
            attempt.duration_us = progress.duration_us;
            let usage = attempt.usage.get_or_insert_default();
            progress.service_tier.clone_into(&mut usage.service_tier);
            noted.is_sent = progress.is_sent;
            noted.visible_bytes = progress.visible_bytes;
            noted.reasoning_bytes = progress.reasoning_bytes;
            noted.reported = progress.reported;
            noted.is_output_early = progress.is_output_early;
        }
        let terms = OpenTerms {
            text_bytes: self.text_bytes,
            estimates: self.estimates,
            units: &self.units,
        };
        crashed::settle(&mut self.record, &terms, self.attempts);
        self.record
    }
}

/// Panics unless a crash would have recorded what was settled, as far as it could be known.
pub(super) fn assert_agree(crashed: &UsageRecord, settled: &UsageRecord) {
    assert_eq!(crashed.exchange_id, settled.exchange_id);
    assert_eq!(crashed.request_id, settled.request_id);
    assert_eq!(crashed.admitted_at_us, settled.admitted_at_us);
    assert_eq!(crashed.caller, settled.caller);
    assert_eq!(crashed.decision, settled.decision);
    assert_eq!(crashed.price_version, settled.price_version);
    assert_eq!(crashed.attempts.len(), settled.attempts.len());
    let mut is_more = false;
    for (crashed, settled) in crashed.attempts.iter().zip(&settled.attempts) {
        let (mut crashed, mut settled) = (crashed.clone(), settled.clone());
        // Only Envoy knows whether there was a connection, and says so at the end.
        let is_unconnected = settled.verdict() == Verdict::NotBilled && settled.status == 0;
        if is_unconnected && crashed.verdict() == Verdict::Unknown {
            is_more = true;
            settled.verdict = crashed.verdict;
            settled.usage.clone_from(&crashed.usage);
            settled.costs.clone_from(&crashed.costs);
        }
        if crashed.duration_us == 0 {
            crashed.duration_us = settled.duration_us;
        }
        assert_eq!(crashed, settled);
    }
    if !is_more {
        assert_eq!(charges(crashed), charges(settled));
    }
}

/// What was charged, by bucket. What was reserved for it is partly given back by settling.
fn charges(record: &UsageRecord) -> Vec<Charge> {
    let charges = record.charges.iter().filter(|charge| charge.settled > 0);
    let mut charges: Vec<Charge> = charges
        .map(|charge| Charge {
            reserved: 0,
            ..charge.clone()
        })
        .collect();
    charges.sort_by(|a, b| (&a.limit, &a.subject).cmp(&(&b.limit, &b.subject)));
    charges
}
