//! Settings of the whole deployment.

use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use super::OnUnknownUsage;
use crate::fault::{Fault, Faults};

/// The settings as edited; see `turnpike.config.v1.Settings`. Zero or none means the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub max_request_body_bytes: u64,
    pub max_held_body_bytes: u64,
    pub max_stream_event_bytes: u64,
    pub first_token_hold_bytes: u64,
    pub first_token_hold_ms: u32,
    pub on_unknown_usage: Option<OnUnknownUsage>,
    pub max_stale_s: u32,
    pub stream_idle_timeout_ms: u32,
}

/// `max_stale_s` when it is 0.
const DEFAULT_MAX_STALE_S: u32 = 86_400;

impl Settings {
    /// The form nodes are sent. `on_unknown_usage` is always set in it.
    pub fn to_config(&self) -> config::Settings {
        let on_unknown_usage = self.on_unknown_usage.unwrap_or(OnUnknownUsage::Estimate);
        config::Settings {
            on_unknown_usage: on_unknown_usage.to_wire(),
            ..self.to_wire()
        }
    }

    /// The wire form, with 0 where nothing was set.
    pub fn to_wire(&self) -> config::Settings {
        config::Settings {
            max_request_body_bytes: self.max_request_body_bytes,
            max_held_body_bytes: self.max_held_body_bytes,
            max_stream_event_bytes: self.max_stream_event_bytes,
            first_token_hold_bytes: self.first_token_hold_bytes,
            first_token_hold_ms: self.first_token_hold_ms,
            on_unknown_usage: self.on_unknown_usage.map_or(0, OnUnknownUsage::to_wire),
            max_stale_s: self.max_stale_s,
            stream_idle_timeout_ms: self.stream_idle_timeout_ms,
        }
    }

    /// From the wire form.
    ///
    /// # Errors
    /// An enum value that is not known.
    pub fn from_wire(settings: config::Settings) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        let on_unknown_usage = OnUnknownUsage::from_wire(settings.on_unknown_usage);
        faults.require(
            settings.on_unknown_usage == 0 || on_unknown_usage.is_some(),
            "values.on_unknown_usage",
            "must be estimate or void",
        );
        faults.into_result()?;
        Ok(Self {
            max_request_body_bytes: settings.max_request_body_bytes,
            max_held_body_bytes: settings.max_held_body_bytes,
            max_stream_event_bytes: settings.max_stream_event_bytes,
            first_token_hold_bytes: settings.first_token_hold_bytes,
            first_token_hold_ms: settings.first_token_hold_ms,
            on_unknown_usage,
            max_stale_s: settings.max_stale_s,
            stream_idle_timeout_ms: settings.stream_idle_timeout_ms,
        })
    }

    /// How long a node may be away, in seconds.
    pub fn max_stale_s(&self) -> u32 {
        if self.max_stale_s == 0 {
            DEFAULT_MAX_STALE_S
        } else {
            self.max_stale_s
        }
    }
}
