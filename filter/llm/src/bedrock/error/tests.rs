use super::*;

#[test]
fn a_type_is_the_same_wherever_it_is_told() {
    let expected = ProviderError {
        message: "slow \"down\"".to_owned(),
        kind: "ThrottlingException".to_owned(),
        code: String::new(),
    };
    let message = br#"{"message":"slow \"down\""}"#;
    for kind in [
        "ThrottlingException",
        "throttlingException",
        "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/",
        "com.amazon.coral.service#ThrottlingException",
    ] {
        assert_eq!(parse_typed(kind.as_bytes(), message).unwrap(), expected);
        let told = body(kind, "slow \"down\"");
        assert_eq!(parse(&told).unwrap(), expected);
        assert_eq!(parse_typed(b"", &told).unwrap(), expected);
    }
}

#[test]
fn an_error_is_known_by_its_message_alone_and_by_its_type_alone() {
    let denied = parse(br#"{"Message":"not authorized"}"#).unwrap();
    assert_eq!(
        (denied.message.as_str(), denied.kind.as_str()),
        ("not authorized", "")
    );
    let bare = parse_typed(b"ModelNotReadyException", b"").unwrap();
    assert_eq!(bare.kind, "ModelNotReadyException");
    let cut = br#"{"message":"not auth"#;
    assert_eq!(parse(cut), None);
    assert_eq!(
        parse(br#"{"output":{"message":{}},"stopReason":"end_turn"}"#),
        None
    );
    assert_eq!(parse_typed(b"", b"<html>"), None);
}

#[test]
fn what_decides_is_read_out_of_bedrocks_words() {
    for message in [
        "Input is too long for requested model.",
        "The model returned the following errors: prompt is too long: 227255 tokens > 200000 maximum",
    ] {
        let error = parse_typed(b"ValidationException", &body("", message)).unwrap();
        assert!(error.is_context_length(), "{message}");
        assert!(!error.is_unknown_model());
    }
    let invalid = body(
        "ValidationException",
        "The provided model identifier is invalid.",
    );
    assert!(parse(&invalid).unwrap().is_unknown_model());
    let missing = parse_typed(b"ResourceNotFoundException", b"{}").unwrap();
    assert!(missing.is_unknown_model() && !missing.is_quota());
}
