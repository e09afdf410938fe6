//! The head and body that a provider gets.

use filter_llm::api::Api;

use crate::attempt::Attempt;
use crate::config::Compiled;
use crate::config::models::Target;
use crate::config::providers::Provider;
use crate::host::HeaderSink;
use crate::respond::Expected;
use crate::route::{Planned, Route};
use crate::text::Decimal;

/// Headers by which the router is told what this request may take.
const MAX_RETRIES: &str = "x-envoy-max-retries";
const PER_TRY_TIMEOUT_MS: &str = "x-envoy-upstream-rq-per-try-timeout-ms";
const TOTAL_TIMEOUT_MS: &str = "x-envoy-upstream-rq-timeout-ms";
/// The version of Anthropic's API that translated requests are written for.
const ANTHROPIC_VERSION: &[u8] = b"2023-06-01";
/// Headers that the router adds to each attempt.
const ROUTER_HEADERS: [&str; 2] = ["x-envoy-attempt-count", "x-envoy-expected-rq-timeout-ms"];

/// The target of a planned attempt and its provider.
pub(crate) fn target_of(config: &Compiled, planned: Planned) -> Option<(&Target, &Provider)> {
    let target = config
        .models
        .get(planned.model)?
        .targets
        .get(planned.target)?;
    Some((target, config.providers.get(target.provider)?))
}

/// The plaintext of the credential that a planned attempt uses; empty: none.
pub(crate) fn secret_of(config: &Compiled, planned: Planned) -> &[u8] {
    let credential = planned
        .credential
        .and_then(|index| config.credentials.credential(index));
    credential.map_or(b"", |credential| credential.secret.plaintext.as_bytes())
}

/// The id of the credential that a planned attempt uses; empty: none.
pub(crate) fn credential_of(config: &Compiled, planned: Planned) -> &str {
    let credential = planned
        .credential
        .and_then(|index| config.credentials.credential(index));
    credential.map_or("", |credential| &credential.id)
}

/// The longest that any of the plan's targets may take until its head or first content.
///
/// The router takes one such time per request, not one per attempt.
pub(crate) fn per_try_timeout_ms(config: &Compiled, route: &Route) -> u32 {
    let timeouts = route
        .plan
        .iter()
        .filter_map(|&planned| target_of(config, planned));
    timeouts
        .map(|(target, _)| target.first_token_timeout_ms)
        .max()
        .unwrap_or(0)
}

/// The last attempt's own answer goes to the client, so only the others may be retried.
pub(crate) fn retries(route: &Route) -> u32 {
    let most = route.plan.len().min(route.most_attempts(true));
    u32::try_from(most.saturating_sub(1)).unwrap_or(0)
}

/// Tells the router what the plan allows.
pub(crate) fn edit_head(config: &Compiled, route: &Route, sink: &mut dyn HeaderSink) {
    sink.set(MAX_RETRIES, Decimal::new(retries(route).into()).as_bytes());
    let timeout_ms = per_try_timeout_ms(config, route);
    sink.set(
        PER_TRY_TIMEOUT_MS,
        Decimal::new(timeout_ms.into()).as_bytes(),
    );
    // No total timer: it would cut streams that still flow. Silence is guarded by the idle timer.
    sink.set(TOTAL_TIMEOUT_MS, b"0");
}

/// Makes the head of one attempt out of whatever the attempt before left in it.
pub(crate) fn edit_attempt_head(
    config: &Compiled,
    attempt: &Attempt,
    before: Option<&Attempt>,
    client: Api,
    sink: &mut dyn HeaderSink,
) {
    let Some((target, provider)) = target_of(config, attempt.planned) else {
        return;
    };
    let header = provider.credential_header();
    if let Some(stale) = before.and_then(|before| credential_header(config, before.planned))
        && Some(stale) != header
    {
        sink.remove(stale);
    }
    for name in ROUTER_HEADERS {
        sink.remove(name);
    }
    let left = before.and_then(|before| target_of(config, before.planned));
    for (name, _) in left.iter().flat_map(|(_, provider)| &provider.headers) {
        sink.remove(name);
    }
    if attempt.expected.api == Api::Messages && client != Api::Messages {
        // Its own clients say which version they speak.
        sink.set("anthropic-version", ANTHROPIC_VERSION);
    }
    for (name, value) in &provider.headers {
        sink.set(name, value.as_bytes());
    }
    let Expected { api, stream, .. } = attempt.expected;
    sink.set(":path", target.paths.path(api, stream).as_bytes());
    sink.set(":authority", provider.authority.as_bytes());
    let credential = attempt
        .planned
        .credential
        .and_then(|index| config.credentials.credential(index));
    if let (Some(header), Some(credential)) = (header, credential) {
        sink.set(header, credential.secret.header_value.as_bytes());
    }
    // What can't be read can't be metered.
    sink.set("accept-encoding", b"identity");
}

/// The header in which a planned attempt's credential goes, if it has one.
pub(crate) fn credential_header(config: &Compiled, planned: Planned) -> Option<&'static str> {
    let (_, provider) = target_of(config, planned)?;
    provider
        .credential_header()
        .filter(|_| planned.credential.is_some())
}
