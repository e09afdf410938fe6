//! What a dead process left in a table.

use filter_core::{
    crashed::{self, CrashedAttempt},
    exchange::OpenTerms,
};
use proto::metering::v1::{Usage, UsageRecord};

use super::{
    body::{AttemptBody, ExchangeBody, read_attempt, read_exchange},
    layout::{
        ATTEMPT_BODY, CLIENT_STATUS, DURATION_US, EXCHANGE_BODY, FIRST_CONTENT_US, FLAGS, LEFT_FOR,
        MORE, NOTED_TEXT_BYTES, Owner, REASONING_BYTES, SERVICE_TIER, SLOT_WORDS, Seal,
        USAGE_PLACE, USAGE_WORDS, USAGES, VISIBLE_BYTES, WORD_BYTES, checksum, load_bytes, owner,
    },
    slot::{Flags, usage_of},
};
use crate::spool::BootId;

/// What was found in a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The exchanges that were open, settled as a crash, in the order of their admission.
    pub records: Vec<UsageRecord>,
    /// Slots that are taken and make no sense. Only a power failure leaves them.
    pub damaged: usize,
}

/// A table that this build must not judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("table of open exchanges has format {0}, which this build does not know")]
pub struct NotATable(pub u32);

/// Reads the whole bytes of a table that a dead process left. One of another boot or shard, or that
/// was never finished, has nothing open.
///
/// # Errors
/// If a later build wrote it.
pub fn find(bytes: &[u8], boot: BootId, shard: u32) -> Result<Found, NotATable> {
    let words = bytes.as_chunks::<WORD_BYTES>().0;
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let mut found = Found::default();
    match owner(&words, boot, shard) {
        Owner::Is { .. } => {}
        Owner::Unknown => return Ok(found),
        Owner::Newer(format) => return Err(NotATable(format)),
    }
    for slot in words.chunks_exact(SLOT_WORDS).skip(1) {
        let Some(seal) = slot.first().copied().filter(|seal| *seal != 0) else {
            continue;
        };
        match Seal::from_word(seal).and_then(|seal| settle(slot, seal)) {
            Some(record) => found.records.push(record),
            None => found.damaged += 1,
        }
    }
    found.records.sort_by_key(|record| record.admitted_at_us);
    Ok(found)
}

/// `None` if the slot is damaged.
fn settle(slot: &[u64], seal: Seal) -> Option<UsageRecord> {
    let body = load_bytes(slot, EXCHANGE_BODY, seal.bytes)?;
    if !seal.is_of(&body, 0) {
        return None;
    }
    let ExchangeBody {
        mut record,
        text_bytes,
        estimates,
        units,
    } = read_exchange(&body)?;
    let salt = checksum(0, &record.exchange_id);
    let attempts_at = EXCHANGE_BODY + body.len().div_ceil(WORD_BYTES);
    let attempts = attempts(slot.get(attempts_at..)?, salt);
    record.status = u32::try_from(*slot.get(CLIENT_STATUS)?).unwrap_or(0);
    let terms = OpenTerms {
        text_bytes,
        estimates,
        units: &units,
    };
    crashed::settle(&mut record, &terms, attempts);
    Some(record)
}

/// Attempts up to the first seal that does not hold.
fn attempts(mut words: &[u64], salt: u32) -> Vec<CrashedAttempt> {
    let mut attempts = Vec::new();
    while let Some(seal) = words.first().and_then(|word| Seal::from_word(*word)) {
        let Some(body) = load_bytes(words, ATTEMPT_BODY, seal.bytes) else {
            break;
        };
        let attempt = seal.is_of(&body, salt).then(|| attempt(words, &body));
        let Some(attempt) = attempt.flatten() else {
            break;
        };
        attempts.push(attempt);
        let length = ATTEMPT_BODY + body.len().div_ceil(WORD_BYTES);
        words = words.get(length..).unwrap_or_default();
    }
    attempts
}

fn attempt(words: &[u64], body: &[u8]) -> Option<CrashedAttempt> {
    let AttemptBody {
        mut attempt,
        price,
        asked_tier,
        most,
        charges,
    } = read_attempt(body)?;
    let word = |at: usize| words.get(at).copied();
    let flags = Flags::from_word(word(FLAGS)?);
    attempt.status = flags.status.into();
    attempt.verdict = flags.verdict.into();
    attempt.first_content_us = word(FIRST_CONTENT_US)?;
    attempt.duration_us = word(DURATION_US)?;
    attempt.reason = text(words, LEFT_FOR)?;
    attempt.usage = Some(Usage {
        service_tier: text(words, SERVICE_TIER)?,
        ..Usage::default()
    });
    let usage_at = match word(USAGE_PLACE)? {
        1 => Some(USAGES),
        2 => Some(USAGES + USAGE_WORDS),
        _ => None,
    };
    let reported = usage_at.and_then(|at| words.get(at..)?.first_chunk());
    Some(CrashedAttempt {
        attempt,
        is_sent: flags.is_sent,
        visible_bytes: word(VISIBLE_BYTES)?,
        reasoning_bytes: word(REASONING_BYTES)?,
        reported: reported.map(usage_of),
        is_output_early: flags.is_output_early,
        more: word(MORE)?,
        price,
        asked_tier,
        most,
        charges,
    })
}

fn text(words: &[u64], at: usize) -> Option<String> {
    let bytes = load_bytes(words, at, NOTED_TEXT_BYTES)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    Some(text.trim_end_matches('\0').to_owned())
}
