use super::*;

fn delta(members: &str) -> Reading {
    read_whole(format!(r#"{{"choices":[{{"index":0,"delta":{{{members}}}}}]}}"#).as_bytes())
}

#[test]
fn a_role_alone_or_an_empty_delta_is_no_content() {
    for members in [
        "",
        r#""role":"assistant","content":"""#,
        r#""role":"assistant","content":null,"refusal":null,"tool_calls":null,"audio":null"#,
        r#""content":[],"tool_calls":[],"reasoning_details":[]"#,
        r#""reasoning_content":"","reasoning":null"#,
    ] {
        let reading = delta(members);
        assert!(!reading.has_content, "{members}");
        assert_eq!(reading.visible_bytes, 0, "{members}");
    }
}

#[test]
fn every_kind_of_content_is_seen_and_counted() {
    let table: [(&str, u64, u64); 12] = [
        (r#""content":"h\u00e9llo""#, 6, 0),
        (r#""content":[{"type":"text","text":"abc"}]"#, 3, 0),
        (
            r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"abcd"}]}]"#,
            4,
            4,
        ),
        (r#""refusal":"no""#, 2, 0),
        (r#""reasoning_content":"hmm""#, 3, 3),
        (r#""reasoning":"hm","reasoning_content":"hmm""#, 3, 3),
        (
            r#""reasoning_details":[{"type":"reasoning.encrypted"}]"#,
            0,
            0,
        ),
        (
            r#""tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]"#,
            1,
            0,
        ),
        (
            r#""tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]"#,
            7,
            0,
        ),
        (r#""function_call":{"name":"f","arguments":"{}"}"#, 3, 0),
        (r#""audio":{"id":"a","data":"UklGRg=="}"#, 0, 0),
        (r#""audio":{"transcript":"hi"}"#, 2, 0),
    ];
    for (members, visible, reasoning) in table {
        let reading = delta(members);
        assert!(reading.has_content, "{members}");
        assert_eq!(
            (reading.visible_bytes, reading.reasoning_bytes),
            (visible, reasoning),
            "{members}"
        );
    }
}

#[test]
fn a_whole_answer_is_read_as_a_chunk_is() {
    let reading = read_whole(
        br#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},
            "finish_reason":"stop"}],"service_tier":"flex",
            "usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
    );
    assert_eq!(reading.finish, Some(Finish::Stop));
    assert_eq!(reading.service_tier.as_deref(), Some("flex"));
    assert_eq!(reading.visible_bytes, 5);
    assert_eq!(reading.usage.map(|usage| usage.total()), Some(5));
}

#[test]
fn finish_reasons_are_told_in_openais_words() {
    let table = [
        ("stop", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("error", "error"),
        ("insufficient_system_resource", "error"),
        ("tired", "other"),
    ];
    for (word, expected) in table {
        let answer = format!(r#"{{"choices":[{{"finish_reason":"{word}"}}]}}"#);
        let finish = read_whole(answer.as_bytes()).finish.unwrap();
        assert_eq!(finish.as_str(), expected);
    }
    for word in [r#""""#, "null", "7"] {
        let answer = format!(r#"{{"choices":[{{"finish_reason":{word}}}]}}"#);
        assert_eq!(read_whole(answer.as_bytes()).finish, None, "{word}");
    }
}

#[test]
fn the_first_choice_says_why_it_ended() {
    let later_first = br#"{"choices":[{"finish_reason":"length","index":1},
        {"finish_reason":"stop","index":0},{"finish_reason":"content_filter","index":2}]}"#;
    assert_eq!(read_whole(later_first).finish, Some(Finish::Stop));
    let only_later = br#"{"choices":[{"index":1,"finish_reason":"length"}]}"#;
    assert_eq!(read_whole(only_later).finish, Some(Finish::Length));
}

#[test]
fn usage_is_found_wherever_providers_put_it() {
    let usage = r#""usage":{"prompt_tokens":9,"completion_tokens":2}"#;
    for answer in [
        format!(r#"{{"choices":[],{usage}}}"#),
        format!("{{{usage}}}"),
        format!(r#"{{"choices":null,{usage}}}"#),
        format!(r#"{{"x_groq":{{"id":"r",{usage}}},"choices":[{{"delta":{{}}}}]}}"#),
        format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop",{usage}}}]}}"#),
        format!(r#"{{"error":{{"message":"late"}},{usage}}}"#),
    ] {
        let read = read_whole(answer.as_bytes()).usage.unwrap();
        assert_eq!((read.input, read.output), (9, 2), "{answer}");
    }
    for answer in [
        r#"{"usage":null}"#,
        r#"{"usage":[]}"#,
        r#"{"usage":7}"#,
        r#"{"other":{"usage":{"prompt_tokens":9}}}"#,
        r#"{"choices":[{"message":{"usage":{"prompt_tokens":9}}}]}"#,
    ] {
        assert_eq!(read_whole(answer.as_bytes()).usage, None, "{answer}");
    }
}

#[test]
fn errors_are_read_wherever_they_stand() {
    for answer in [
        r#"{"error":{"message":"gone","type":"server_error","code":503}}"#,
        r#"{"choices":[{"finish_reason":"error","error":{"code":503,"message":"gone"}}]}"#,
        r#"{"x_groq":{"error":{"code":503,"message":"gone"}}}"#,
    ] {
        let error = read_whole(answer.as_bytes()).error.unwrap();
        assert_eq!(
            (error.message.as_str(), error.code.as_str()),
            ("gone", "503")
        );
    }
    let bare = read_whole(br#"{"error":"gone"}"#).error.unwrap();
    assert_eq!(bare.message, "gone");
    assert_eq!(read_whole(br#"{"error":null}"#).error, None);
}

#[test]
fn names_are_known_by_their_whole_key() {
    for key in [
        "usage",
        "x_groq",
        "cache_creation_input_tokens",
        "finish_reason",
    ] {
        assert_ne!(Name::of(key.as_bytes()), Name::Unknown, "{key}");
        let longer = format!("{key}_");
        assert_eq!(Name::of(longer.as_bytes()), Name::Unknown);
        assert_eq!(Name::of(key.to_uppercase().as_bytes()), Name::Unknown);
    }
}
