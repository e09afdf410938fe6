//! A worker's tables, and which of their slots are free.

use std::{rc::Rc, sync::atomic::AtomicU64};

use filter_core::exchange::{AttemptTerms, OpenTerms};
use proto::metering::v1::{Attempt, UsageRecord};

use super::{
    body,
    layout::{SLOT_WORDS, WORD_BYTES},
    slot::Slot,
    trim::Trim,
};

/// Of a body whose texts need not be cut. The rest of the slot has room for ten attempts.
const EXCHANGE_BYTES: usize = SLOT_WORDS * WORD_BYTES / 4;

/// One worker's open exchanges. `M` is the memory of one table.
#[derive(Debug)]
pub struct OpenTable<M> {
    tables: Vec<Rc<M>>,
    /// The one freed last is taken first: it is the warmest.
    free: Vec<Place>,
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) table: usize,
    /// 1 for the first.
    pub(super) slot: usize,
}

impl<M> Default for OpenTable<M> {
    /// Without any slot.
    fn default() -> Self {
        Self {
            tables: Vec::new(),
            free: Vec::new(),
            body: Vec::new(),
        }
    }
}

impl<M: AsRef<[AtomicU64]>> OpenTable<M> {
    /// Adds a table that was made by [`format`](super::format).
    pub fn add(&mut self, memory: M) {
        let table = self.tables.len();
        let slots = (memory.as_ref().len() / SLOT_WORDS).saturating_sub(1);
        self.tables.push(Rc::new(memory));
        let places = (1..=slots).rev().map(|slot| Place { table, slot });
        self.free.extend(places);
    }

    /// Slots that can be taken.
    #[must_use]
    pub fn free_slots(&self) -> usize {
        self.free.len()
    }

    /// Takes a slot for an exchange that was admitted, whose `record` is as known then. Should it
    /// not fit into a slot, texts in it are cut. `None`: every slot is taken.
    pub fn open(&mut self, record: &mut UsageRecord, terms: &OpenTerms<'_>) -> Option<Slot<M>> {
        let place = *self.free.last()?;
        for step in Trim::STEPS {
            step.record(record);
            self.body.clear();
            body::write_exchange(record, terms, &mut self.body);
            if self.body.len() <= EXCHANGE_BYTES {
                break;
            }
        }
        let memory = Rc::clone(self.tables.get(place.table)?);
        let slot = Slot::open(memory, place, &self.body, &record.exchange_id)?;
        self.free.pop();
        Some(slot)
    }

    /// An attempt begins: before a byte of it leaves. What its slot has no room for is kept as part
    /// of the attempt before. False: there is none, and it would be missing after a crash.
    pub fn begin_attempt(
        &mut self,
        slot: &mut Slot<M>,
        attempt: &mut Attempt,
        terms: &AttemptTerms<'_>,
    ) -> bool {
        let mut steps = Trim::STEPS.into_iter();
        let fits = steps.any(|step| {
            step.attempt(attempt);
            self.body.clear();
            body::write_attempt(attempt, terms, &mut self.body);
            slot.begin_attempt(attempt.number, &self.body)
        });
        fits || slot.replace_unbilled(attempt.number, &self.body)
            || slot.join_attempt(attempt.number)
    }

    /// Frees the slot of an exchange whose record is in the spool, or was refused by it.
    pub fn free(&mut self, slot: Slot<M>) {
        let (memory, place) = slot.close();
        // Not one of a table that was given up.
        let own = self.tables.get(place.table);
        if own.is_some_and(|own| Rc::ptr_eq(own, &memory)) {
            self.free.push(place);
        }
    }

    /// Gives up every table, as when its file is gone. Slots that are taken stay as they are.
    pub fn give_up(&mut self) {
        self.tables.clear();
        self.free.clear();
    }
}
