use super::*;

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
        Refusal::VendorsUnavailable {
            retry_after_s: Some(3),
        },
        Refusal::ProviderError { status: 500 },
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
        Refusal::Proxy { status: 431 },
        Refusal::Proxy { status: 500 },
    ]
}

#[test]
fn every_refusal_has_a_code_of_its_own_the_right_shape_and_advice_on_retrying() {
    let mut codes = std::collections::BTreeSet::new();
    for refusal in every() {
        let reply = refusal.reply("id-1");
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
            reply.status == 503,
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
        let event = refusal.event();
        let json = event
            .strip_prefix(b"data: ")
            .unwrap()
            .strip_suffix(b"\n\n")
            .unwrap();
        assert_eq!(json, refusal.body(), "{}", refusal.code());
    }
}
