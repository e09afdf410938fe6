//! What each limit is charged, by bucket.

use proto::metering::v1::Charge;

use crate::credit::Charged;
use crate::text::refill;

/// The charges of a record, in memory that it has.
pub(crate) struct Charges<'a> {
    record: &'a mut Vec<Charge>,
    len: usize,
}

impl<'a> Charges<'a> {
    pub(crate) fn new(record: &'a mut Vec<Charge>) -> Self {
        Self { record, len: 0 }
    }

    /// Adds one. Attempts that met at the same lease are charged as one.
    pub(crate) fn add(&mut self, charged: &Charged) {
        if charged.reserved == 0 && charged.settled == 0 {
            return;
        }
        let mut earlier = self.record.iter_mut().take(self.len);
        if let Some(same) = earlier.find(|charge| is_same(charge, charged)) {
            same.reserved = same.reserved.saturating_add(charged.reserved);
            same.settled = same.settled.saturating_add(charged.settled);
            return;
        }
        self.put(charged);
    }

    /// Adds one behind the others, even if it comes to nothing up to now.
    pub(crate) fn put(&mut self, charged: &Charged) {
        if self.record.len() == self.len {
            self.record.push(Charge::default());
        }
        if let Some(charge) = self.record.get_mut(self.len) {
            refill(&mut charge.limit, &charged.limit);
            charge.subject.clear();
            charge.subject.push_str(&charged.subject);
            charge.window_start_s = charged.window_start_s;
            charge.epoch = charged.epoch;
            charge.reserved = charged.reserved;
            charge.settled = charged.settled;
        }
        self.len += 1;
    }

    /// Drops what is left of the record before.
    pub(crate) fn end(self) {
        self.record.truncate(self.len);
    }
}

fn is_same(charge: &Charge, charged: &Charged) -> bool {
    (charge.window_start_s, charge.epoch) == (charged.window_start_s, charged.epoch)
        && *charge.limit == *charged.limit
        && *charge.subject == *charged.subject
}
