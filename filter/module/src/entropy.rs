//! Random bytes: from the system for what must be secret or unique across processes, and from a
//! per-worker generator seeded by it for what is drawn on each request.

/// Fills an array from the system's generator; zeros if it fails, which it does not on Linux
/// once the system is up.
pub(crate) fn system<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes,
        Err(_) => [0; N],
    }
}

/// SplitMix64 over a seed from the system: unique and evenly spread, not secret.
#[derive(Debug)]
pub(crate) struct Generator {
    state: u64,
}

impl Generator {
    /// Seeded by the system.
    pub(crate) fn new() -> Self {
        Self {
            state: u64::from_ne_bytes(system()),
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next 32 bytes.
    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.next().to_ne_bytes());
        }
        bytes
    }
}
