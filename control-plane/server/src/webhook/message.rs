//! What is posted: a JSON document, signed as <https://www.standardwebhooks.com> has it, so that
//! receivers have a library for it.

use std::fmt;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane_store::LimitEvent;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Serialize;
use sha2::Sha256;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What events are signed with.
pub(super) struct Secret(Vec<u8>);

/// A signed event.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: String,
    /// Unix seconds.
    pub(super) timestamp: String,
    pub(super) signature: String,
    pub(super) body: String,
}

/// Amounts are in the limit's unit, money in nano-USD.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    id: &'a str,
    r#type: &'static str,
    time: String,
    limit: String,
    display_name: &'a str,
    subject: &'a str,
    unit: &'a str,
    window: &'a str,
    window_start_time: Option<String>,
    reset_time: Option<String>,
    threshold_percent: u32,
    amount: i64,
    settled: i64,
}

const PREFIX: &str = "whsec_";
const LEAST_BYTES: usize = 16;

impl Secret {
    /// Takes `whsec_` and base64, or any other text as it is; 16 bytes or more.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let bytes = match text.strip_prefix(PREFIX) {
            // What does not decode is not shown.
            Some(encoded) => STANDARD
                .decode(encoded)
                .ok()
                .context("what follows whsec_ is not base64")?,
            None => text.as_bytes().to_vec(),
        };
        ensure!(
            bytes.len() >= LEAST_BYTES,
            "the secret is shorter than 16 bytes"
        );
        Ok(Self(bytes))
    }

    /// The event as it is posted now.
    pub(super) fn message(&self, event: &LimitEvent) -> anyhow::Result<Message> {
        let id = event.id.to_string();
        let body = body(&id, event)?;
        let timestamp = OffsetDateTime::now_utc().unix_timestamp().to_string();
        let signature = self.sign(&id, &timestamp, &body)?;
        Ok(Message {
            id,
            timestamp,
            signature,
            body,
        })
    }

    fn sign(&self, id: &str, timestamp: &str, body: &str) -> anyhow::Result<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0)?;
        for part in [id, ".", timestamp, ".", body] {
            mac.update(part.as_bytes());
        }
        let code = STANDARD.encode(mac.finalize().into_bytes());
        Ok(format!("v1,{code}"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(<redacted>)")
    }
}

fn body(id: &str, event: &LimitEvent) -> anyhow::Result<String> {
    // A window that never ends has no start that means anything.
    let start = event.window_end.map(|_| event.window_start);
    let event = Event {
        id,
        r#type: "limit.threshold_passed",
        time: event.raised_at.format(&Rfc3339)?,
        limit: format!("limits/{}", event.limit),
        display_name: &event.display_name,
        subject: &event.subject,
        unit: &event.unit,
        window: &event.window,
        window_start_time: moment(start)?,
        reset_time: moment(event.window_end)?,
        threshold_percent: event.threshold,
        amount: event.amount,
        settled: event.settled,
    };
    Ok(serde_json::to_string(&event)?)
}

fn moment(moment: Option<OffsetDateTime>) -> anyhow::Result<Option<String>> {
    let text = moment.map(|moment| moment.format(&Rfc3339)).transpose();
    Ok(text?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_the_standard_asks_for() {
        // The example of the standard's own libraries.
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "1614265330",
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(
            signature.unwrap(),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn a_weak_secret_is_refused_and_none_is_shown() {
        for weak in [
            "",
            "short",
            "whsec_c2hvcnQ=",
            "whsec_sk-test-secret-that-is-long",
        ] {
            let error = Secret::parse(weak).unwrap_err().to_string();
            assert!(!error.contains("sk-test"), "{error}");
        }
        let secret = Secret::parse("sk-test-0123456789").unwrap();
        assert!(!format!("{secret:?}").contains("sk-test"));
    }
}
