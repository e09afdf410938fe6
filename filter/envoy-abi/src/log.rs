//! Envoy's log, from any thread. Never log a secret or a body.

use std::io::Write;

use crate::module::callbacks;
use crate::raw::Buffer;
use crate::status::LogLevel;

/// Whether Envoy would print a line of this level; true where no Envoy is.
pub fn log_enabled(level: LogLevel) -> bool {
    callbacks().is_none_or(|callbacks| {
        // SAFETY: Envoy allows this on any thread.
        unsafe { (callbacks.log_enabled)(level as u32) }
    })
}

/// Writes a line to Envoy's log, or to stderr where no Envoy is.
pub fn log(level: LogLevel, message: &str) {
    let Some(callbacks) = callbacks() else {
        return to_stderr(level, message);
    };
    // SAFETY: Envoy allows this on any thread and copies the message.
    unsafe { (callbacks.log)(level as u32, Buffer::new(message.as_bytes())) }
}

/// The fallback while there is no Envoy to ask.
pub(crate) fn to_stderr(level: LogLevel, message: &str) {
    // A closed stderr leaves nobody to tell.
    drop(writeln!(std::io::stderr(), "[{level:?}] {message}"));
}
