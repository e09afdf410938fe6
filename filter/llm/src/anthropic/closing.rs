//! The last events of a stream that the gateway ends before its provider does.

use serde_json::json;

use super::print_events::{UsageShown, event};
use crate::closing::Closing;

/// Appends the end of the block that is open, the finish with the usage, and the end.
pub(crate) fn write(closing: &Closing<'_>, out: &mut Vec<u8>) {
    if let Some(index) = closing.open_block {
        event(
            "content_block_stop",
            &json!({"type": "content_block_stop", "index": index}),
            out,
        );
    }
    let delta = json!({
        "type": "message_delta",
        "delta": {"stop_reason": "max_tokens", "stop_sequence": null},
        "usage": UsageShown::of(closing.usage),
    });
    event("message_delta", &delta, out);
    event("message_stop", &json!({"type": "message_stop"}), out);
}
