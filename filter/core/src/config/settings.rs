//! The deployment's settings with the defaults filled in.

use proto::config::v1::{self as wire, OnUnknownUsage};

use super::compile::Faults;
use super::{ResourceKind, SINGLETON_NAME};

/// Settings of the whole deployment; no value is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Largest request body in bytes; larger ones get 413.
    pub max_request_body_bytes: u64,
    /// Bytes of request bodies that one Envoy process may hold at a time.
    pub max_held_body_bytes: u64,
    /// Largest single event of a stream in bytes.
    pub max_stream_event_bytes: u64,
    /// Bytes of a stream held back while waiting for the first content.
    pub first_token_hold_bytes: u64,
    /// Milliseconds of that wait, counted from the first event.
    pub first_token_hold_ms: u32,
    /// True: an attempt whose provider reported nothing is charged an estimate; false: nothing.
    pub estimate_unknown_usage: bool,
    /// Seconds for which a node may serve from a snapshot while the control plane is away.
    pub max_stale_s: u32,
    /// Milliseconds of silence inside a stream after which it is cut.
    pub stream_idle_timeout_ms: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_request_body_bytes: 32 << 20,
            max_held_body_bytes: 512 << 20,
            max_stream_event_bytes: 16 << 20,
            first_token_hold_bytes: 256 << 10,
            first_token_hold_ms: 60_000,
            estimate_unknown_usage: true,
            max_stale_s: 86_400,
            stream_idle_timeout_ms: 300_000,
        }
    }
}

pub(super) fn compile(wire: Option<&wire::Settings>, faults: &mut Faults) -> Settings {
    let default = Settings::default();
    let Some(wire) = wire else {
        return default;
    };
    let unknown_usage = OnUnknownUsage::try_from(wire.on_unknown_usage);
    if unknown_usage.is_err() {
        faults.add(
            ResourceKind::Settings,
            SINGLETON_NAME,
            "on_unknown_usage",
            "no such choice",
        );
    }
    Settings {
        max_request_body_bytes: or(wire.max_request_body_bytes, default.max_request_body_bytes),
        max_held_body_bytes: or(wire.max_held_body_bytes, default.max_held_body_bytes),
        max_stream_event_bytes: or(wire.max_stream_event_bytes, default.max_stream_event_bytes),
        first_token_hold_bytes: or(wire.first_token_hold_bytes, default.first_token_hold_bytes),
        first_token_hold_ms: or(wire.first_token_hold_ms, default.first_token_hold_ms),
        estimate_unknown_usage: unknown_usage != Ok(OnUnknownUsage::Void),
        max_stale_s: or(wire.max_stale_s, default.max_stale_s),
        stream_idle_timeout_ms: or(wire.stream_idle_timeout_ms, default.stream_idle_timeout_ms),
    }
}

/// On the wire zero stands for the default.
fn or<N: Default + PartialEq>(value: N, default: N) -> N {
    if value == N::default() {
        default
    } else {
        value
    }
}
