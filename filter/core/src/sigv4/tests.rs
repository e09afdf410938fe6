use serde::Deserialize;

use super::*;

const SECRET: &str = "AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
/// 2015-08-30 12:36:00.
const TIME: u64 = 1_440_938_160;

fn request<'a>(method: &'a str, path: &'a str) -> Request<'a> {
    Request {
        method,
        authority: "example.amazonaws.com",
        path,
        headers: &[],
        body: b"",
    }
}

/// Of AWS's published test suite, `aws-sig-v4-test-suite`, by the names it has there.
#[test]
fn requests_of_awss_test_suite_are_signed_as_it_says() {
    let form = Request {
        headers: &[("content-type", "application/x-www-form-urlencoded")],
        body: b"Param1=value1",
        ..request("POST", "/")
    };
    let trimmed = Request {
        headers: &[("my-header1", " value1"), ("my-header2", " \"a   b   c\"")],
        ..request("GET", "/")
    };
    for (name, request, signature) in [
        (
            "get-vanilla",
            request("GET", "/"),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "post-vanilla",
            request("POST", "/"),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            "get-vanilla-query-order-key-case",
            request("GET", "/?Param2=value2&Param1=value1"),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "post-x-www-form-urlencoded",
            form,
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            "get-header-value-trim",
            trimmed,
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
    ] {
        let scope = Scope {
            region: "us-east-1",
            service: "service",
        };
        let signed = Signer::of_secret(SECRET)
            .unwrap()
            .sign(&request, scope, TIME);
        assert_eq!(signed.date, "20150830T123600Z");
        let (_, told) = signed.authorization.rsplit_once('=').unwrap();
        assert_eq!(told, signature, "{name}");
    }
}

#[derive(Deserialize)]
struct Case {
    host: String,
    path: String,
    query: String,
    headers: std::collections::BTreeMap<String, String>,
    body: String,
    session_token: Option<String>,
    canonical: String,
    authorization: String,
}

#[test]
fn requests_to_bedrock_are_signed_as_botocore_signs_them() {
    let cases = include_str!("../../../../tests/golden/bedrock/sigv4.json");
    let cases: Vec<Case> = serde_json::from_str(cases).unwrap();
    assert_eq!(cases.len(), 6);
    for case in &cases {
        let headers: Vec<(&str, &str)> = case
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let path = match case.query.as_str() {
            "" => case.path.clone(),
            query => format!("{}?{query}", case.path),
        };
        let token = case.session_token.iter();
        let secret = token.fold(SECRET.to_owned(), |secret, token| {
            format!("{secret}:{token}")
        });
        let signer = Signer::of_secret(&secret).unwrap();
        let request = Request {
            method: "POST",
            authority: &case.host,
            path: &path,
            headers: &headers,
            body: case.body.as_bytes(),
        };
        let scope = Scope {
            region: "eu-central-1",
            service: "bedrock",
        };
        let headers = signer.signed_headers(&request, "20150830T123600Z");
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            canonical(&request, &headers, &names.join(";")),
            case.canonical
        );
        let signed = signer.sign(&request, scope, TIME);
        assert_eq!(signed.authorization, case.authorization);
        assert_eq!(signer.session_token, case.session_token.as_deref());
    }
}

#[test]
fn a_secret_has_two_parts_or_three_and_is_never_shown() {
    for broken in ["", "id", "id:", ":secret", "id:secret:"] {
        assert!(Signer::of_secret(broken).is_none(), "{broken}");
    }
    let signer = Signer::of_secret("id:se/cr+et:to=:ken").unwrap();
    assert_eq!(signer.session_token, Some("to=:ken"));
    assert_eq!(format!("{signer:?}"), "Signer { .. }");
}

#[test]
fn dates_are_those_of_the_calendar() {
    for (unix_s, expected) in [
        (0, "19700101T000000Z"),
        (951_782_399, "20000228T235959Z"),
        (951_782_400, "20000229T000000Z"),
        (1_709_251_199, "20240229T235959Z"),
        (1_709_251_200, "20240301T000000Z"),
        (1_798_761_599, "20261231T235959Z"),
        (4_107_542_400, "21000301T000000Z"),
    ] {
        assert_eq!(date(unix_s), expected);
    }
}
