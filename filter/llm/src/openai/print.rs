//! Writes values of events as JSON.

use serde::Serialize;

/// Appends a value as JSON; nothing where it can't be said in JSON, which is true of maps whose
/// keys are no strings and of nothing that is printed here.
pub(crate) fn write_json(value: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
    }
}
