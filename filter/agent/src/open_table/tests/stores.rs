//! Every store in its order, so that a test can kill a process between any two.

use std::{cell::RefCell, sync::atomic::AtomicU64};

thread_local! {
    static LOG: RefCell<Vec<(*const AtomicU64, u64)>> = const { RefCell::new(Vec::new()) };
}

pub(in crate::open_table) fn note(place: &AtomicU64, word: u64) {
    LOG.with_borrow_mut(|log| log.push((std::ptr::from_ref(place), word)));
}

/// The stores into this memory since the last call, as places in it and words.
pub(crate) fn take(words: &[AtomicU64]) -> Vec<(usize, u64)> {
    let start = words.as_ptr().addr();
    let log = LOG.with_borrow_mut(std::mem::take);
    let place = |place: *const AtomicU64| (place.addr() - start) / size_of::<AtomicU64>();
    log.into_iter()
        .map(|(at, word)| (place(at), word))
        .collect()
}
