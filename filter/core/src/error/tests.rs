use proto::config::v1::LimitUnit;

use super::*;

const VOICE: Voice<'static> = Voice {
    api: Api::ChatCompletions,
    request_id: "id-1",
};

use crate::credit::{Cause, Refusal as Denied};

fn limit_reached(cause: Cause) -> Refusal {
    Refusal::LimitReached(Box::new(Exceeded {
        limit: "team-month".into(),
        unit: LimitUnit::Money,
        cause,
        need: 20_000_000,
        unix_us: 1_798_761_599_999_000,
    }))
}

fn denied(kind: Denied, resets_in_us: Option<u64>) -> Cause {
    Cause::Refused {
        kind,
        retry_in_us: 1_500_000,
        left: 12_345_000,
        resets_in_us,
    }
}

fn every() -> Vec<Refusal> {
    let fault = || RequestFault {
        param: Some("model"),
        message: "missing".into(),
        code: None,
    };
    let event = ProviderError {
        message: "m".into(),
        kind: String::new(),
        code: String::new(),
    };
    vec![
        Refusal::UnknownUrl,
        Refusal::MethodNotAllowed { allow: "GET" },
        Refusal::MissingApiKey,
        Refusal::SeveralApiKeys,
        Refusal::InvalidApiKey,
        Refusal::ConfigUnavailable,
        Refusal::UnsupportedContentType,
        Refusal::UnsupportedContentEncoding,
        Refusal::BodyTooLarge,
        Refusal::BodiesTooLarge,
        Refusal::InvalidAttributes,
        Refusal::InvalidRequest(fault()),
        Refusal::ModelNotAllowed { model: "m".into() },
        Refusal::ModelNotFound { model: "m".into() },
        Refusal::NoCapableModel,
        Refusal::PriceUnknown,
        Refusal::VendorsUnavailable {
            retry_after_s: Some(3),
        },
        Refusal::ProviderError {
            status: 500,
            retry_after_s: None,
        },
        Refusal::ProviderErrorEvent(event),
        Refusal::ProviderEmptyAnswer,
        Refusal::ProviderCredentialRejected,
        Refusal::ProviderModelNotFound,
        Refusal::ProviderRedirected,
        Refusal::ProviderErrorUnreadable { status: 429 },
        Refusal::ProviderUnreachable,
        Refusal::ProviderReset,
        Refusal::ProviderTimeout,
        Refusal::ProviderCut,
        Refusal::RequestTimeout,
        Refusal::UnboundedRequest {
            limit: "l".into(),
            unbounded: Unbounded::MaxTokens,
        },
        limit_reached(Cause::Unavailable),
        limit_reached(Cause::TooFast { retry_in_us: 1 }),
        limit_reached(denied(Denied::Spent, None)),
        Refusal::Proxy { status: 431 },
        Refusal::Proxy { status: 500 },
    ]
}

#[test]
fn every_refusal_has_a_code_of_its_own_the_right_shape_and_advice_on_retrying() {
    let mut codes = std::collections::BTreeSet::new();
    for refusal in every() {
        let reply = refusal.reply(VOICE);
        assert!(codes.insert(refusal.code()), "{}", refusal.code());
        assert!(reply.details.starts_with("turnpike_"));
        assert!((400..600).contains(&reply.status));
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        let error = body["error"].as_object().unwrap();
        let members: Vec<&str> = error.keys().map(String::as_str).collect();
        assert_eq!(
            members,
            ["code", "message", "param", "type"],
            "{}",
            refusal.code()
        );
        assert!(!error["message"].as_str().unwrap().is_empty());
        let header = |name: &str| {
            reply
                .headers
                .iter()
                .find(|(other, _)| *other == name)
                .map(|(_, value)| value.as_ref())
        };
        assert_eq!(header("x-request-id"), Some("id-1"));
        assert_eq!(
            header("retry-after").is_some(),
            reply.status == 503 || refusal.code() == "rate_limit_exceeded",
            "{}",
            refusal.code()
        );
        assert_ne!(
            header("retry-after").is_some(),
            header("x-should-retry") == Some("false")
        );
    }
}

#[test]
fn an_event_and_a_body_carry_the_same_error() {
    for refusal in every() {
        let event = refusal.event(VOICE);
        let json = event
            .strip_prefix(b"data: ")
            .unwrap()
            .strip_suffix(b"\n\n")
            .unwrap();
        assert_eq!(json, refusal.body(VOICE), "{}", refusal.code());
    }
}

#[test]
fn what_is_spent_is_not_to_be_retried_and_says_when_it_resets() {
    let header = |reply: &Reply, name: &str| {
        let found = reply.headers.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| value.to_string())
    };
    let soon = limit_reached(denied(Denied::Spent, Some(1_800_000_000))).reply(VOICE);
    assert_eq!(soon.status, 429);
    assert_eq!(header(&soon, "x-should-retry").as_deref(), Some("false"));
    assert_eq!(header(&soon, "retry-after").as_deref(), Some("1800"));
    let body = String::from_utf8(soon.body).unwrap();
    assert!(body.contains("`team-month` has $0.012345 left"), "{body}");
    assert!(body.contains("and this request may need $0.02."), "{body}");
    assert!(
        body.contains("It resets at 2027-01-01T00:30:00Z, in 30m0s."),
        "{body}"
    );
    assert!(body.contains(r#""type":"insufficient_quota""#), "{body}");
    assert!(body.contains(r#""code":"insufficient_quota""#), "{body}");
    let late = limit_reached(denied(Denied::Spent, Some(86_400_000_000))).reply(VOICE);
    assert_eq!(header(&late, "retry-after"), None);
}

#[test]
fn what_is_reserved_or_too_fast_says_when_to_come_again() {
    for cause in [
        denied(Denied::Reserved, None),
        Cause::TooFast {
            retry_in_us: 1_500_000,
        },
    ] {
        let reply = limit_reached(cause).reply(VOICE);
        assert_eq!(reply.status, 429);
        assert_eq!(reply.details, "turnpike_rate_limit_exceeded");
        let retry = |name| reply.headers.iter().find(|(other, _)| *other == name);
        assert_eq!(retry("retry-after").unwrap().1, "2");
        assert_eq!(retry("retry-after-ms").unwrap().1, "1500");
        assert!(retry("x-should-retry").is_none());
    }
}
