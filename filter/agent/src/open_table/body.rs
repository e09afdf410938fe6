//! What a body holds, as bytes.

use filter_core::{
    exchange::{AttemptTerms, OpenCharge, OpenTerms},
    limits::Most,
};
use prost::Message;
use proto::{
    config::v1::{LimitUnit, Price},
    metering::v1::{Attempt, Charge, UsageRecord},
};

const MAX_PART_BYTES: usize = 4096;
/// What an attempt's body has beside its identity.
const HAS_PRICE: u8 = 1;
const HAS_MOST_INPUT: u8 = 2;
const HAS_MOST_OUTPUT: u8 = 4;
const HAS_OWN_CHARGES: u8 = 8;
/// In a charge's first byte, beside its unit: a place follows instead of a name.
const IS_SAME: u8 = 0x80;

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

/// An attempt as known at its start.
#[derive(Debug, Default)]
pub(super) struct AttemptBody {
    pub(super) attempt: Attempt,
    pub(super) price: Option<Price>,
    pub(super) asked_tier: String,
    pub(super) most: Most,
    pub(super) charges: Option<Vec<OpenCharge>>,
}

/// Appends an attempt's body.
pub(super) fn write_attempt(attempt: &Attempt, terms: &AttemptTerms<'_>, bytes: &mut Vec<u8>) {
    let AttemptTerms {
        price,
        asked_tier,
        most,
        charges,
    } = terms;
    let has = |there: bool, part: u8| if there { part } else { 0 };
    write_message(attempt, bytes);
    bytes.push(
        has(price.is_some(), HAS_PRICE)
            | has(most.input.is_some(), HAS_MOST_INPUT)
            | has(most.output.is_some(), HAS_MOST_OUTPUT)
            | has(charges.is_some(), HAS_OWN_CHARGES),
    );
    if let Some(price) = price {
        write_message(*price, bytes);
    }
    for tokens in [most.input, most.output].into_iter().flatten() {
        bytes.extend_from_slice(&tokens.to_ne_bytes());
    }
    let tier = asked_tier.get(..usize::from(u8::MAX)).unwrap_or(asked_tier);
    bytes.push(u8::try_from(tier.len()).unwrap_or(0));
    bytes.extend_from_slice(tier.as_bytes());
    for open in charges.iter().flatten() {
        write_charge(open, bytes);
    }
}

fn write_charge(open: &OpenCharge, bytes: &mut Vec<u8>) {
    let unit = u8::try_from(open.unit as i32).unwrap_or(0);
    match open.same_as {
        Some(place) => {
            bytes.extend_from_slice(&[unit | IS_SAME, place]);
            bytes.extend_from_slice(&open.charge.reserved.to_ne_bytes());
        }
        None => {
            bytes.push(unit);
            write_message(&open.charge, bytes);
        }
    }
}

/// `None` if it is not one.
pub(super) fn read_exchange(mut bytes: &[u8]) -> Option<ExchangeBody> {
    let record = read_message(&mut bytes)?;
    let (text_bytes, rest) = bytes.split_first_chunk()?;
    let (estimates, units) = rest.split_first()?;
    Some(ExchangeBody {
        record,
        text_bytes: u64::from_ne_bytes(*text_bytes),
        estimates: *estimates != 0,
        units: units.iter().copied().map(unit_of).collect(),
    })
}

/// `None` if it is not one.
pub(super) fn read_attempt(mut bytes: &[u8]) -> Option<AttemptBody> {
    let bytes = &mut bytes;
    let attempt = read_message(bytes)?;
    let [has] = *take(bytes)?;
    let mut body = AttemptBody {
        attempt,
        ..AttemptBody::default()
    };
    if has & HAS_PRICE != 0 {
        body.price = Some(read_message(bytes)?);
    }
    if has & HAS_MOST_INPUT != 0 {
        body.most.input = Some(u64::from_ne_bytes(*take(bytes)?));
    }
    if has & HAS_MOST_OUTPUT != 0 {
        body.most.output = Some(u64::from_ne_bytes(*take(bytes)?));
    }
    let [tier_bytes] = *take(bytes)?;
    let (tier, rest) = bytes.split_at_checked(tier_bytes.into())?;
    body.asked_tier = String::from_utf8(tier.to_vec()).ok()?;
    *bytes = rest;
    if has & HAS_OWN_CHARGES != 0 {
        let charges = body.charges.insert(Vec::new());
        while !bytes.is_empty() {
            charges.push(read_charge(bytes)?);
        }
    }
    Some(body)
}

fn read_charge(bytes: &mut &[u8]) -> Option<OpenCharge> {
    let [kind] = *take(bytes)?;
    let unit = unit_of(kind & !IS_SAME);
    if kind & IS_SAME == 0 {
        return Some(OpenCharge {
            same_as: None,
            charge: read_message(bytes)?,
            unit,
        });
    }
    let [place] = *take(bytes)?;
    let charge = Charge {
        reserved: u64::from_ne_bytes(*take(bytes)?),
        ..Charge::default()
    };
    Some(OpenCharge {
        same_as: Some(place),
        charge,
        unit,
    })
}

fn unit_of(byte: u8) -> LimitUnit {
    LimitUnit::try_from(i32::from(byte)).unwrap_or_default()
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(taken)
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
