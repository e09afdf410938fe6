//! The service tier that a request asks to be served in.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{convert, present};

const MEMBER: &[u8] = br#""service_tier""#;
/// Whichever tier the provider has for the caller.
const ANY: &str = "auto";

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    service_tier: Option<&'a RawValue>,
}

/// The one tier that a request is to be served in, in the words of `OpenAI` and Anthropic; `None`:
/// the provider chooses. A body that does not name the member costs no more than a search for it.
pub fn pinned_tier(body: &[u8]) -> Option<Cow<'_, str>> {
    let is_named = memchr::memmem::find(body, MEMBER).is_some();
    let members: Members<'_> = is_named.then(|| serde_json::from_slice(body).ok())??;
    let tier = convert::text(members.service_tier, "service_tier").ok()??;
    Some(tier).filter(|tier| !tier.is_empty() && tier != ANY)
}

#[cfg(test)]
mod tests {
    use super::pinned_tier;

    #[test]
    fn only_a_tier_that_is_named_is_pinned() {
        for (body, tier) in [
            (r#"{"model":"m","service_tier":"flex"}"#, Some("flex")),
            (r#"{"service_tier":"standard_only"}"#, Some("standard_only")),
            (r#"{"service_tier":"auto"}"#, None),
            (r#"{"service_tier":null}"#, None),
            (r#"{"service_tier":""}"#, None),
            (r#"{"service_tier":3}"#, None),
            (r#"{"model":"m"}"#, None),
            (r#"{"metadata":{"service_tier":"flex"}}"#, None),
            (r#"{"service_tier":"flex""#, None),
        ] {
            assert_eq!(pinned_tier(body.as_bytes()).as_deref(), tier, "{body}");
        }
    }
}
