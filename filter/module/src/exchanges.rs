//! The exchanges that are open on this worker.
//!
//! The downstream filter, the cluster specifier and the upstream filters of one stream run on one
//! worker thread and share an exchange here. All that travels through Envoy is a [`Handle`], in a
//! request header that the downstream filter always overwrites and the upstream filter removes.
//! A handle names a slot and its generation, so one that outlived its exchange finds nothing.

use std::cell::RefCell;

use filter_core::exchange::Exchange;

use crate::open_table;

/// The internal request header that carries a [`Handle`].
pub(crate) const HEADER: &str = "x-turnpike-exchange";

/// Namespace of the dynamic metadata that this module sets.
pub(crate) const METADATA_NAMESPACE: &str = "turnpike";
/// The key under which a plan of several attempts also keeps its [`Handle`]: changes of request
/// headers stay for the next attempt, so the header is gone when the specifier is asked again.
pub(crate) const METADATA_KEY: &str = "exchange";

/// Names one open exchange of this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    index: u32,
    generation: u32,
}

const HANDLE_LEN: usize = 16;

impl Handle {
    /// Sixteen hexadecimal digits: index, then generation.
    pub(crate) fn encode(self) -> [u8; HANDLE_LEN] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let bits = u64::from(self.index) << 32 | u64::from(self.generation);
        std::array::from_fn(|at| {
            let nibble = (bits >> (60 - 4 * at)) & 0xf;
            DIGITS
                .get(usize::try_from(nibble).unwrap_or(0))
                .copied()
                .unwrap_or(b'0')
        })
    }

    /// `None` for anything that [`Handle::encode`] does not make.
    pub(crate) fn decode(text: &[u8]) -> Option<Self> {
        if text.len() != HANDLE_LEN {
            return None;
        }
        let bits = text.iter().try_fold(0_u64, |bits, &digit| {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            Some(bits << 4 | u64::from(value))
        })?;
        Some(Self {
            index: u32::try_from(bits >> 32).ok()?,
            generation: u32::try_from(bits & u64::from(u32::MAX)).ok()?,
        })
    }
}

/// An exchange that is open, and its place in the memory that outlives the process.
pub(crate) struct Open {
    pub(crate) exchange: Exchange,
    /// `None`: it was not admitted, or there was no room.
    pub(crate) slot: Option<open_table::Slot>,
}

struct Slot {
    generation: u32,
    open: Option<Box<Open>>,
}

/// A slab: slots are reused, their generation rises each time.
#[derive(Default)]
struct Slab {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slab {
    fn insert(&mut self, open: Box<Open>) -> Option<Handle> {
        if let Some(index) = self.free.pop() {
            let slot = self.slots.get_mut(usize::try_from(index).ok()?)?;
            slot.open = Some(open);
            return Some(Handle {
                index,
                generation: slot.generation,
            });
        }
        let index = u32::try_from(self.slots.len()).ok()?;
        self.slots.push(Slot {
            generation: 1,
            open: Some(open),
        });
        Some(Handle {
            index,
            generation: 1,
        })
    }

    fn open(&mut self, handle: Handle) -> Option<&mut Open> {
        let slot = self.slots.get_mut(usize::try_from(handle.index).ok()?)?;
        (slot.generation == handle.generation)
            .then_some(slot.open.as_deref_mut())
            .flatten()
    }

    fn remove(&mut self, handle: Handle) -> Option<Box<Open>> {
        let slot = self.slots.get_mut(usize::try_from(handle.index).ok()?)?;
        if slot.generation != handle.generation {
            return None;
        }
        let open = slot.open.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(handle.index);
        Some(open)
    }
}

thread_local! {
    static OPEN: RefCell<Slab> = RefCell::default();
}

/// Opens an exchange on this worker; `None` only when 2^32 are open.
pub(crate) fn open(exchange: Exchange) -> Option<Handle> {
    let open = Box::new(Open {
        exchange,
        slot: None,
    });
    OPEN.with_borrow_mut(|slab| slab.insert(open))
}

/// Runs `f` on the exchange; `None` when it is closed. `f` must not call back into Envoy in a way
/// that runs another hook: the calls that do are queued by the ABI layer until a hook has ended.
pub(crate) fn with<R>(handle: Handle, f: impl FnOnce(&mut Exchange) -> R) -> Option<R> {
    with_open(handle, |open| f(&mut open.exchange))
}

/// As [`with`], with the exchange's slot.
pub(crate) fn with_open<R>(handle: Handle, f: impl FnOnce(&mut Open) -> R) -> Option<R> {
    OPEN.with(|slab| slab.try_borrow_mut().ok()?.open(handle).map(f))
}

/// Closes the exchange; later uses of the handle find nothing.
pub(crate) fn close(handle: Handle) -> Option<Box<Open>> {
    OPEN.with(|slab| slab.try_borrow_mut().ok()?.remove(handle))
}

/// Exchanges that are open on this worker.
pub(crate) fn open_count() -> usize {
    OPEN.with(|slab| {
        slab.try_borrow()
            .map_or(0, |slab| slab.slots.len() - slab.free.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_survives_the_trip_through_a_header() {
        for handle in [
            Handle {
                index: 0,
                generation: 1,
            },
            Handle {
                index: 7,
                generation: 0xdead_beef,
            },
            Handle {
                index: u32::MAX,
                generation: u32::MAX,
            },
        ] {
            assert_eq!(Handle::decode(&handle.encode()), Some(handle));
        }
    }

    #[test]
    fn what_is_not_a_handle_is_refused() {
        for text in [
            &b""[..],
            b"0",
            b"000000000000000g",
            b"0000000000000000 ",
            b"ABCDEF0000000000",
        ] {
            assert_eq!(Handle::decode(text), None);
        }
    }
}
