use super::*;
use crate::splice::Splices;
use proptest::prelude::*;
use serde_json::{Value, json};

fn fault(body: &str) -> RequestFault {
    parse(body.as_bytes()).expect_err(body)
}

fn edited(body: &str, upstream: &str) -> String {
    let request = parse(body.as_bytes()).unwrap();
    let splices: Splices = [
        request.edits.rename_model(&request.model, upstream),
        request.edits.include_usage(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let edited = splices.apply(body.as_bytes());
    assert_eq!(splices.len_after(body.len()), edited.len());
    String::from_utf8(edited).unwrap()
}

#[test]
fn what_decides_is_read() {
    let body = r#"{"model":"fast\u002d1","messages":[{"role":"user","content":"h\u00e9llo\n"}],
        "stream":true,"stream_options":{"include_usage":true},"max_tokens":10,
        "max_completion_tokens":20,"n":2,"reasoning_effort":"high","user":"u-1",
        "metadata":{"action_id":"a\"7","tier":"gold","tags":["x"],"count":3},"temperature":0.2}"#;
    let request = parse(body.as_bytes()).unwrap();
    assert_eq!(request.model, "fast-1");
    assert!(request.stream && request.asks_usage);
    assert_eq!(request.max_output_tokens, Some(20));
    assert_eq!(request.choices, 2);
    assert_eq!(request.reasoning_effort.as_deref(), Some("high"));
    assert_eq!(request.user.as_deref(), Some("u-1"));
    assert_eq!(request.action_id(), Some("a\"7"));
    assert_eq!(request.metadata_value("tier"), Some("gold"));
    assert_eq!(request.metadata_value("tags"), None);
    assert_eq!(request.metadata.len(), 2);
    assert_eq!(request.needs, Needs::default());
    assert_eq!(request.body_bytes, body.len() as u64);
    assert_eq!(request.text_bytes, 7);
}

#[test]
fn null_is_as_good_as_missing_but_for_the_model() {
    let body = r#"{"model":"m","messages":null,"stream":null,"stream_options":null,
        "max_tokens":null,"n":null,"reasoning_effort":null,"metadata":null,"user":null,
        "tools":null,"response_format":null}"#;
    let request = parse(body.as_bytes()).unwrap();
    let bare = parse(br#"{"model":"m"}"#).unwrap();
    assert!(!request.stream && !request.asks_usage);
    assert_eq!((request.choices, request.max_output_tokens), (1, None));
    assert_eq!((request.user, request.metadata), (bare.user, bare.metadata));
    assert_eq!(request.needs, Needs::default());
}

#[test]
fn what_a_prompt_needs_is_found() {
    let with_part = |part: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"system","content":"x"}},
            {{"content":[{{"type":"text","text":"abc"}},{part}],"role":"user"}}]}}"#
        )
    };
    let none = Needs::default();
    let table = [
        (
            with_part(r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}"#),
            Needs {
                image_input: true,
                ..none
            },
        ),
        (
            with_part(r#"{"input_audio":{"data":"AAAA","format":"wav"},"type":"input_audio"}"#),
            Needs {
                audio_input: true,
                ..none
            },
        ),
        (
            with_part(r#"{"type":"file","file":{"file_id":"f"}}"#),
            Needs {
                file_input: true,
                ..none
            },
        ),
        (
            r#"{"model":"m","tools":[{"type":"function"}]}"#.to_owned(),
            Needs {
                tools: true,
                ..none
            },
        ),
        (
            r#"{"model":"m","functions":[{"name":"f"}]}"#.to_owned(),
            Needs {
                tools: true,
                ..none
            },
        ),
        (r#"{"model":"m","tools":[ ]}"#.to_owned(), none),
        (
            r#"{"model":"m","response_format":{"json_schema":{"type":"x"},"type":"json_schema"}}"#
                .to_owned(),
            Needs {
                json_schema: true,
                ..none
            },
        ),
        (
            r#"{"model":"m","response_format":{"type":"json_object"}}"#.to_owned(),
            none,
        ),
    ];
    for (body, needs) in table {
        assert_eq!(parse(body.as_bytes()).unwrap().needs, needs, "{body}");
    }
}

#[test]
fn text_is_counted_and_media_is_not() {
    let image = "A".repeat(10_000);
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"text","text":"1234"}},
        {{"type":"image_url","image_url":{{"url":"data:image/png;base64,{image}"}}}}]}},
        {{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function",
        "function":{{"name":"f","arguments":"{{\"a\":1}}"}}}}]}},
        {{"role":"tool","tool_call_id":"c","content":"ok"}}],
        "tools":[{{"type":"function","function":{{"name":"f","description":"does it"}}}}]}}"#
    );
    let request = parse(body.as_bytes()).unwrap();
    assert_eq!(request.text_bytes, 4 + 8 + 2 + (8 + 1 + 7));
}

#[test]
fn a_request_without_a_model_says_what_is_wrong_with_it() {
    let table = [
        (r#"{"messages":[]}"#, "missing_required_parameter"),
        (r#"{"model":null}"#, "invalid_type"),
        (r#"{"model":7}"#, "invalid_type"),
        (r#"{"model":""}"#, "invalid_value"),
        (r#"{"model":"\ud800"}"#, "invalid_value"),
    ];
    for (body, code) in table {
        let fault = fault(body);
        assert_eq!(
            (fault.param, fault.code),
            (Some("model"), Some(code)),
            "{body}"
        );
    }
    assert_eq!(
        fault(r#"{"model":null}"#).to_string(),
        "`model` must be a string, not null"
    );
}

#[test]
fn members_of_the_wrong_kind_are_named() {
    let table = [
        (r#""stream":"true""#, "stream"),
        (r#""stream_options":true"#, "stream_options"),
        (
            r#""stream_options":{"include_usage":1}"#,
            "stream_options.include_usage",
        ),
        (r#""max_tokens":1.5"#, "max_tokens"),
        (r#""max_tokens":-1"#, "max_tokens"),
        (r#""max_tokens":"10""#, "max_tokens"),
        (
            r#""max_completion_tokens":99999999999999999999"#,
            "max_completion_tokens",
        ),
        (r#""n":0"#, "n"),
        (r#""reasoning_effort":3"#, "reasoning_effort"),
        (r#""user":{}"#, "user"),
        (r#""metadata":[]"#, "metadata"),
        (r#""metadata":{"a":"1","\u0061":"2"}"#, "metadata"),
    ];
    for (member, param) in table {
        let fault = fault(&format!(r#"{{"model":"m",{member}}}"#));
        assert_eq!(fault.param, Some(param), "{member}");
        assert!(fault.code.is_some() && !fault.message.is_empty());
    }
}

#[test]
fn a_member_named_twice_is_refused_even_behind_escapes() {
    for body in [
        r#"{"model":"a","model":"b"}"#,
        r#"{"model":"a","mode\u006c":"b"}"#,
        r#"{"model":"a","stream":true,"stream":false}"#,
        r#"{"model":"a","stream_options":{"include_usage":true,"include_usage":false}}"#,
    ] {
        assert_eq!(fault(body).code, Some("duplicate_parameter"), "{body}");
    }
    parse(br#"{"model":"a","unknown":1,"unknown":2}"#).unwrap();
}

#[test]
fn metadata_of_many_members_is_refused() {
    let members: Vec<String> = (0..129).map(|n| format!(r#""k{n}":"v""#)).collect();
    let body = format!(r#"{{"model":"m","metadata":{{{}}}}}"#, members.join(","));
    assert_eq!(fault(&body).param, Some("metadata"));
}

#[test]
fn what_is_not_one_json_object_in_utf8_is_refused() {
    for body in [
        "",
        " ",
        "null",
        "7",
        r#"["m"]"#,
        r#""model""#,
        r#"{"model":"m""#,
        r#"{"model":"m"} x"#,
        r#"{"model":"m"}{}"#,
        r#"{'model':"m"}"#,
        r#"{"model":"m",}"#,
        "{\"model\":\"m\n\"}",
        "\u{feff}{\"model\":\"m\"}",
    ] {
        let fault = fault(body);
        assert_eq!(fault.param, None, "{body}");
        assert!(
            matches!(fault.code, Some("invalid_json" | "invalid_type")),
            "{body}"
        );
    }
    let fault = parse(b"{\"model\":\"m\xff\"}").unwrap_err();
    assert_eq!(fault.message, "the request body is not UTF-8");
}

#[test]
fn a_depth_bomb_does_not_overflow_the_stack() {
    let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    for member in ["messages", "metadata", "tools", "unknown", "stream_options"] {
        let body = format!(r#"{{"model":"m","{member}":{deep}}}"#);
        let is_read = parse(body.as_bytes()).is_ok();
        assert_eq!(
            is_read,
            !matches!(member, "metadata" | "stream_options"),
            "{member}"
        );
    }
    let deep = r#"{"a":"#.repeat(100_000) + "1" + &"}".repeat(100_000);
    let body = format!(r#"{{"model":"m","metadata":{{"x":{deep}}},"messages":[{deep}]}}"#);
    parse(body.as_bytes()).unwrap();
    assert!(parse("[".repeat(1_000_000).as_bytes()).is_err());
    assert!(parse(r#"{"a":"#.repeat(1_000_000).as_bytes()).is_err());
}

#[test]
fn only_the_model_and_the_usage_option_are_edited() {
    let table = [
        (
            r#"{"model":"a", "stream":true}"#,
            r#"{"stream_options":{"include_usage":true},"model":"b", "stream":true}"#,
        ),
        (
            "\n { \"stream_options\" : { } ,\"model\":\"a\"}",
            "\n { \"stream_options\" : {\"include_usage\":true } ,\"model\":\"b\"}",
        ),
        (
            r#"{"stream_options":{"x":[1]},"model":"a"}"#,
            r#"{"stream_options":{"include_usage":true,"x":[1]},"model":"b"}"#,
        ),
        (
            r#"{"model":"a","stream_options":null}"#,
            r#"{"model":"b","stream_options":{"include_usage":true}}"#,
        ),
        (
            r#"{"model":"a","stream_options":{"include_usage": false,"x":1}}"#,
            r#"{"model":"b","stream_options":{"include_usage": true,"x":1}}"#,
        ),
        (
            r#"{"model":"\u0061","stream_options":{"include_usage":null}}"#,
            r#"{"model":"b","stream_options":{"include_usage":true}}"#,
        ),
        (
            r#"{"model":"a","stream_options":{"include_usage":true}}"#,
            r#"{"model":"b","stream_options":{"include_usage":true}}"#,
        ),
    ];
    for (body, expected) in table {
        assert_eq!(edited(body, "b"), expected);
    }
}

#[test]
fn a_model_of_the_same_name_is_not_touched() {
    let body = br#"{"model":"\u0061"}"#;
    let request = parse(body).unwrap();
    assert_eq!(request.edits.rename_model(&request.model, "a"), None);
    let renamed = edited(
        r#"{"model":"a","stream_options":{"include_usage":true}}"#,
        "q\"\\\n",
    );
    assert_eq!(
        serde_json::from_str::<Value>(&renamed).unwrap()["model"],
        "q\"\\\n"
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!([{"role": "user", "content": "{\"model\":\"x\"}"}])),
        Just(json!({"model": "nested", "stream_options": {}})),
    ]
}

#[test]
fn output_is_bounded_in_the_members_that_say_it_or_in_one_that_is_added() {
    for (body, bounded) in [
        (
            r#"{"model":"m","max_tokens":900,"n":1}"#,
            r#"{"model":"m","max_tokens":300,"n":1}"#,
        ),
        (
            r#"{"max_completion_tokens": null ,"model":"m","max_tokens":4000}"#,
            r#"{"max_completion_tokens": 300 ,"model":"m","max_tokens":300}"#,
        ),
        (
            r#" {"model":"m"}"#,
            r#" {"max_completion_tokens":300,"model":"m"}"#,
        ),
    ] {
        let request = parse(body.as_bytes()).unwrap();
        let splices: Splices = request.edits.limit_output(300).collect();
        let edited = splices.apply(body.as_bytes());
        assert_eq!(std::str::from_utf8(&edited).unwrap(), bounded);
        let again = parse(&edited).unwrap();
        assert_eq!(again.max_output_tokens, Some(300));
    }
}

#[test]
fn the_larger_of_two_bounds_holds_and_providers_of_one_are_told_it_there() {
    let both = br#"{"model":"m","max_tokens":900,"max_completion_tokens":10}"#;
    let request = parse(both).unwrap();
    assert_eq!(request.max_output_tokens, Some(900));
    assert_eq!(request.edits.rename_output(), None);
    let newer = br#"{"model":"m", "max_completion_tokens" : 10}"#;
    let edits = parse(newer).unwrap().edits.with_max_tokens();
    let splices: Splices = edits
        .rename_output()
        .into_iter()
        .chain(edits.limit_output(7))
        .collect();
    assert_eq!(splices.apply(newer), br#"{"model":"m", "max_tokens" : 7}"#);
    let silent = br#"{"model":"m"}"#;
    let edits = parse(silent).unwrap().edits.with_max_tokens();
    let splices: Splices = edits.limit_output(7).collect();
    assert_eq!(splices.apply(silent), br#"{"max_tokens":7,"model":"m"}"#);
}

proptest! {
    #[test]
    fn an_edited_request_is_the_same_but_for_what_was_asked(
        model in ".{1,12}",
        upstream in ".{1,12}",
        options in proptest::option::of(prop_oneof![
            Just(Value::Null),
            Just(json!({})),
            Just(json!({"include_usage": false})),
            Just(json!({"include_usage": null, "other": 1})),
            Just(json!({"other": [1, {}]})),
            Just(json!({"include_usage": true, "other": {}})),
        ]),
        others in proptest::collection::btree_map("(aa|zz)[a-z]{0,3}", any_value(), 0..4),
        pretty in any::<bool>(),
    ) {
        let mut request = serde_json::Map::new();
        request.extend(others);
        request.insert("model".to_owned(), Value::from(model));
        if let Some(options) = options {
            request.insert("stream_options".to_owned(), options);
        }
        let request = Value::Object(request);
        let body = if pretty {
            serde_json::to_string_pretty(&request).unwrap()
        } else {
            request.to_string()
        };
        let mut expected = request;
        expected["model"] = Value::from(upstream.as_str());
        if !expected["stream_options"].is_object() {
            expected["stream_options"] = json!({});
        }
        expected["stream_options"]["include_usage"] = Value::from(true);
        let edited: Value = serde_json::from_str(&edited(&body, &upstream)).unwrap();
        prop_assert_eq!(edited, expected);
    }

    #[test]
    fn any_bytes_can_be_parsed(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(request) = parse(&body) {
            prop_assert!(!request.model.is_empty());
        }
    }

    #[test]
    fn any_damage_to_a_request_is_survived(
        at in 0_usize..100,
        byte in proptest::sample::select(br#"{}[]",:\u0"#.to_vec()),
    ) {
        let mut body = br#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"metadata":{"a":"b"},"stream_options":{"include_usage":false}}"#.to_vec();
        body[at] = byte;
        if let Ok(request) = parse(&body) {
            let splices: Splices = request.edits.include_usage().into_iter().collect();
            splices.apply(&body);
        }
    }
}
