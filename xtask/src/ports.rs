//! Free TCP ports on loopback.

use std::{
    net::{Ipv4Addr, TcpListener},
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Result, bail};

/// Below Linux's ephemeral range (32768…), so that no outgoing connection takes a port between the
/// moment it is chosen and the moment it is listened on.
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// A port nobody listens on, and that this process has not given out before.
pub fn free_port() -> Result<u16> {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Processes begin at places of their own, so that two of them seldom ask for the same port.
    let start = std::process::id().wrapping_mul(97) % COUNT;
    for _ in 0..COUNT {
        let step = GIVEN.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + start.wrapping_add(step) % COUNT)?;
        if is_free(port) {
            return Ok(port);
        }
    }
    bail!("no free port between {FIRST} and {}", FIRST + COUNT)
}

/// Whether nobody listens on `port` of 127.0.0.1.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// `wanted`, or a free port when it is 0.
pub fn or_free(wanted: u16) -> Result<u16> {
    if wanted == 0 { free_port() } else { Ok(wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_out_twice_and_a_taken_one_is_not_free() {
        let (first, second) = (free_port().expect("a port"), free_port().expect("a port"));
        assert_ne!(first, second);
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).expect("bound");
        assert!(!is_free(first));
    }
}
