//! What a body holds, as bytes.

use filter_core::exchange::OpenTerms;
use prost::Message;
use proto::{
    config::v1::{LimitUnit, Price},
    metering::v1::{Attempt, UsageRecord},
};

const MAX_PART_BYTES: usize = 4096;

/// An exchange as known at admission.
#[derive(Debug)]
pub(super) struct ExchangeBody {
    pub(super) record: UsageRecord,
    pub(super) text_bytes: u64,
    pub(super) estimates: bool,
    pub(super) units: Vec<LimitUnit>,
}

/// Appends an exchange's body.
pub(super) fn write_exchange(record: &UsageRecord, terms: &OpenTerms<'_>, bytes: &mut Vec<u8>) {
    write_message(record, bytes);
    bytes.extend_from_slice(&terms.text_bytes.to_ne_bytes());
    bytes.push(terms.estimates.into());
    let units = terms.units.iter();
    bytes.extend(units.map(|unit| u8::try_from(*unit as i32).unwrap_or(0)));
}

/// Appends an attempt's body.
pub(super) fn write_attempt(attempt: &Attempt, price: Option<&Price>, bytes: &mut Vec<u8>) {
    write_message(attempt, bytes);
    if let Some(price) = price {
        write_message(price, bytes);
    }
}

/// `None` if it is not one.
pub(super) fn read_exchange(mut bytes: &[u8]) -> Option<ExchangeBody> {
    let record = read_message(&mut bytes)?;
    let (text_bytes, rest) = bytes.split_first_chunk()?;
    let (estimates, units) = rest.split_first()?;
    let unit = |unit: &u8| LimitUnit::try_from(i32::from(*unit)).unwrap_or_default();
    Some(ExchangeBody {
        record,
        text_bytes: u64::from_ne_bytes(*text_bytes),
        estimates: *estimates != 0,
        units: units.iter().map(unit).collect(),
    })
}

/// `None` if it is not one.
pub(super) fn read_attempt(mut bytes: &[u8]) -> Option<(Attempt, Option<Price>)> {
    let attempt = read_message(&mut bytes)?;
    if bytes.is_empty() {
        return Some((attempt, None));
    }
    Some((attempt, Some(read_message(&mut bytes)?)))
}

fn write_message(message: &impl Message, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    // Fails only for a buffer without room, and this one grows.
    if message.encode(bytes).is_err() {
        bytes.truncate(start + 4);
    }
    let length = u32::try_from(bytes.len() - start - 4).unwrap_or(0);
    if let Some(field) = bytes
        .get_mut(start..)
        .and_then(|rest| rest.first_chunk_mut())
    {
        *field = length.to_ne_bytes();
    }
}

fn read_message<M: Message + Default>(bytes: &mut &[u8]) -> Option<M> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_ne_bytes(*length)).ok()?;
    if length > MAX_PART_BYTES {
        return None;
    }
    let (message, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    M::decode(message).ok()
}
