//! What becomes of answers: plain, streamed, held, stripped, masked.

use proto::config::v1::{LongContext, Rates, Settings, TierPrice};
use proto::metering::v1::{End, TokenClass, UsageSource, Verdict};

use super::shell::{Play, Shell, chat_head};
use crate::fixture::*;

const PLAIN: &str =
    r#"{"model":"small-1","messages":[{"role":"user","content":"hello"}],"x":1.50}"#;
const STREAM: &str = r#"{"model":"small-1","stream":true,"messages":[]}"#;
const ANSWER: &str = r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}}"#;
const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
const HI: &str = r#"{"choices":[{"index":0,"delta":{"content":"hi"}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str =
    r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#;

fn data(events: &[&str]) -> String {
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

#[test]
fn a_plain_answer_passes_byte_for_byte_and_is_metered_and_priced() {
    let shell = Shell::new();
    let seen = shell.chat(PLAIN, &[Play::json(200, ANSWER)]);
    assert_eq!((seen.status, seen.text()), (200, ANSWER));
    let (cluster, headers, body) = &seen.providers[0];
    assert_eq!(cluster, "turnpike-provider-a");
    assert_eq!(
        std::str::from_utf8(body).unwrap(),
        PLAIN,
        "nothing to change, nothing changed"
    );
    assert_eq!(headers[":path"], "/v1/chat/completions");
    assert_eq!(headers[":authority"], "a.example");
    assert_eq!(headers["authorization"], format!("Bearer {SECRET_A}"));
    assert_eq!(headers["accept-encoding"], "identity");
    assert!(
        headers.keys().all(|name| !name.starts_with("x-envoy-")),
        "{headers:?}"
    );
    let record = seen.record();
    assert_eq!(record.end, i32::from(End::Complete));
    assert_eq!((record.status, record.finish.as_str()), (200, "stop"));
    assert_eq!(record.price_version, 7);
    assert_eq!(record.request_id, seen.headers["x-request-id"]);
    let decision = record.decision.as_ref().unwrap();
    assert_eq!(decision.client_api, "openai.chat_completions");
    assert_eq!(
        (decision.config_version, decision.request_bytes),
        (42, PLAIN.len() as u64)
    );
    let attempt = &record.attempts[0];
    assert_eq!(attempt.verdict, i32::from(Verdict::Billed));
    assert_eq!(attempt.credential, "cred-a");
    let usage = attempt.usage.as_ref().unwrap();
    assert_eq!((usage.input, usage.output), (12, 3));
    assert_eq!(usage.source, i32::from(UsageSource::Reported));
    let costs: Vec<_> = attempt
        .costs
        .iter()
        .map(|cost| (cost.tokens, cost.cost_nusd))
        .collect();
    assert_eq!(costs, [(12, Some(12_000)), (3, Some(6_000))]);
    assert_eq!(seen.settled.log.value("cost"), Some("0.000018000"));
    assert_eq!(seen.settled.sample.reason, "ok");
}

#[test]
fn the_tier_that_served_and_the_length_of_the_prompt_decide_what_an_attempt_costs() {
    let rates = |input, output| {
        Some(Rates {
            input_pusd: Some(input),
            output_pusd: Some(output),
            ..Rates::default()
        })
    };
    let mut all = resources();
    let price = &mut all.price_book.as_mut().unwrap().prices[0];
    price.long_context = Some(LongContext {
        above_input_tokens: 12,
        rates: rates(10_000_000, 20_000_000),
    });
    price.tiers.push(TierPrice {
        tier: "flex".into(),
        factor_permille: 500,
        ..TierPrice::default()
    });
    price.input_audio_pusd = Some(30_000_000);
    let shell = Shell::with(&all);
    let costs = |answer: &str| -> Vec<_> {
        let seen = shell.chat(PLAIN, &[Play::json(200, answer)]);
        let attempt = &seen.record().attempts[0];
        let costs = attempt.costs.iter();
        costs
            .map(|cost| (cost.token_class(), cost.tokens, cost.cost_nusd))
            .collect()
    };
    let (input, output) = (TokenClass::Input, TokenClass::Output);
    let flex = ANSWER.replace(r#""usage""#, r#""service_tier":"flex","usage""#);
    assert_eq!(
        costs(&flex),
        [(input, 12, Some(6_000)), (output, 3, Some(3_000))]
    );
    let longer = ANSWER.replace("12", "13").replace("15", "16");
    assert_eq!(
        costs(&longer),
        [(input, 13, Some(130_000)), (output, 3, Some(60_000))]
    );
    let heard = r#""prompt_tokens_details":{"audio_tokens":2},"prompt_tokens":12"#;
    let heard = ANSWER.replace(r#""prompt_tokens":12"#, heard);
    let audio = TokenClass::AudioInput;
    assert_eq!(
        costs(&heard),
        [
            (input, 10, Some(10_000)),
            (audio, 2, Some(60_000)),
            (output, 3, Some(6_000))
        ]
    );
}

#[test]
fn the_client_is_told_what_answered_and_not_who_the_provider_takes_us_for() {
    let play = Play::json(200, ANSWER)
        .header("set-cookie", "a=b")
        .header("server", "cloudflare")
        .header("openai-organization", "org-1")
        .header("x-ratelimit-remaining-tokens", "1")
        .header("x-ratelimit-new-thing", "1")
        .header("x-envoy-ratelimited", "true")
        .header("x-turnpike-rule", "forged")
        .header("x-request-id", "req_provider")
        .header("x-custom", "kept");
    let seen = Shell::new().chat(PLAIN, &[play]);
    let names: Vec<&str> = seen.headers.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            ":status",
            "content-type",
            "x-custom",
            "x-request-id",
            "x-turnpike-attempts",
            "x-turnpike-model",
            "x-turnpike-target"
        ]
    );
    assert_eq!(seen.headers["x-turnpike-target"], "a/small-1");
    assert_eq!(seen.headers["x-turnpike-model"], "small-1");
    assert_ne!(seen.headers["x-request-id"], "req_provider");
}

#[test]
fn a_renamed_model_reaches_the_provider_under_its_own_name() {
    let body = r#"{ "messages" : [], "model" : "fast" , "n": 2 }"#;
    let seen = Shell::new().chat(body, &[Play::json(200, ANSWER)]);
    let (_, headers, sent) = &seen.providers[0];
    let expected = body.replace("fast", "vendor-7b");
    assert_eq!(std::str::from_utf8(sent).unwrap(), expected);
    assert_eq!(headers["content-length"], expected.len().to_string());
    assert_eq!(headers["api-key"], SECRET_B);
    assert!(
        !headers.contains_key("authorization"),
        "the caller's key stays here"
    );
    assert_eq!(seen.headers["x-turnpike-target"], "b/vendor-7b");
    assert_eq!(
        seen.record().attempts[0].costs[0].cost_nusd,
        None,
        "an unknown price is not zero"
    );
    assert_eq!(seen.settled.log.value("cost"), None);
}

#[test]
fn every_credential_of_the_caller_is_stripped_wherever_it_was() {
    for (name, value) in [
        ("authorization", "bearer vk-test-alpha"),
        ("x-api-key", "vk-test-alpha"),
        ("api-key", " vk-test-alpha "),
        ("x-goog-api-key", "vk-test-alpha"),
        (":path", "/v1/chat/completions?a=1&key=vk-test-alpha&b=2"),
    ] {
        let mut head = chat_head(&[("x-envoy-max-retries", "9"), ("x-turnpike-exchange", "1")]);
        head.retain(|(other, _)| *other != "authorization");
        head.retain(|(other, _)| *other != name);
        head.push((name, value));
        head.push(("x-kept", "1"));
        head.push(("cookie", "session=1"));
        head.push(("proxy-authorization", "Basic cHJveHk="));
        let seen = Shell::new().run(&head, PLAIN.as_bytes(), &[Play::json(200, ANSWER)]);
        assert_eq!(seen.status, 200, "{name}");
        let (_, headers, _) = &seen.providers[0];
        let all = format!("{headers:?} {:?}", seen.logged);
        assert!(!all.contains("vk-test-alpha"), "{all}");
        assert!(!headers.contains_key("x-turnpike-exchange"), "{all}");
        assert_eq!(headers["x-kept"], "1");
        let is_stripped = |name| !headers.contains_key(name);
        assert!(
            ["cookie", "proxy-authorization"]
                .into_iter()
                .all(is_stripped)
        );
        assert!(
            !format!("{:?}", seen.logged).contains("CANARY"),
            "the log shows no credential"
        );
        assert_eq!(seen.logged[":authority"], "gateway.example");
        let path = if name == ":path" {
            "/v1/chat/completions?a=1&b=2"
        } else {
            "/v1/chat/completions"
        };
        assert_eq!(seen.logged[":path"], path);
    }
}

#[test]
fn where_a_request_comes_from_does_not_reach_the_provider() {
    let hops = [
        ("x-forwarded-proto", "http"),
        ("x-forwarded-for", "203.0.113.7"),
        ("x-forwarded-host", "gateway.example"),
        ("forwarded", "for=203.0.113.7"),
        ("via", "1.1 office"),
        ("x-real-ip", "203.0.113.7"),
        ("x-envoy-external-address", "203.0.113.7"),
        ("x-envoy-peer-metadata", "secret"),
    ];
    let head = chat_head(&[&hops[..], &[("x-request-id", "kept"), ("x-app", "kept")]].concat());
    let seen = Shell::new().run(&head, PLAIN.as_bytes(), &[Play::json(200, ANSWER)]);
    let (_, headers, _) = &seen.providers[0];
    for (name, _) in hops {
        assert!(!headers.contains_key(name), "{name}");
    }
    assert_eq!(
        (headers["x-request-id"].as_str(), headers["x-app"].as_str()),
        ("kept", "kept")
    );
}

#[test]
fn the_request_id_is_kept_or_made_and_goes_both_ways() {
    let shell = Shell::new();
    for (given, is_kept) in [
        ("client-id-1", true),
        ("", false),
        ("has space", false),
        ("naïve", false),
    ] {
        let head = chat_head(&[("x-request-id", given)]);
        let seen = shell.run(&head, PLAIN.as_bytes(), &[Play::json(200, ANSWER)]);
        let id = &seen.headers["x-request-id"];
        assert_eq!(id == given, is_kept, "{given:?}");
        assert_eq!(&seen.providers[0].1["x-request-id"], id);
        assert_eq!(seen.settled.log.value("request_id"), Some(id.as_str()));
    }
    let made = &shell.chat(PLAIN, &[Play::json(200, ANSWER)]).headers["x-request-id"];
    assert_eq!(made, "00010203-0405-4607-8809-0a0b0c0d0e0f");
}

#[test]
fn usage_that_we_asked_for_is_metered_and_taken_out_again() {
    let play = Play::stream(&[ROLE, HI, STOP, USAGE, "[DONE]"]);
    let seen = Shell::new().chat(STREAM, &[play]);
    let sent = std::str::from_utf8(&seen.providers[0].2).unwrap();
    assert!(
        sent.contains(r#""stream_options":{"include_usage":true}"#),
        "{sent}"
    );
    assert_eq!(
        seen.providers[0].1["content-length"],
        sent.len().to_string()
    );
    assert_eq!(seen.text(), data(&[ROLE, HI, STOP, "[DONE]"]));
    let usage = seen.record().attempts[0].usage.as_ref().unwrap();
    assert_eq!((usage.input, usage.output), (9, 2));
    assert_eq!(seen.headers["cache-control"], "no-store");
    assert_eq!(seen.headers["x-accel-buffering"], "no");
}

#[test]
fn usage_that_the_client_asked_for_reaches_it() {
    let body = r#"{"model":"small-1","stream":true,"stream_options":{"include_usage":true},"messages":[]}"#;
    let seen = Shell::new().chat(body, &[Play::stream(&[ROLE, HI, STOP, USAGE, "[DONE]"])]);
    assert_eq!(seen.providers[0].2, body.as_bytes());
    assert_eq!(seen.text(), data(&[ROLE, HI, STOP, USAGE, "[DONE]"]));
    assert_eq!(seen.record().attempts[0].usage.as_ref().unwrap().input, 9);
}

#[test]
fn a_provider_without_the_option_is_not_asked_and_its_own_usage_passes() {
    let mut resources = resources();
    resources
        .providers
        .get_mut("a")
        .unwrap()
        .stream_usage_option = false;
    let shell = Shell::with(&resources);
    let seen = shell.chat(STREAM, &[Play::stream(&[HI, STOP, USAGE, "[DONE]"])]);
    assert_eq!(seen.providers[0].2, STREAM.as_bytes());
    assert_eq!(seen.text(), data(&[HI, STOP, USAGE, "[DONE]"]));
    assert_eq!(seen.record().attempts[0].usage.as_ref().unwrap().output, 2);
}

#[test]
fn the_head_is_held_until_the_first_content_and_then_each_frame_passes_at_once() {
    let shell = Shell::new();
    let seen = shell.chat(
        STREAM,
        &[Play::stream(&[ROLE, ROLE, HI, HI, STOP, "[DONE]"])],
    );
    let sizes: Vec<usize> = [0, 0, 3, 4, 5, 6]
        .map(|count| data(&[ROLE, ROLE, HI, HI, STOP, "[DONE]"][..count]).len())
        .to_vec();
    assert_eq!(seen.progress, sizes);
    let attempt = &seen.record().attempts[0];
    assert!(attempt.first_content_us > 0 && attempt.first_content_us < attempt.duration_us);
}

#[test]
fn a_hold_ends_at_its_cap_in_bytes_or_time() {
    let mut capped = resources();
    capped.settings = Some(Settings {
        first_token_hold_bytes: 150,
        ..Default::default()
    });
    let seen = Shell::with(&capped).chat(STREAM, &[Play::stream(&[ROLE; 5])]);
    let first_out = seen.progress.iter().position(|&bytes| bytes > 0).unwrap();
    assert_eq!(
        first_out,
        150 / (ROLE.len() + 8),
        "progress: {:?}",
        seen.progress
    );

    let mut shell = Shell::new();
    shell.frame_gap_ms = 25_000;
    let seen = shell.chat(STREAM, &[Play::stream(&[ROLE; 5])]);
    let first_out = seen.progress.iter().position(|&bytes| bytes > 0).unwrap();
    assert_eq!(
        first_out, 3,
        "60 s after the first event: {:?}",
        seen.progress
    );
}

#[test]
fn an_error_event_before_content_becomes_a_status_with_a_masked_json_body() {
    for (error, status, code) in [
        (
            r#"{"message":"overloaded","type":"server_error","code":null}"#,
            502,
            "provider_error_event",
        ),
        (
            r#"{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}"#,
            400,
            "context_length_exceeded",
        ),
        (
            r#"{"message":"key CANARY-prov-key-7731 is bad","type":"x","code":"c"}"#,
            502,
            "c",
        ),
    ] {
        let event = format!(r#"{{"error":{error}}}"#);
        let seen = Shell::new().chat(STREAM, &[Play::stream(&[ROLE, &event])]);
        assert_eq!(
            (seen.status, seen.code().as_str()),
            (status, code),
            "{}",
            seen.text()
        );
        assert_eq!(seen.headers["content-type"], "application/json");
        assert!(!seen.text().contains("CANARY"));
        let record = seen.record();
        assert_eq!(record.end, i32::from(End::ProviderFailed));
        assert_eq!(record.attempts[0].verdict, i32::from(Verdict::NotBilled));
        assert_eq!(record.attempts[0].status, 200, "what the provider sent");
    }
}

#[test]
fn an_empty_stream_is_a_failure_and_one_that_only_finishes_is_an_answer() {
    for events in [&[][..], &["[DONE]"], &[ROLE, "[DONE]"]] {
        let seen = Shell::new().chat(STREAM, &[Play::stream(events)]);
        assert_eq!(
            (seen.status, seen.code().as_str()),
            (502, "provider_empty_answer")
        );
        assert_eq!(
            seen.record().attempts[0].verdict,
            i32::from(Verdict::Unknown)
        );
    }
    let seen = Shell::new().chat(STREAM, &[Play::stream(&[ROLE, STOP, "[DONE]"])]);
    assert_eq!(
        (seen.status, seen.text()),
        (200, data(&[ROLE, STOP, "[DONE]"]).as_str())
    );
}

#[test]
fn an_error_event_after_content_passes_in_the_stream() {
    let error = r#"{"error":{"message":"died","type":"server_error"}}"#;
    let seen = Shell::new().chat(STREAM, &[Play::stream(&[HI, error])]);
    assert_eq!(
        (seen.status, seen.text()),
        (200, data(&[HI, error]).as_str())
    );
}

#[test]
fn what_comes_is_metered_as_what_it_is_not_as_what_was_asked_for() {
    let seen = Shell::new().chat(STREAM, &[Play::json(200, ANSWER)]);
    assert_eq!(
        (
            seen.text(),
            seen.record().attempts[0].usage.as_ref().unwrap().input
        ),
        (ANSWER, 12)
    );
    let seen = Shell::new().chat(PLAIN, &[Play::stream(&[HI, STOP, USAGE, "[DONE]"])]);
    assert_eq!(seen.text(), data(&[HI, STOP, USAGE, "[DONE]"]));
    assert_eq!(seen.record().attempts[0].usage.as_ref().unwrap().input, 9);
}

#[test]
fn an_answer_that_cannot_be_read_passes_and_is_estimated() {
    let body = "binary body of 32 bytes, as gzip";
    for (name, value) in [("content-encoding", "gzip"), ("content-type", "text/html")] {
        let play = Play::json(200, body).header(name, value);
        let seen = Shell::new().chat(PLAIN, &[play]);
        assert_eq!((seen.status, seen.text()), (200, body));
        let usage = seen.record().attempts[0].usage.as_ref().unwrap();
        assert_eq!(usage.source, i32::from(UsageSource::Estimated));
        assert_eq!((usage.output, usage.method.as_str()), (8, "bytes/4"));
        assert!(usage.input > 0);
        assert!(seen.settled.sample.is_estimated);
    }
}

#[test]
fn a_provider_error_keeps_its_words_and_loses_the_credential() {
    let words = r#"{"error":{"message":"bad temperature","type":"invalid_request_error","param":"temperature","code":null},"extra":1}"#;
    for status in [400, 413, 422, 429, 500, 503] {
        let play = Play::json(status, words).header("retry-after", "7");
        let seen = Shell::new().chat(PLAIN, &[play]);
        assert_eq!((seen.status, seen.text()), (status, words));
        assert_eq!(seen.headers["retry-after"], "7");
        let record = seen.record();
        assert_eq!(record.end, i32::from(End::ProviderFailed));
        assert_eq!(record.error_code, "", "the error is not ours");
        assert_eq!(seen.settled.sample.reason, "provider_error");
        assert_eq!(record.attempts[0].verdict, i32::from(Verdict::NotBilled));
        assert_eq!(
            record.attempts[0].usage.as_ref().unwrap().source,
            i32::from(UsageSource::None)
        );
    }
    let leaky =
        format!(r#"{{"error":{{"message":"no {SECRET_A} or CANARY%2Dprov%2Dkey%2D7731"}}}}"#);
    let seen = Shell::new().chat(PLAIN, &[Play::json(400, &leaky)]);
    assert!(!seen.text().contains("7731"), "{}", seen.text());
    assert!(seen.text().contains("***"));
}

#[test]
fn a_provider_error_in_another_shape_is_put_into_the_clients() {
    for (body, message) in [
        (
            r#"{"object":"error","message":"vllm says no","type":"BadRequestError","code":400}"#,
            "vllm says no",
        ),
        (r#"{"detail":"not like this"}"#, "not like this"),
        ("<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        ("", "The provider answered with an error and said no more."),
    ] {
        let play = Play::answer(502, "text/html", body);
        let seen = Shell::new().chat(PLAIN, &[play]);
        assert_eq!(seen.status, 502);
        assert_eq!(seen.headers["content-type"], "application/json");
        assert_eq!(seen.error()["message"], message, "{body}");
    }
    let huge = Play::json(
        500,
        &format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(100_000)),
    );
    let seen = Shell::new().chat(PLAIN, &[huge]);
    assert!(seen.body.len() < 2_000, "bounded");
    assert!(seen.error()["message"].is_string());
}

#[test]
fn a_providers_refusal_of_our_credential_is_never_the_callers_401() {
    for (status, code) in [
        (401, "provider_credential_rejected"),
        (402, "provider_credential_rejected"),
        (403, "provider_credential_rejected"),
        (404, "provider_model_not_found"),
        (302, "provider_redirected"),
    ] {
        let body = format!(r#"{{"error":{{"message":"Incorrect API key: {SECRET_A}"}}}}"#);
        let play = Play::json(status, &body)
            .header("location", "https://elsewhere.example/")
            .header("www-authenticate", "Bearer")
            .header("content-length", "99");
        let seen = Shell::new().chat(PLAIN, &[play]);
        assert_eq!((seen.status, seen.code().as_str()), (502, code), "{status}");
        assert!(!format!("{:?} {}", seen.headers, seen.text()).contains("CANARY"));
        for name in ["location", "www-authenticate", "content-length"] {
            assert!(!seen.headers.contains_key(name), "{name}");
        }
        assert_eq!(seen.headers["x-should-retry"], "false");
        assert_eq!(seen.record().error_code, code);
        assert_eq!(
            u16::try_from(seen.record().attempts[0].status).unwrap(),
            status
        );
    }
}

#[test]
fn a_compressed_error_is_not_passed_since_it_cannot_be_searched_for_the_credential() {
    let play = Play::json(400, "gzip bytes").header("content-encoding", "gzip");
    let seen = Shell::new().chat(PLAIN, &[play]);
    assert_eq!(
        (seen.status, seen.code().as_str()),
        (400, "provider_error_unreadable")
    );
    assert!(!seen.headers.contains_key("content-encoding"));
}

#[test]
fn a_plain_200_that_carries_an_error_is_a_failure_and_not_billed() {
    let body =
        r#"{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let seen = Shell::new().chat(PLAIN, &[Play::json(200, body)]);
    assert_eq!((seen.status, seen.text()), (200, body));
    assert_eq!(seen.record().end, i32::from(End::ProviderFailed));
    assert_eq!(
        seen.record().attempts[0].verdict,
        i32::from(Verdict::NotBilled)
    );
    assert_eq!(seen.settled.sample.reason, "provider_error");
}
