//! Settings of the whole deployment.

use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use super::{OnUnknownPrice, OnUnknownUsage, Price, Rates};
use crate::fault::{Fault, Faults};

/// The settings as edited; see `turnpike.config.v1.Settings`. Zero or none means the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unknown_price: Option<OnUnknownPrice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_price: Option<Rates>,
}

/// `max_stale_s` when it is 0.
const DEFAULT_MAX_STALE_S: u32 = 86_400;

impl Settings {
    /// The form nodes are sent. What happens to unknown usage and prices is always set in it.
    pub fn to_config(&self) -> config::Settings {
        let on_unknown_usage = self.on_unknown_usage.unwrap_or(OnUnknownUsage::Estimate);
        let on_unknown_price = self.on_unknown_price.unwrap_or(OnUnknownPrice::Allow);
        config::Settings {
            on_unknown_usage: on_unknown_usage.to_wire(),
            on_unknown_price: on_unknown_price.to_wire(),
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
            on_unknown_price: self.on_unknown_price.map_or(0, OnUnknownPrice::to_wire),
            default_price: self.default_price.map(Rates::to_config),
        }
    }

    /// From the wire form.
    ///
    /// # Errors
    /// An enum value that is not known; a default price that can't be used.
    pub fn from_wire(settings: config::Settings) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        let on_unknown_usage = OnUnknownUsage::from_wire(settings.on_unknown_usage);
        faults.require(
            settings.on_unknown_usage == 0 || on_unknown_usage.is_some(),
            "values.on_unknown_usage",
            "must be estimate or void",
        );
        let on_unknown_price = OnUnknownPrice::from_wire(settings.on_unknown_price);
        faults.require(
            settings.on_unknown_price == 0 || on_unknown_price.is_some(),
            "values.on_unknown_price",
            "must be allow, deny or default",
        );
        let default_price = settings.default_price.map(Rates::from_config);
        check_default(on_unknown_price, default_price, &mut faults);
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
            on_unknown_price,
            default_price,
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

fn check_default(
    on_unknown_price: Option<OnUnknownPrice>,
    default_price: Option<Rates>,
    faults: &mut Faults,
) {
    const PLACE: &str = "values.default_price";
    let is_known = default_price
        .is_some_and(|rates| rates.input_pusd.is_some() && rates.output_pusd.is_some());
    faults.require(
        is_known || on_unknown_price != Some(OnUnknownPrice::Default),
        PLACE,
        "must have the prices of input and output",
    );
    let price = Price {
        rates: default_price.unwrap_or_default(),
        ..Price::default()
    };
    price.check(PLACE, faults);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_price_must_be_whole_and_in_range() {
        let faults_of = |settings| {
            let faults = Settings::from_wire(settings).unwrap_err();
            faults
                .into_iter()
                .map(|it| it.to_string())
                .collect::<Vec<_>>()
        };
        let settings = config::Settings {
            on_unknown_price: OnUnknownPrice::Default.to_wire(),
            default_price: Some(config::Rates {
                input_pusd: Some(u64::MAX),
                ..config::Rates::default()
            }),
            ..config::Settings::default()
        };
        assert_eq!(
            faults_of(settings),
            [
                "values.default_price: must have the prices of input and output",
                "values.default_price.input_pusd: must be at most 10^12 pico-USD (1 USD) per token",
            ]
        );
        let unheard_of = config::Settings {
            on_unknown_price: 9,
            ..config::Settings::default()
        };
        let expected = "values.on_unknown_price: must be allow, deny or default";
        assert_eq!(faults_of(unheard_of), [expected]);
    }

    #[test]
    fn what_becomes_of_unknown_prices_is_the_same_after_the_wire() {
        let settings = Settings {
            on_unknown_price: Some(OnUnknownPrice::Default),
            default_price: Some(Rates {
                input_pusd: Some(1),
                output_pusd: Some(2),
                ..Rates::default()
            }),
            ..Settings::default()
        };
        assert_eq!(Settings::from_wire(settings.to_wire()), Ok(settings));
        let sent = Settings::default().to_config();
        assert_eq!(sent.on_unknown_price, OnUnknownPrice::Allow.to_wire());
    }
}
