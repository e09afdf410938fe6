//! Settings of the whole deployment; what is absent has its default.

use proto::admin::v1 as pb;
use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use super::price_book::RatesSpec;
use super::words::{OnUnknownPrice, OnUnknownUsage};
use super::{Kind, Singleton, Status, Stored};
use crate::failure::CallError;
use crate::link::Link;
use crate::moment::Moment;
use crate::table::{Column, Table};

#[derive(Debug)]
pub(crate) enum Settings {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct SettingsSpec {
    pub(crate) max_request_body_bytes: Option<u64>,
    pub(crate) max_held_body_bytes: Option<u64>,
    pub(crate) max_stream_event_bytes: Option<u64>,
    pub(crate) first_token_hold_bytes: Option<u64>,
    pub(crate) first_token_hold_ms: Option<u32>,
    pub(crate) on_unknown_usage: Option<OnUnknownUsage>,
    pub(crate) max_stale_s: Option<u32>,
    pub(crate) stream_idle_timeout_ms: Option<u32>,
    pub(crate) on_unknown_price: Option<OnUnknownPrice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default_price: Option<RatesSpec>,
}

/// The defaults that config.proto states.
const DEFAULTS: SettingsSpec = SettingsSpec {
    max_request_body_bytes: Some(33_554_432),
    max_held_body_bytes: Some(536_870_912),
    max_stream_event_bytes: Some(16_777_216),
    first_token_hold_bytes: Some(262_144),
    first_token_hold_ms: Some(60_000),
    on_unknown_usage: Some(OnUnknownUsage::Estimate),
    max_stale_s: Some(86_400),
    stream_idle_timeout_ms: Some(300_000),
    on_unknown_price: Some(OnUnknownPrice::Allow),
    default_price: None,
};

impl Singleton for Settings {
    type Spec = SettingsSpec;
    const KIND: Kind = Kind::Settings;

    fn table(stored: &Stored<SettingsSpec>) -> Table {
        let mut table = Table::new(&[
            Column::text("SETTING"),
            Column::number("VALUE"),
            Column::number("DEFAULT"),
        ]);
        let in_force = stored.spec.or_defaults().lines();
        for ((setting, value), (_, default)) in in_force.into_iter().zip(DEFAULTS.lines()) {
            table.push(vec![setting.to_owned(), value, default]);
        }
        table
    }

    async fn get(link: &Link) -> Result<Stored<SettingsSpec>, CallError> {
        let answer = link
            .settings()
            .get_settings(pb::GetSettingsRequest {})
            .await?;
        decode(answer.into_inner())
    }

    async fn replace(link: &Link, spec: &SettingsSpec) -> Result<Stored<SettingsSpec>, CallError> {
        let request = pb::UpdateSettingsRequest {
            settings: Some(pb::Settings {
                name: "settings".to_owned(),
                values: Some(encode(spec)),
                ..Default::default()
            }),
        };
        decode(link.settings().update_settings(request).await?.into_inner())
    }

    fn is_same(stored: &SettingsSpec, wanted: &SettingsSpec) -> bool {
        stored.or_defaults() == wanted.or_defaults()
    }
}

// === impl SettingsSpec ===

impl SettingsSpec {
    /// What is in force: zero and absent both mean the default.
    fn or_defaults(&self) -> Self {
        let wide = |value: Option<u64>, default| value.filter(|&value| value > 0).or(default);
        let narrow = |value: Option<u32>, default| value.filter(|&value| value > 0).or(default);
        Self {
            max_request_body_bytes: wide(
                self.max_request_body_bytes,
                DEFAULTS.max_request_body_bytes,
            ),
            max_held_body_bytes: wide(self.max_held_body_bytes, DEFAULTS.max_held_body_bytes),
            max_stream_event_bytes: wide(
                self.max_stream_event_bytes,
                DEFAULTS.max_stream_event_bytes,
            ),
            first_token_hold_bytes: wide(
                self.first_token_hold_bytes,
                DEFAULTS.first_token_hold_bytes,
            ),
            first_token_hold_ms: narrow(self.first_token_hold_ms, DEFAULTS.first_token_hold_ms),
            on_unknown_usage: self.on_unknown_usage.or(DEFAULTS.on_unknown_usage),
            max_stale_s: narrow(self.max_stale_s, DEFAULTS.max_stale_s),
            stream_idle_timeout_ms: narrow(
                self.stream_idle_timeout_ms,
                DEFAULTS.stream_idle_timeout_ms,
            ),
            on_unknown_price: self.on_unknown_price.or(DEFAULTS.on_unknown_price),
            default_price: self.default_price.clone(),
        }
    }

    fn lines(&self) -> [(&'static str, String); 10] {
        fn text<T: ToString>(value: Option<T>) -> String {
            value.map(|value| value.to_string()).unwrap_or_default()
        }
        let default_price = self.default_price.as_ref();
        let default_price = default_price.map_or_else(String::new, |rates| {
            format!("{} in, {} out", text(rates.input), text(rates.output))
        });
        [
            ("maxRequestBodyBytes", text(self.max_request_body_bytes)),
            ("maxHeldBodyBytes", text(self.max_held_body_bytes)),
            ("maxStreamEventBytes", text(self.max_stream_event_bytes)),
            ("firstTokenHoldBytes", text(self.first_token_hold_bytes)),
            ("firstTokenHoldMs", text(self.first_token_hold_ms)),
            ("onUnknownUsage", text(self.on_unknown_usage)),
            ("maxStaleS", text(self.max_stale_s)),
            ("streamIdleTimeoutMs", text(self.stream_idle_timeout_ms)),
            ("onUnknownPrice", text(self.on_unknown_price)),
            ("defaultPrice", default_price),
        ]
    }
}

fn encode(spec: &SettingsSpec) -> config::Settings {
    config::Settings {
        max_request_body_bytes: spec.max_request_body_bytes.unwrap_or(0),
        max_held_body_bytes: spec.max_held_body_bytes.unwrap_or(0),
        max_stream_event_bytes: spec.max_stream_event_bytes.unwrap_or(0),
        first_token_hold_bytes: spec.first_token_hold_bytes.unwrap_or(0),
        first_token_hold_ms: spec.first_token_hold_ms.unwrap_or(0),
        on_unknown_usage: spec.on_unknown_usage.map_or(0, OnUnknownUsage::to_wire),
        max_stale_s: spec.max_stale_s.unwrap_or(0),
        stream_idle_timeout_ms: spec.stream_idle_timeout_ms.unwrap_or(0),
        on_unknown_price: spec.on_unknown_price.map_or(0, OnUnknownPrice::to_wire),
        default_price: spec.default_price.as_ref().map(RatesSpec::encode),
    }
}

fn decode(settings: pb::Settings) -> Result<Stored<SettingsSpec>, CallError> {
    let values = settings.values.unwrap_or_default();
    let wide = |value: u64| Some(value).filter(|&value| value > 0);
    let narrow = |value: u32| Some(value).filter(|&value| value > 0);
    let on_unknown_usage = match values.on_unknown_usage {
        0 => None,
        value => Some(OnUnknownUsage::from_wire(value)?),
    };
    let on_unknown_price = match values.on_unknown_price {
        0 => None,
        value => Some(OnUnknownPrice::from_wire(value)?),
    };
    Ok(Stored {
        id: String::new(),
        status: Status {
            config_version: settings.config_version,
            update_time: Moment::from_wire(settings.update_time.as_ref()),
            ..Default::default()
        },
        spec: SettingsSpec {
            max_request_body_bytes: wide(values.max_request_body_bytes),
            max_held_body_bytes: wide(values.max_held_body_bytes),
            max_stream_event_bytes: wide(values.max_stream_event_bytes),
            first_token_hold_bytes: wide(values.first_token_hold_bytes),
            first_token_hold_ms: narrow(values.first_token_hold_ms),
            on_unknown_usage,
            max_stale_s: narrow(values.max_stale_s),
            stream_idle_timeout_ms: narrow(values.stream_idle_timeout_ms),
            on_unknown_price,
            default_price: values.default_price.as_ref().map(RatesSpec::decode),
        },
    })
}
