//! Usage as it is shown: sums of roll-ups, and single records.

pub(crate) mod record;
pub(crate) mod sums;

use std::fmt::Write;

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}
