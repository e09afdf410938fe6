//! The hooks that Envoy calls, exported by this crate into every cdylib that uses it.
//!
//! Envoy refuses a module that lacks a hook of an extension point in use, so all are here, also
//! those that nothing in the safe API needs. Each catches panics.

mod bootstrap;
mod http;
pub(crate) mod names;
mod specifier;
#[cfg(test)]
mod tests;
mod unused;

use crate::raw::Buffer;

/// A name or configuration that Envoy passes to a hook.
///
/// # Safety
/// `text` must stay readable for `'a`; Envoy keeps it for the length of the hook.
unsafe fn text<'a>(text: Buffer) -> Option<&'a str> {
    // SAFETY: as the caller says.
    std::str::from_utf8(unsafe { text.bytes() }).ok()
}
