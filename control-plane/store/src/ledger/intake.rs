//! How much arrived, and how much of it was new.

use std::sync::{Mutex, PoisonError};

use control_plane_core::ledger::{Content, Delivery, Taken};

use crate::Store;

/// Deliveries to this replica since it started, as far as they are committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intake {
    pub records: u64,
    /// Dropped, since they were stored before.
    pub duplicate_records: u64,
    /// Of records or gaps, that were new at least in part.
    pub batches: u64,
    pub duplicate_batches: u64,
    /// Not taken, since something is missing before them.
    pub early_batches: u64,
}

/// The sums, shared by the clones of a store.
#[derive(Debug, Default)]
pub(crate) struct IntakeTotals(Mutex<Intake>);

impl Intake {
    pub(super) fn count(&mut self, delivery: &Delivery, taken: Taken) {
        let records = match &delivery.content {
            Content::Records { records, .. } => records.len(),
            Content::Gap { .. } => 0,
        };
        let known = match taken {
            Taken::Hole => {
                self.early_batches += 1;
                return;
            }
            Taken::Nothing => {
                self.duplicate_batches += 1;
                records
            }
            Taken::Records { skip, .. } => {
                self.batches += 1;
                skip
            }
            Taken::Gap { .. } => {
                self.batches += 1;
                0
            }
        };
        self.records += number(records.saturating_sub(known));
        self.duplicate_records += number(known);
    }

    fn add(&mut self, more: Self) {
        self.records += more.records;
        self.duplicate_records += more.duplicate_records;
        self.batches += more.batches;
        self.duplicate_batches += more.duplicate_batches;
        self.early_batches += more.early_batches;
    }
}

impl IntakeTotals {
    pub(super) fn add(&self, more: Intake) {
        let mut totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        totals.add(more);
    }
}

impl Store {
    /// What arrived here since the start.
    pub fn intake(&self) -> Intake {
        let totals = self.intake.0.lock();
        *totals.unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
