//! How a broken upstream filter gets its stream cut.
//!
//! Envoy does not survive a reset from an upstream filter once a response is under way, and
//! ending the body early would look like a complete answer. So the upstream side leaves a mark
//! in the stream's metadata and the downstream filter, which Envoy lets reset, cuts the stream.

use std::cell::Cell;

use crate::http::HttpHost;
use crate::status::MetadataSource;

const NAMESPACE: &str = "dynamic_module_panic";
const KEY: &str = "cut";

thread_local! {
    /// Marks left and not yet found on this worker; zero keeps the look-up off the hot path.
    static MARKS: Cell<u32> = const { Cell::new(0) };
}

/// Marks the stream of this host.
pub(crate) fn ask(host: &mut impl HttpHost) {
    host.set_metadata_string(NAMESPACE, KEY, b"1");
    MARKS.set(MARKS.get().saturating_add(1));
}

/// Whether the stream of this host is marked; answers true once.
pub(crate) fn is_asked(host: &mut impl HttpHost) -> bool {
    if MARKS.get() == 0 {
        return false;
    }
    let marked = host
        .metadata_string(MetadataSource::Dynamic, NAMESPACE, KEY)
        .is_some_and(|mark| mark == b"1");
    if marked {
        host.set_metadata_string(NAMESPACE, KEY, b"0");
        MARKS.set(MARKS.get().saturating_sub(1));
    }
    marked
}
