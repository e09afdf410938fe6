//! What is kept of an open exchange, so that it is settled even if its process dies: as much of the
//! record as is known, and how far each attempt has come.
//!
//! Read next: [`crashed`](crate::crashed), which makes a record of it.

use filter_llm::usage::Usage;
use proto::config::v1::{LimitUnit, Price};
use proto::metering::v1::{Attempt as WireAttempt, Charge, UsageRecord, Verdict};

use super::Exchange;
use super::settle::Charges;
use crate::admit::Grip;
use crate::attempt::Attempt;
use crate::credit::Charged;
use crate::limits::Most;

/// What settling an exchange needs to know beside its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenTerms<'a> {
    /// Bytes of text in the prompt.
    pub text_bytes: u64,
    /// Whether usage that no provider reported is charged as an estimate.
    pub estimates: bool,
    /// The units of the record's charges, in their order. Unspecified: what was reserved is charged.
    pub units: &'a [LimitUnit],
}

/// What settling an attempt needs to know beside its identity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttemptTerms<'a> {
    /// The price that held when it began; `None`: none is known.
    pub price: Option<&'a Price>,
    /// The one tier that it is to be served in; empty: any.
    pub asked_tier: &'a str,
    /// What strict limits count on where nobody says what it used.
    pub most: Most,
    /// What it holds of its limits; `None`: what the exchange was admitted with.
    pub charges: Option<Vec<OpenCharge>>,
}

/// What an attempt holds of one bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenCharge {
    /// Place among the charges that the exchange was admitted with, if it is the same bucket; then
    /// `charge` does not name it again.
    pub same_as: Option<u8>,
    /// Nothing is settled of it.
    pub charge: Charge,
    /// Unspecified: what was reserved is charged.
    pub unit: LimitUnit,
}

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress<'a> {
    /// 1 for the first attempt.
    pub number: u32,
    /// The whole request was handed on.
    pub is_sent: bool,
    /// HTTP status of the provider; 0: none yet.
    pub status: u16,
    /// Unspecified while it is not known.
    pub verdict: Verdict,
    /// Why it was left, at most 16 bytes; empty: it was not.
    pub left_for: &'static str,
    /// Microseconds after its start; 0: not yet.
    pub first_content_us: u64,
    /// Microseconds from its start until it was left; 0: it was not.
    pub duration_us: u64,
    /// Bytes of output so far, reasoning included.
    pub visible_bytes: u64,
    /// Of these, bytes of reasoning.
    pub reasoning_bytes: u64,
    /// As reported so far.
    pub reported: Option<Usage>,
    /// What was reported of the output is only its beginning.
    pub is_output_early: bool,
    /// The tier that the provider says it served; empty: it said none.
    pub service_tier: &'a str,
    /// HTTP status of the head that the client got; 0: none yet.
    pub client_status: u16,
}

impl Exchange {
    /// ① Fills `record` with what is known at admission, which is everything but attempts and
    /// outcome. `None`: it was not admitted.
    pub fn write_open(&self, record: &mut UsageRecord) -> Option<OpenTerms<'_>> {
        let admitted = self.admitted.as_ref()?;
        self.write_identity(record, admitted);
        let grip = admitted.grips.first();
        let mut charges = Charges::new(&mut record.charges);
        for charged in grip.iter().flat_map(|grip| grip.open_charges()) {
            charges.put(&charged);
        }
        charges.end();
        Some(OpenTerms {
            text_bytes: admitted.text_bytes,
            estimates: self.config.settings.estimate_unknown_usage,
            units: grip.map_or(&[], Grip::units),
        })
    }

    /// ③ After [`begin_attempt`](Self::begin_attempt): fills `entry` with the attempt's identity,
    /// and gives what settling it takes. `None`: none has begun.
    pub fn write_open_attempt(&self, entry: &mut WireAttempt) -> Option<AttemptTerms<'_>> {
        let admitted = self.admitted.as_ref()?;
        let attempt = self.begun().next_back()?;
        self.write_target(entry, attempt, admitted);
        Some(AttemptTerms {
            price: self.price_at_start(attempt),
            asked_tier: attempt.tier(&admitted.asked_tier).asked,
            most: attempt.most,
            charges: open_charges(&admitted.grips, attempt.number),
        })
    }

    /// How far each attempt has come that has begun, in their order.
    pub fn progress(&self) -> impl DoubleEndedIterator<Item = Progress<'_>> {
        let client_status = self.client_status().unwrap_or(0);
        self.begun().map(move |attempt| Progress {
            client_status,
            ..attempt.progress()
        })
    }

    fn begun(&self) -> impl DoubleEndedIterator<Item = &Attempt> {
        self.attempts.iter().filter(|attempt| attempt.has_begun)
    }
}

/// What an attempt holds, unless that is what its exchange was admitted with.
fn open_charges(grips: &[Grip], number: u32) -> Option<Vec<OpenCharge>> {
    let (admitted, later) = grips.split_first()?;
    if admitted.attempt == number {
        return None;
    }
    let own = later.iter().find(|grip| grip.attempt == number);
    let charges = own.into_iter().flat_map(|grip| {
        let units = grip.units().iter().copied();
        grip.open_charges().zip(units)
    });
    let open = charges.map(|(charged, unit)| {
        let mut known = admitted.open_charges().take(admitted.units().len());
        let same_as = known.position(|other| is_same_bucket(&other, &charged));
        let same_as = same_as.and_then(|at| u8::try_from(at).ok());
        let mut charge = Charge {
            reserved: charged.reserved,
            ..Charge::default()
        };
        if same_as.is_none() {
            charge.limit.push_str(&charged.limit);
            charge.subject.push_str(&charged.subject);
            charge.window_start_s = charged.window_start_s;
            charge.epoch = charged.epoch;
        }
        OpenCharge {
            same_as,
            charge,
            unit,
        }
    });
    Some(open.collect())
}

fn is_same_bucket(a: &Charged, b: &Charged) -> bool {
    (&a.limit, &a.subject, a.window_start_s, a.epoch)
        == (&b.limit, &b.subject, b.window_start_s, b.epoch)
}

impl Attempt {
    fn progress(&self) -> Progress<'_> {
        let (visible_bytes, reasoning_bytes) = self.output_bytes();
        let is_left = self.left_us.is_some();
        let is_failed = self.answer.status >= 300 || self.is_error_without_content();
        let is_judged = is_left || is_failed || self.is_complete();
        Progress {
            number: self.number,
            is_sent: self.is_sent,
            status: self.answer.status,
            verdict: if is_judged {
                self.verdict()
            } else {
                Verdict::Unspecified
            },
            left_for: self.left_for,
            first_content_us: self.first_content_after_us(),
            duration_us: self
                .left_us
                .map_or(0, |left_us| self.since_start(left_us).max(1)),
            visible_bytes,
            reasoning_bytes,
            reported: self.reported(),
            is_output_early: self.is_output_early(),
            service_tier: self.service_tier(),
            client_status: 0,
        }
    }
}
